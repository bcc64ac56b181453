// SPDX-License-Identifier: Apache-2.0
//
// Products whose library stores what gelu is computed of beside its result: which nodes the report says are one,
// against the reference backend, and bit by bit against kernels that do it apart. The emulated GPU has a library for
// that (emulated_library.h).
//
// usage: kept_tails_test PLUG-IN
#include <cmath>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/step_models.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "graph/batch.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace kept_tails_test {

using namespace tutti::impl;
using backend::Level;
using conformance::BackendUnderTest;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

BackendUnderTest *tested = nullptr;

const graph::Attributes kApproximate = {{"approximate", true}};

std::vector<Tensor> operands(const std::vector<Dims> &shapes, DType dtype = DType::f32) {
  return assert_ok_value(conformance::make_operands(shapes, dtype, 500));
}

size_t count_of(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; ++count)
    at = text.find(part, at + 1);
  return count;
}

const char kLibrary[] = "\"kernel\":\"emulated(";

/// The device as it is opened with the library of the name, or with none.
backend::DeviceRef open_with(const char *library) {
  assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", library, 1), 0);
  const auto opened = assert_ok_value(runtime::open_backend(tested->name, "{}", {}));
  auto device = assert_ok_value(opened->open_device(0));
  assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", "gelu", 1), 0);
  return device;
}

std::string report_of(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build) {
  const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
  return assert_ok_value(conformance::BoundGraph::make(tested->device, graph))->description().report_json;
}

/// How many nodes are kernels of the library. All results are right, and have the bits of those without it.
size_t check(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, double limit = 1e-4) {
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, build));
  const auto apart = assert_ok_value(conformance::run_graph(open_with(""), inputs, build));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    assert_ok(tensor::compare_close(results[i], expected[i], limit, limit));
    assert_memory_equal(results[i].data(), apart[i].data(), static_cast<size_t>(results[i].size_bytes()));
  }
  return count_of(report_of(inputs, build), kLibrary);
}

/// h = gelu(u), and the gradient reads u, which dies there.
Values layer(GraphBuilder &b, ValueId u, ValueId w, ValueId dy) {
  const ValueId y = b.matmul(b.op("gelu", {u}, kApproximate), w);
  return {y, b.op("gelu_gradient", {b.matmul(dy, w, false, true), u}, kApproximate)};
}

/// Two nodes, gelu and what it is computed of, whatever lies between that and the product.
void what_the_gradient_reads_is_stored(void **) {
  for (const int64_t rows : {1, 7, 40}) {
    const std::vector<Tensor> inputs = operands({{rows, 9}, {9, 16}, {16}, {rows, 16}, {16, 5}, {rows, 5}});
    for (const bool has_bias : {false, true}) {
      for (const bool has_addend : {false, true}) {
        const size_t nodes = check(inputs, [&](GraphBuilder &b, const Values &v) {
          ValueId u = b.matmul(v[0], v[1]);
          if (has_addend) u = b.sub(v[3], u);
          if (has_bias) u = b.add(u, v[2]);
          return layer(b, u, v[4], v[5]);
        });
        assert_int_equal(nodes, 2);
      }
    }
  }
}

void sixteen_bits_are_stored_as_they_are(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const std::vector<Tensor> inputs = operands({{20, 24}, {24, 16}}, dtype);
    const size_t nodes = check(
        inputs,
        [&](GraphBuilder &b, const Values &v) {
          const ValueId y = b.cast(b.matmul(v[0], v[1]), DType::f32);
          const ValueId u = b.cast(b.add_scalar(y, 0.5), dtype);
          return Values{u, b.cast(b.op("gelu", {b.cast(u, DType::f32)}, kApproximate), dtype)};
        },
        dtype == DType::bf16 ? 0x1p-7 : 0x1p-9);
    assert_int_equal(nodes, 2);
  }
}

void convolutions_store_it_too(void **) {
  const std::vector<Tensor> inputs = operands({{2, 6, 5, 4}, {3, 3, 4, 8}, {8}, {2, 6, 5, 8}});
  const size_t nodes = check(inputs, [](GraphBuilder &b, const Values &v) {
    const ValueId u = b.op("conv2d", {v[0], v[1], v[2]});
    return Values{b.op("gelu", {u}, kApproximate), b.op("gelu_gradient", {v[3], u}, kApproximate)};
  });
  assert_int_equal(nodes, 2);
}

