// SPDX-License-Identifier: Apache-2.0
//
// Several calls as one launch: the bits that each gives by itself, for all optimizers, sizes and alignments, and for
// elementwise trees, interpreted and compiled; how many launches the steps of networks have; and that what needs
// another's result comes after it.
//
// usage: joined_calls_test PLUG-IN
#include <cstring>
#include <string>
#include <vector>

#include "backend/cpu/step_models.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/json.h"
#include "bound_graph.h"
#include "graph/builder.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace joined_calls_test {

using namespace tutti::impl;
using backend::DeviceRef;
using conformance::Arenas;
using conformance::BoundGraph;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

namespace {

std::string tested;
DeviceRef device;

/// The names of the kernels that the graph became.
std::vector<std::string> kernels_of(const std::string &report) {
  std::vector<std::string> names;
  const base::Json json = assert_ok_value(base::Json::parse(report));
  for (const base::Json &kernel : json.find("kernels")->array())
    names.push_back(kernel.find("kernel")->string());
  return names;
}

Tensor make_tensor(DType dtype, std::vector<int64_t> dims, size_t seed) {
  conformance::Operand operand;
  operand.dtype = dtype;
  operand.dims = std::move(dims);
  operand.low = 0.01;  // second moments are roots' arguments
  return assert_ok_value(conformance::make_operand(operand, seed));
}

// ---- updates ----

struct Optimizer {
  const char *op;
  graph::Attributes attributes;
  size_t slots;
};

const Optimizer kOptimizers[] = {
    {"sgd_update", {}, 0},
    {"sgd_update", {{"weight_decay", 0.01}}, 0},
    {"momentum_update", {{"momentum", 0.9}, {"weight_decay", 0.01}}, 1},
    {"momentum_update", {{"momentum", 0.9}, {"nesterov", true}}, 1},
    {"adam_update", {}, 2},
    {"adam_update", {{"weight_decay", 0.1}, {"beta1", 0.8}}, 2},
};

constexpr int64_t kSizes[] = {1, 3, 4, 5, 31, 128, 129, 511, 1000, 4099};
constexpr size_t kVariables = std::size(kSizes);
const char *const kParts[] = {"w", "g", "m", "v"};

/// Weights, gradients and slots of all variables; by turns they begin where packs can be read and where not.
backend::StateTable make_table(DType dtype) {
  backend::StateTable table;
  const int32_t arena = table.add_arena("weights");
  int64_t end = 0;
  for (size_t i = 0; i < kVariables; ++i) {
    for (const char *part : kParts) {
      const auto bytes = static_cast<int64_t>(tensor::size_bytes(dtype)) * kSizes[i];
      const int64_t offset = (end + 63) / 64 * 64 + (i % 3 == 1 ? static_cast<int64_t>(tensor::size_bytes(dtype)) : 0);
      assert_ok(table.add({.name = base::concat(part, i),
                           .arena = arena,
                           .offset = offset,
                           .dtype = dtype,
                           .dims = {kSizes[i]},
                           .storage_bytes = bytes}));
      end = offset + bytes;
    }
  }
  return table;
}

/// What all variables share.
struct Scalars {
  ValueId rate, iteration, ok;

  explicit Scalars(GraphBuilder &b)
      : rate(b.input("rate", DType::f32, {})),
        iteration(b.run_scalar("iteration", DType::i64)),
        ok(b.input("ok", DType::boolean, {})) {}
};

void add_update(GraphBuilder &b, const Optimizer &optimizer, DType dtype, size_t variable, const Scalars &scalars) {
  const auto read = [&](const char *part) {
    return b.state_read(base::concat(part, variable), dtype, {graph::Dim(kSizes[variable])});
  };
  GraphBuilder::Values inputs{read("w"), read("g")};
  for (size_t slot = 0; slot < optimizer.slots; ++slot)
    inputs.push_back(read(kParts[2 + slot]));
  inputs.push_back(scalars.rate);
  if (optimizer.slots == 2) inputs.push_back(scalars.iteration);
  inputs.push_back(scalars.ok);
  const auto updated = b.op_n(optimizer.op, inputs, optimizer.attributes, optimizer.slots + 1);
  b.state_write(updated[0], base::concat("w", variable));
  for (size_t slot = 0; slot < optimizer.slots; ++slot)
    b.state_write(updated[slot + 1], base::concat(kParts[2 + slot], variable));
}

/// The state after three steps, of which the second is not good; variables [first, last) are updated by one program.
class Run {
 public:
  Run(const Optimizer &optimizer, DType dtype)
      : optimizer_(optimizer), dtype_(dtype), arenas_(assert_ok_value(Arenas::make(device, make_table(dtype)))) {
    size_t seed = 0;
    for (size_t i = 0; i < kVariables; ++i) {
      for (const char *part : kParts)
        assert_ok(arenas_.write(base::concat(part, i), make_tensor(dtype, {kSizes[i]}, ++seed)));
    }
  }

