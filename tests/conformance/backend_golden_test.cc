// SPDX-License-Identifier: Apache-2.0
//
// Ops against numbers computed elsewhere: golden/*.json, written by golden/make_golden.py with NumPy from the ops'
// definitions, by golden/make_extremes.py for arguments that overflow naive formulas, and by golden/make_adam_golden.py
// with PyTorch and Keras. What backend_ops_test trusts the reference backend for is checked here.
//
// usage: backend_golden_test BACKEND DIRECTORY
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backend_under_test.h"
#include "base/file.h"
#include "base/json.h"
#include "bound_graph.h"
#include "golden_case.h"
#include "graph/autodiff.h"
#include "instruction_sets.h"
#include "testing.h"

namespace backend_golden_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::GoldenCase;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;
std::string directory;

base::Status compare(const Tensor &result, const Tensor &expected, double relative, double absolute) {
  if (!(result.shape() == expected.shape()) || result.dtype() != expected.dtype())
    return base::internal_error("is ", result.describe(), ", expected ", expected.describe());
  return tensor::compare_close(result, expected, relative, absolute);
}

/// The op, and behind its outputs the gradient of the first input.
graph::GraphBuilder::Values build(graph::GraphBuilder &builder, const GoldenCase &golden,
                                  graph::GraphBuilder::Values inputs) {
  if (!golden.gradient) return builder.op_n(golden.op, inputs, golden.attributes, golden.outputs.size());
  const graph::ValueId upstream = inputs.back();
  inputs.pop_back();
  graph::GraphBuilder::Values results = builder.op_n(golden.op, inputs, golden.attributes, 1);
  const auto gradients =
      graph::gradients(builder, std::span(results), std::span(&upstream, 1), std::span(&inputs[0], 1));
  if (!gradients.ok()) builder.fail(gradients.status());
  results.push_back(gradients.ok() ? gradients->front() : graph::kNoValue);
  return results;
}

base::Status check_case(const GoldenCase &golden, const backend::GraphExecutorOptions &options) {
  const size_t outputs = golden.outputs.size();
  std::vector<Tensor> inputs = golden.inputs;
  if (golden.gradient) inputs.push_back(golden.gradient->upstream);
  TUTTI_ASSIGN(const std::vector<Tensor> results,
               conformance::run_graph(
                   tested->device, inputs,
                   [&](graph::GraphBuilder &builder, const graph::GraphBuilder::Values &values) {
                     return build(builder, golden, values);
                   },
                   {}, options));
  if (results.size() != outputs + (golden.gradient ? 1 : 0)) return base::internal_error(results.size(), " results");
  for (size_t i = 0; i < outputs; ++i) {
    const base::Status status = compare(results[i], golden.outputs[i], golden.relative, golden.absolute);
    if (!status.ok()) return status.wrap(base::concat("result ", i));
  }
  if (!golden.gradient) return base::Status();
  const auto &[upstream, gradient, relative, absolute] = *golden.gradient;
  const base::Status status = compare(results.back(), gradient, relative, absolute);
  return status.ok() ? status : status.wrap("gradient");
}

struct Count {
  int failures = 0, missing = 0;
};

void count_case(const GoldenCase &golden, const backend::GraphExecutorOptions &options, const std::string &title,
                Count &count) {
  const base::Status status = check_case(golden, options);
  if (status.ok()) return;
  if (status.code() == base::Code::unimplemented && conformance::is_optional(golden.inputs, golden.attributes)) {
    ++count.missing;
    return;
  }
  ++count.failures;
  print_error("%s (%s): %s\n", title.c_str(), golden.op.c_str(), status.to_string().c_str());
}

/// At level fast, whose kernels are those of training, and at the level of graphs that run beside it.
void check_file(void **state) {
  const std::string name = static_cast<const char *>(*state);
  const std::vector<GoldenCase> cases = assert_ok_value(conformance::read_golden(directory + "/" + name + ".json"));
  Count count;
  conformance::on_instruction_sets([&](const char *instructions) {
    for (const backend::Level level : {backend::Level::fast, backend::Level::repeatable}) {
      for (size_t i = 0; i < cases.size(); ++i) {
        count_case(cases[i], {.level = level},
                   base::concat(name, ".json case ", i, ", level ", static_cast<int>(level), ", ", instructions),
                   count);
      }
    }
  });
  if (count.missing != 0)
    print_message("%s: %d runs of optional dtypes are not implemented\n", name.c_str(), count.missing);
  assert_true(!cases.empty());
  assert_int_equal(count.failures, 0);
}