/// Of several that read it, one is computed with it; of what is stored, others may read at any time.
void one_follows(void **) {
  const std::vector<Tensor> inputs = operands({{6, 5}, {5, 8}, {8}});
  const size_t nodes = check(inputs, [](GraphBuilder &b, const Values &v) {
    const ValueId u = b.add(b.matmul(v[0], v[1]), v[2]);
    const ValueId h = b.op("gelu", {u}, kApproximate);
    const ValueId late = b.neg(b.unary("exp", b.reduce_sum(u, {0})));
    return Values{b.neg(h), b.reduce_sum(h, {1}), b.op("gelu", {u}, kApproximate), b.mul(late, u), u};
  });
  assert_int_equal(nodes, 2);
}

/// The exact gelu, what reads more, another shape of it, or is read by nothing else.
void what_is_no_gelu_of_it_stays_apart(void **) {
  const std::vector<Tensor> inputs = operands({{6, 5}, {5, 8}, {6, 8}});
  const auto nodes_with = [&](const std::function<ValueId(GraphBuilder &, ValueId, const Values &)> &read) {
    return check(inputs, [&](GraphBuilder &b, const Values &v) {
      const ValueId u = b.matmul(v[0], v[1]);
      return Values{u, read(b, u, v)};
    });
  };
  using Read = std::function<ValueId(GraphBuilder &, ValueId, const Values &)>;
  for (const Read &read : std::initializer_list<Read>{
           [](GraphBuilder &b, ValueId u, const Values &) { return b.op("gelu", {u}); },
           [](GraphBuilder &b, ValueId u, const Values &v) { return b.mul(b.op("gelu", {u}, kApproximate), v[2]); },
           [](GraphBuilder &b, ValueId u, const Values &v) { return b.op("gelu", {b.add(u, v[2])}, kApproximate); },
           [](GraphBuilder &b, ValueId u, const Values &) {
             return b.op("gelu", {b.reshape(u, {8, 6})}, kApproximate);
           },
           [](GraphBuilder &b, ValueId u, const Values &) {
             return b.op("gelu", {b.broadcast_to(u, {2, 6, 8})}, kApproximate);
           },
           [](GraphBuilder &b, ValueId u, const Values &) { return b.mul(b.op("gelu", {u}, kApproximate), u); }})
    assert_int_equal(nodes_with(read), 0);
  const size_t alone = check(inputs, [](GraphBuilder &b, const Values &v) {
    return Values{b.op("gelu", {b.matmul(v[0], v[1])}, kApproximate)};
  });
  assert_int_equal(alone, 0);
}

/// What the product reads may not be where gelu, or what is made in its memory, is written.
void an_entry_is_not_written_while_it_is_read(void **) {
  const int64_t size = 48;
  backend::StateTable table;
  const int32_t arena = table.add_arena("weights");
  assert_ok(table.add({.name = "w", .arena = arena, .dims = {size, size}, .storage_bytes = size * size * 4}));
  const std::vector<Tensor> inputs = operands({{size, size}, {size, size}});
  for (const bool is_direct : {false, true}) {
    std::vector<Tensor> results;
    for (const backend::DeviceRef &device : {tested->device, tested->oracle}) {
      auto arenas = assert_ok_value(conformance::Arenas::make(device, table));
      assert_ok(arenas.write("w", inputs[0]));
      GraphBuilder b;
      const ValueId w = b.state_read("w", DType::f32, {size, size}), x = b.input("x", DType::f32, {size, size});
      const ValueId u = b.matmul(x, w), h = b.op("gelu", {u}, kApproximate);
      b.set_result("u", b.reduce_sum(u, {0}));
      if (!is_direct) b.set_result("h", b.reduce_sum(h, {0}));
      b.state_write(is_direct ? h : b.neg(h), "w");
      const auto bound =
          assert_ok_value(conformance::BoundGraph::make(device, assert_ok_value(b.finish_graph()), {}, &arenas));
      if (device == tested->device)
        assert_int_equal(count_of(bound->description().report_json, kLibrary), is_direct ? 0 : 2);
      for (Tensor &sum : assert_ok_value(bound->run({inputs[1]})))
        results.push_back(std::move(sum));
      results.push_back(assert_ok_value(arenas.read("w")));
    }
    const size_t count = results.size() / 2;
    for (size_t i = 0; i < count; ++i)
      assert_ok(tensor::compare_close(results[i], results[i + count], 1e-3, 1e-3));
  }
}