  std::vector<std::string> update(size_t first, size_t last) {
    GraphBuilder b;
    const Scalars shared(b);
    for (size_t i = first; i < last; ++i)
      add_update(b, optimizer_, dtype_, i, shared);
    const auto bound = assert_ok_value(BoundGraph::make(device, assert_ok_value(b.finish_graph()), {}, &arenas_));
    for (int64_t step = 1; step <= 3; ++step) {
      backend::RunScalars scalars;
      scalars.set(backend::RunScalar::iteration, step);
      assert_ok(bound->run({assert_ok_value(Tensor::scalar<float>(0.05F / static_cast<float>(step))),
                            assert_ok_value(Tensor::scalar<bool>(step != 2))},
                           scalars));
    }
    return kernels_of(bound->description().report_json);
  }

  std::string bytes(size_t variable) const {
    std::string all;
    for (const char *part : kParts) {
      const Tensor value = assert_ok_value(arenas_.read(base::concat(part, variable)));
      all.append(static_cast<const char *>(value.data()), value.size_bytes());
    }
    return all;
  }

 private:
  const Optimizer &optimizer_;
  const DType dtype_;
  Arenas arenas_;
};

void updates_of_all_variables_are_one_launch(void **) {
  for (const Optimizer &optimizer : kOptimizers) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Run together(optimizer, dtype), alone(optimizer, dtype);
      const auto kernels = together.update(0, kVariables);
      size_t joined = 0;
      for (const std::string &kernel : kernels)
        joined += kernel.find(" x 10") != std::string::npos ? 1 : 0;
      assert_int_equal(joined, 1);
      assert_int_equal(kernels.size(), 2);  // one asks which step it is
      for (size_t i = 0; i < kVariables; ++i) {
        (void)alone.update(i, i + 1);
        if (together.bytes(i) != alone.bytes(i)) fail_msg("%s, variable %zu: other bits", optimizer.op, i);
      }
    }
  }
}

/// Of several optimizers, or with another rate, each is a launch of its own.
void what_differs_is_not_joined(void **) {
  Arenas arenas = assert_ok_value(Arenas::make(device, make_table(DType::f32)));
  GraphBuilder b;
  const Scalars scalars(b);
  Scalars slower = scalars;
  slower.rate = b.scale(scalars.rate, 0.5);
  for (size_t i = 0; i < 4; ++i)
    add_update(b, kOptimizers[i % 2 == 0 ? 0 : 1], DType::f32, i, scalars);
  for (size_t i = 4; i < 8; ++i)
    add_update(b, kOptimizers[0], DType::f32, i, i % 2 == 0 ? scalars : slower);
  const auto bound = assert_ok_value(BoundGraph::make(device, assert_ok_value(b.finish_graph()), {}, &arenas));
  // Three sorts of updates, the slower rate, and the number of the step.
  assert_int_equal(kernels_of(bound->description().report_json).size(), 3 + 2);
}

// ---- trees ----

const std::vector<int64_t> kShapes[] = {{1}, {3}, {8}, {33}, {5, 7}, {64}, {1000}, {4, 260}, {2, 3, 5}};

GraphBuilder::Values make_trees(GraphBuilder &b, const GraphBuilder::Values &inputs, size_t first, size_t last) {
  GraphBuilder::Values results;
  for (size_t i = first; i < last; ++i) {
    const ValueId x = inputs[2 * i], y = inputs[2 * i + 1];
    results.push_back(b.op("select", {b.op("less", {x, y}), b.add(b.scale(x, 0.9), b.scale(y, 0.1)), y}));
  }
  return results;
}

