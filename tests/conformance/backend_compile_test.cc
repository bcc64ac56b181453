// SPDX-License-Identifier: Apache-2.0
//
// Every case of the table of ops is compiled, and none run: for backends that compile for devices which are not here
// (TUTTI_TESTED_OPTIONS with pjrt_topology). Which cases: case_selection.h.
//
// usage: backend_compile_test BACKEND
#include <chrono>
#include <vector>

#include "backend/executable.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "case_selection.h"
#include "graph/serialize.h"
#include "testing.h"

namespace backend_compile_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::OpCase;

namespace {

BackendUnderTest *tested = nullptr;

base::Status compile(const OpCase &one) {
  std::vector<tensor::Tensor> inputs;
  for (const conformance::Operand &operand : one.inputs) {
    TUTTI_ASSIGN(tensor::Tensor input, conformance::make_operand(operand, inputs.size()));
    inputs.push_back(std::move(input));
  }
  const auto plain = [&](graph::GraphBuilder &builder, const graph::GraphBuilder::Values &values) {
    return builder.op_n(one.op, values, one.attributes);
  };
  TUTTI_ASSIGN(const graph::Graph graph, conformance::build_graph(inputs, one.build ? one.build : plain));
  const std::string text = graph::to_json_text(graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  return backend::Executable::compile(*tested->device, request).status();
}

void every_case_compiles(void **state) {
  const std::vector<OpCase> cases = conformance::selected(reinterpret_cast<std::vector<OpCase> (*)()>(*state)());
  const auto begin = std::chrono::steady_clock::now();
  int failures = 0;
  for (const OpCase &one : cases) {
    const base::Status status = compile(one);
    if (!status.ok()) print_error("%s: %s\n", one.describe().c_str(), status.to_string().c_str());
    failures += status.ok() ? 0 : 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  print_message("%zu cases in %.1f seconds\n", cases.size(), seconds.count());
  assert_int_equal(failures, 0);
}

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  const std::pair<const char *, std::vector<OpCase> (*)()> kFamilies[] = {
      {"elementwise", conformance::elementwise_cases},
      {"reductions", conformance::reduction_cases},
      {"shapes", conformance::shape_cases},
      {"products", conformance::product_cases},
      {"attention", conformance::attention_cases},
      {"normalization", conformance::normalization_cases},
      {"losses", conformance::loss_cases},
      {"training", conformance::training_cases},
  };
  std::vector<CMUnitTest> tests;
  for (const auto &[name, make] : kFamilies)
    tests.push_back({name, every_case_compiles, nullptr, nullptr, reinterpret_cast<void *>(make)});
  return _cmocka_run_group_tests("compile", tests.data(), tests.size(), nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_compile_test
