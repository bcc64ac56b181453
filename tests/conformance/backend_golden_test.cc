// SPDX-License-Identifier: Apache-2.0
//
// Ops against numbers computed elsewhere: golden/*.json, written by golden/make_golden.py with NumPy from the ops'
// definitions. What backend_ops_test trusts the reference backend for is checked here.
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
#include "testing.h"

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::GoldenCase;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;
std::string directory;

base::Status check_case(const GoldenCase &golden) {
  const size_t outputs = golden.outputs.size();
  TUTTI_ASSIGN(const std::vector<Tensor> results,
               conformance::run_graph(tested->device, golden.inputs,
                                      [&](graph::GraphBuilder &builder, const graph::GraphBuilder::Values &inputs) {
                                        return builder.op_n(golden.op, inputs, golden.attributes, outputs);
                                      }));
  if (results.size() != outputs) return base::internal_error(results.size(), " results");
  for (size_t i = 0; i < outputs; ++i) {
    if (!(results[i].shape() == golden.outputs[i].shape()) || results[i].dtype() != golden.outputs[i].dtype())
      return base::internal_error("result ", i, " is ", results[i].describe(), ", expected ",
                                  golden.outputs[i].describe());
    const base::Status status = tensor::compare_close(results[i], golden.outputs[i], golden.relative, golden.absolute);
    if (!status.ok()) return status.wrap(base::concat("result ", i));
  }
  return base::Status();
}

void check_file(void **state) {
  const std::string name = static_cast<const char *>(*state);
  std::vector<GoldenCase> cases = assert_ok_value(conformance::read_golden(directory + "/" + name + ".json"));
  int failures = 0, missing = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const base::Status status = check_case(cases[i]);
    if (status.ok()) continue;
    if (status.code() == base::Code::unimplemented && conformance::is_optional(cases[i].inputs, cases[i].attributes)) {
      ++missing;
      continue;
    }
    ++failures;
    print_error("%s.json case %zu (%s): %s\n", name.c_str(), i, cases[i].op.c_str(), status.to_string().c_str());
  }
  if (missing != 0) print_message("%s: %d cases of optional dtypes are not implemented\n", name.c_str(), missing);
  assert_true(!cases.empty());
  assert_int_equal(failures, 0);
}

/// Ten steps of an optimizer with its state in an arena, the update in place.
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
      const base::Status status = tensor::compare_close(value, expected.state[i], 2e-6, 2e-6);
      if (!status.ok()) return status.wrap(base::concat("step ", step, ", state ", i));
    }
  }
  return base::Status();
}

void check_trajectories(void **) {
  const auto trajectories = assert_ok_value(conformance::read_trajectories(directory + "/trajectories.json"));
  assert_true(trajectories.size() >= 8);
  for (const conformance::Trajectory &trajectory : trajectories) {
    print_message("%s\n", trajectory.op.c_str());
    assert_ok(follow(trajectory));
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  directory = argv[2];
  static const char *const kFiles[] = {"elementwise",         "binary",  "reductions",    "shapes", "matmul",
                                       "convolution",         "pooling", "normalization", "losses", "attention",
                                       "group_normalization", "top_k"};
  std::vector<CMUnitTest> tests;
  for (const char *file : kFiles)
    tests.push_back({file, check_file, nullptr, nullptr, const_cast<char *>(file)});
  tests.push_back({"trajectories", check_trajectories, nullptr, nullptr, nullptr});
  return _cmocka_run_group_tests("golden", tests.data(), tests.size(), nullptr, nullptr);
}