void trees_are_one_launch(const DeviceRef &on, const char *kernel) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<Tensor> inputs;
    for (const auto &shape : kShapes) {
      inputs.push_back(make_tensor(dtype, shape, inputs.size()));
      inputs.push_back(make_tensor(dtype, shape, inputs.size()));
    }
    const size_t count = std::size(kShapes);
    const auto together = [&](GraphBuilder &b, const GraphBuilder::Values &v) { return make_trees(b, v, 0, count); };
    const auto results = assert_ok_value(conformance::run_graph(on, inputs, together));
    const auto bound =
        assert_ok_value(BoundGraph::make(on, assert_ok_value(conformance::build_graph(inputs, together))));
    const auto kernels = kernels_of(bound->description().report_json);
    // A result of one element is one for all where it is used: it stands alone.
    assert_true(kernels.size() <= 2);
    bool is_joined = false;
    for (const std::string &name : kernels)
      is_joined = is_joined || (name.starts_with(kernel) && name.find(" x ") != std::string::npos);
    assert_true(is_joined);
    for (size_t i = 0; i < count; ++i) {
      const auto alone = assert_ok_value(conformance::run_graph(
          on, inputs, [&](GraphBuilder &b, const GraphBuilder::Values &v) { return make_trees(b, v, i, i + 1); }));
      assert_memory_equal(results[i].data(), alone[0].data(), alone[0].size_bytes());
    }
  }
}

void interpreted_trees_are_one_launch(void **) { trees_are_one_launch(device, "elementwise("); }

void compiled_trees_are_one_launch(void **) {
  const auto opened =
      assert_ok_value(runtime::open_backend(tested, R"({"generated_kernels": "always", "plan_cache": "off"})", {}));
  const DeviceRef compiling = assert_ok_value(opened->open_device(0));
  const Tensor x = make_tensor(DType::f32, {8}, 1);
  const auto probe = conformance::run_graph(compiling, {x}, [](GraphBuilder &b, const GraphBuilder::Values &v) {
    return make_trees(b, {v[0], v[0]}, 0, 1);
  });
  if (!probe.ok()) {
    print_message("skipped: %s\n", probe.status().to_string().c_str());
    return;
  }
  trees_are_one_launch(compiling, "generated elementwise(");
}

/// Rows that repeat: only those of one shape are alike.
void broadcast_operands_are_joined_where_shapes_are_equal(void **) {
  std::vector<Tensor> inputs;
  for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{4, 8}, {4, 8}, {8, 4}, {4, 8}}) {
    inputs.push_back(make_tensor(DType::f32, {rows, columns}, inputs.size()));
    inputs.push_back(make_tensor(DType::f32, {columns}, inputs.size()));
  }
  const auto build = [&](GraphBuilder &b, const GraphBuilder::Values &v) {
    GraphBuilder::Values results;
    for (size_t i = 0; i < v.size(); i += 2)
      results.push_back(b.unary("tanh", b.mul(v[i], v[i + 1])));
    return results;
  };
  const auto bound =
      assert_ok_value(BoundGraph::make(device, assert_ok_value(conformance::build_graph(inputs, build))));
  assert_int_equal(kernels_of(bound->description().report_json).size(), 2);
  const auto results = assert_ok_value(bound->run(inputs));
  const auto reference = assert_ok_value(runtime::open_backend("reference", "{}", {}));
  const auto expected =
      assert_ok_value(conformance::run_graph(assert_ok_value(reference->open_device(0)), inputs, build));
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], 1e-6, 1e-6));
}

// ---- order ----

/// y[k] = tanh(y[k - 1] · x): the same work again and again, each on the result before.
void what_depends_comes_after(void **) {
  const Tensor x = make_tensor(DType::f32, {100}, 5);
  const auto build = [](GraphBuilder &b, const GraphBuilder::Values &v) {
    GraphBuilder::Values results{v[0]};
    for (int i = 0; i < 4; ++i)
      results.push_back(b.unary("tanh", b.mul(results.back(), v[0])));
    return results;
  };
  const auto bound = assert_ok_value(BoundGraph::make(device, assert_ok_value(conformance::build_graph({x}, build))));
  assert_int_equal(kernels_of(bound->description().report_json).size(), 4);
  const auto results = assert_ok_value(bound->run({x}));
  const auto reference = assert_ok_value(runtime::open_backend("reference", "{}", {}));
  const auto expected = assert_ok_value(conformance::run_graph(assert_ok_value(reference->open_device(0)), {x}, build));
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], 1e-6, 1e-6));
}