/// The steps of an optimizer with its state in an arena, the update in place.
base::Status follow(const conformance::Trajectory &trajectory) {
  const tensor::DType f32 = tensor::DType::f32;
  backend::StateTable table;
  const int32_t arena = table.add_arena("weights");
  const int64_t elements = trajectory.state[0].elements();
  const size_t slots = trajectory.state.size();
  for (size_t i = 0; i < slots; ++i)
    TUTTI_TRY(table.add({.name = std::to_string(i),
                         .arena = arena,
                         .offset = 64 * static_cast<int64_t>(i),
                         .dims = {elements},
                         .storage_bytes = 4 * elements}));
  TUTTI_ASSIGN(conformance::Arenas arenas, conformance::Arenas::make(tested->device, table));
  graph::GraphBuilder b;
  graph::GraphBuilder::Values inputs;
  for (size_t i = 0; i < slots; ++i) {
    TUTTI_TRY(arenas.write(std::to_string(i), trajectory.state[i]));
    inputs.push_back(b.state_read(std::to_string(i), f32, {elements}));
  }
  inputs.insert(inputs.begin() + 1, b.input("gradient", f32, {elements}));
  inputs.push_back(b.input("rate", f32, {}));
  if (trajectory.op == "adam_update") inputs.push_back(b.run_scalar("iteration", tensor::DType::i64));
  inputs.push_back(b.input("ok", tensor::DType::boolean, {}));
  const auto updated = b.op_n(trajectory.op, inputs, trajectory.attributes, slots);
  for (size_t i = 0; i < slots; ++i)
    b.state_write(updated[i], std::to_string(i));
  TUTTI_ASSIGN(const graph::Graph graph, b.finish_graph());
  TUTTI_ASSIGN(const auto bound, conformance::BoundGraph::make(tested->device, graph, {}, &arenas));
  for (size_t step = 0; step < trajectory.steps.size(); ++step) {
    const conformance::TrajectoryStep &expected = trajectory.steps[step];
    TUTTI_ASSIGN(const Tensor rate, Tensor::scalar<float>(static_cast<float>(expected.rate)));
    TUTTI_ASSIGN(const Tensor ok, Tensor::scalar<bool>(expected.ok));
    backend::RunScalars scalars;
    scalars.set(backend::RunScalar::iteration, expected.iteration);
    TUTTI_TRY(bound->run({expected.gradient, rate, ok}, scalars));
    for (size_t i = 0; i < slots; ++i) {
      TUTTI_ASSIGN(const Tensor value, arenas.read(std::to_string(i)));
      const base::Status status = tensor::compare_close(value, expected.state[i], 2e-6, trajectory.absolute[i]);
      if (!status.ok()) return status.wrap(base::concat("step ", step, ", state ", i));
    }
  }
  return base::Status();
}

void check_trajectories(void **state) {
  const std::string name = static_cast<const char *>(*state);
  const auto trajectories = assert_ok_value(conformance::read_trajectories(directory + "/" + name + ".json"));
  assert_true(trajectories.size() >= 8);
  conformance::on_instruction_sets([&](const char *instructions) {
    for (size_t i = 0; i < trajectories.size(); ++i) {
      print_message("%s %zu: %s, %s\n", name.c_str(), i, trajectories[i].op.c_str(), instructions);
      assert_ok(follow(trajectories[i]));
    }
  });
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (argc != 3) return 2;
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  directory = argv[2];
  static const char *const kFiles[] = {"elementwise",         "binary",  "reductions",    "shapes", "matmul",
                                       "convolution",         "pooling", "normalization", "losses", "attention",
                                       "group_normalization", "top_k",   "extremes"};
  std::vector<CMUnitTest> tests;
  for (const char *file : kFiles)
    tests.push_back({file, check_file, nullptr, nullptr, const_cast<char *>(file)});
  for (const char *file : {"trajectories", "adam"})
    tests.push_back({file, check_trajectories, nullptr, nullptr, const_cast<char *>(file)});
  return _cmocka_run_group_tests("golden", tests.data(), tests.size(), nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_golden_test