/// What lies behind a sum over replicas is not made before it.
void nothing_moves_over_an_all_reduce(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {6, 5}), w = b.input("w", DType::f32, {5, 8});
  const ValueId u = b.matmul(x, w);
  b.set_result("sum", b.op("all_reduce", {b.reduce_sum(u, {0})}));
  b.set_result("h", b.op("gelu", {u}, kApproximate));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(tested->device, assert_ok_value(b.finish_graph())));
  assert_int_equal(count_of(bound->description().report_json, kLibrary), 0);
}

// ---- networks ----

struct Steps {
  size_t nodes = 0;  ///< that are kernels of the library
  int64_t workspace_bytes = 0;
  std::vector<std::vector<float>> values;  ///< weights after some steps, or gradients, and the loss
};

Steps train(const char *name, const char *library, Level level, int32_t flags, bool keeps_gradients) {
  assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", library, 1), 0);
  const auto model = assert_ok_value(tutti::testing::make_step_model(name, 4));
  const auto opened = assert_ok_value(runtime::open_backend(tested->name, "{}", {}));
  auto trainer =
      assert_ok_value(tutti::testing::StepTrainer::create(opened, model, 1, level, flags, 1, keeps_gradients));
  assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", "gelu", 1), 0);
  Steps steps;
  for (const std::string &report : trainer.reports())
    steps.nodes += count_of(report, kLibrary);
  steps.workspace_bytes = trainer.workspace_bytes();
  for (int i = 0; i < 2; ++i)
    assert_ok(trainer.step());
  for (const auto &variable : model.variables)
    steps.values.push_back(assert_ok_value(trainer.values(keeps_gradients ? "gradient/0/" : "weight/", variable.name)));
  steps.values.push_back({static_cast<float>(trainer.loss())});
  assert_true(std::isfinite(trainer.loss()));
  return steps;
}

/// Two nodes in each of two blocks, at every level, in f32 and in mixed precision, beside sums that the library has as
/// well; in no more memory. In f16 nothing: there what a bias was added to is f32, and gelu's result is not.
void networks_train_as_without(void **) {
  struct Case {
    const char *name;
    size_t nodes;
    Level level = Level::fast;
    int32_t flags = 0;
    bool keeps_gradients = false;
  };
  for (const Case &one :
       {Case{"gpt2_tiny", 4}, Case{"gpt2_tiny", 4, Level::repeatable}, Case{"gpt2_tiny", 4, Level::invariant},
        Case{"gpt2_tiny", 4, Level::fast, 0, true}, Case{"gpt2_tiny", 4, Level::fast, TUTTI_COMPILE_BF16_WHERE_FASTER},
        Case{"gpt2_tiny", 4, Level::fast, TUTTI_COMPILE_BF16_WHERE_FASTER, true}, Case{"transformer", 0}}) {
    const Steps with = train(one.name, "gelu", one.level, one.flags, one.keeps_gradients);
    const Steps without = train(one.name, "sums", one.level, one.flags, one.keeps_gradients);
    assert_int_equal(with.nodes - without.nodes, one.nodes);
    assert_true(with.values == without.values);
    assert_true(with.workspace_bytes <= without.workspace_bytes);
    print_message("%s: %lld bytes of workspace, %lld without\n", one.name, static_cast<long long>(with.workspace_bytes),
                  static_cast<long long>(without.workspace_bytes));
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  setenv("TUTTI_EMULATED_LIBRARY", "gelu", 1);
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &opened.value();
  const CMUnitTest tests[] = {
      cmocka_unit_test(what_the_gradient_reads_is_stored), cmocka_unit_test(sixteen_bits_are_stored_as_they_are),
      cmocka_unit_test(convolutions_store_it_too),         cmocka_unit_test(one_follows),
      cmocka_unit_test(what_is_no_gelu_of_it_stays_apart), cmocka_unit_test(an_entry_is_not_written_while_it_is_read),
      cmocka_unit_test(nothing_moves_over_an_all_reduce),  cmocka_unit_test(networks_train_as_without),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace kept_tails_test