/// An entry is read behind the update of another and in front of its own; sums over replicas stand between updates.
void state_is_read_when_it_was_to_be(void **) {
  std::vector<std::vector<Tensor>> states;
  const auto reference = assert_ok_value(runtime::open_backend("reference", "{}", {}));
  for (const DeviceRef &on : {device, assert_ok_value(reference->open_device(0))}) {
    Arenas arenas = assert_ok_value(Arenas::make(on, make_table(DType::f32)));
    size_t seed = 0;
    for (size_t i = 0; i < kVariables; ++i) {
      for (const char *part : kParts)
        assert_ok(arenas.write(base::concat(part, i), make_tensor(DType::f32, {kSizes[i]}, ++seed)));
    }
    GraphBuilder b;
    const Scalars scalars(b);
    for (size_t i = 3; i < kVariables; ++i) {
      add_update(b, kOptimizers[0], DType::f32, i, scalars);
      // The weight as it is now becomes a part of the next gradient.
      const ValueId norm = b.reduce_sum(b.state_read(base::concat("w", i), DType::f32, {graph::Dim(kSizes[i])}));
      if (i == 6) (void)b.op("all_reduce", {norm}, {{"label", std::string("norm")}});
      if (i + 1 == kVariables) continue;
      const ValueId next = b.state_read(base::concat("g", i + 1), DType::f32, {graph::Dim(kSizes[i + 1])});
      b.state_write(b.add(next, norm), base::concat("g", i + 1));
    }
    const auto bound = assert_ok_value(BoundGraph::make(on, assert_ok_value(b.finish_graph()), {}, &arenas));
    assert_ok(bound->run({assert_ok_value(Tensor::scalar<float>(0.05F)), assert_ok_value(Tensor::scalar<bool>(true))}));
    std::vector<Tensor> state;
    for (size_t i = 0; i < kVariables; ++i) {
      state.push_back(assert_ok_value(arenas.read(base::concat("w", i))));
      state.push_back(assert_ok_value(arenas.read(base::concat("g", i))));
    }
    states.push_back(std::move(state));
  }
  for (size_t i = 0; i < states[0].size(); ++i)
    assert_ok(tensor::compare_close(states[0][i], states[1][i], 1e-4, 1e-4));
}

// ---- networks ----

size_t count(const std::vector<std::string> &kernels, const char *text) {
  size_t found = 0;
  for (const std::string &kernel : kernels)
    found += kernel.find(text) != std::string::npos ? 1 : 0;
  return found;
}

/// `finish`: launches of the program that updates everything; `joined`: those of one that updates where gradients
/// appear which do the work of several.
void check_network(const char *network, int64_t divisor, size_t finish, size_t joined) {
  const auto opened = assert_ok_value(runtime::open_backend(tested, "{}", {}));
  const auto model = assert_ok_value(tutti::testing::make_step_model(network, divisor));
  const auto apart =
      assert_ok_value(tutti::testing::StepTrainer::create(opened, model, 4, backend::Level::fast, 0, 1, true));
  const auto whole = assert_ok_value(tutti::testing::StepTrainer::create(opened, model, 4));
  const auto updates = kernels_of(apart.reports()[1]), all = kernels_of(whole.reports()[0]);
  print_message("%s: %zu variables; finish has %zu launches; of %zu of the joined program %zu are of several\n",
                network, model.variables.size(), updates.size(), all.size(), count(all, " x "));
  for (const std::string &kernel : updates)
    print_message("  %s\n", kernel.c_str());
  assert_true(model.variables.size() > finish);
  assert_true(updates.size() <= finish);
  assert_true(count(all, " x ") >= joined);
}

void networks_are_updated_in_few_launches(void **) {
  check_network("mlp", 4, 5, 1);
  check_network("resnet20", 4, 6, 2);
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(updates_of_all_variables_are_one_launch),
    cmocka_unit_test(what_differs_is_not_joined),
    cmocka_unit_test(interpreted_trees_are_one_launch),
    cmocka_unit_test(compiled_trees_are_one_launch),
    cmocka_unit_test(broadcast_operands_are_joined_where_shapes_are_equal),
    cmocka_unit_test(what_depends_comes_after),
    cmocka_unit_test(state_is_read_when_it_was_to_be),
    cmocka_unit_test(networks_are_updated_in_few_launches),
};

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = argv[1];
  device = opened->device;
  const int failures = cmocka_run_group_tests(kTests, nullptr, nullptr);
  device = nullptr;
  return failures;
}
TEST_SOURCE(run_all)

}  // namespace joined_calls_test
