// SPDX-License-Identifier: Apache-2.0
//
// Each op of the table on the backend under test and on the reference backend: equal dtypes, shapes and, within
// tolerance, values. Every op of the registry must appear in the table or in the list of those tested elsewhere.
//
// usage: backend_ops_test BACKEND
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/philox.h"
#include "base/text.h"
#include "graph/op_registry.h"
#include "testing.h"

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::OpCase;
using tensor::DType;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 2e-3;
    case DType::bf16:
      return 1.6e-2;
    case DType::f64:
      return 1e-9;
    default:
      return 2e-5;
  }
}

base::Result<std::vector<Tensor>> run(const backend::DeviceRef &device, const OpCase &one,
                                      const std::vector<Tensor> &inputs) {
  const auto plain = [&](graph::GraphBuilder &builder, const graph::GraphBuilder::Values &values) {
    return builder.op_n(one.op, values, one.attributes);
  };
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::seed, 42).set(backend::RunScalar::batch_counter, 3);
  return conformance::run_graph(device, inputs, one.build ? one.build : plain, scalars);
}

base::Status check_case(const OpCase &one, bool *is_missing) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    TUTTI_ASSIGN(Tensor input, conformance::make_operand(one.inputs[i], 100 + i));
    inputs.push_back(std::move(input));
  }
  TUTTI_ASSIGN(const std::vector<Tensor> expected, run(tested->oracle, one, inputs));
  auto results = run(tested->device, one, inputs);
  *is_missing = results.code() == base::Code::unimplemented && conformance::is_optional(inputs, one.attributes);
  if (*is_missing) return base::Status();
  TUTTI_TRY(results);
  if (results->size() != expected.size()) return base::internal_error(results->size(), " results");
  for (size_t i = 0; i < expected.size(); ++i) {
    const double relative = std::max(one.relative, one.relative == 0 ? tolerance_of(expected[i].dtype()) : 0);
    const double absolute = std::max(one.absolute, one.absolute == 0 ? tolerance_of(expected[i].dtype()) : 0);
    const base::Status status = tensor::compare_close((*results)[i], expected[i], relative, absolute);
    if (!status.ok()) return status.wrap(base::concat("result ", i));
  }
  return base::Status();
}

void check_family(void **state) {
  const auto make = reinterpret_cast<std::vector<OpCase> (*)()>(*state);
  int failures = 0, missing = 0;
  const std::vector<OpCase> cases = make();
  for (const OpCase &one : cases) {
    bool is_missing = false;
    const base::Status status = check_case(one, &is_missing);
    missing += is_missing ? 1 : 0;
    if (status.ok()) continue;
    if (++failures <= 20) print_error("%s: %s\n", one.describe().c_str(), status.to_string().c_str());
  }
  print_message("%zu cases, %d of optional dtypes not implemented\n", cases.size(), missing);
  assert_int_equal(failures, 0);
}

/// A new op must come with cases.
void every_op_is_tested(void **) {
  // In tests/conformance/backend_programs_test.cc, or handled before a backend sees them.
  std::set<std::string, std::less<>> seen = {
      "input", "constant", "variable", "run_scalar", "state_read", "state_write", "all_reduce", "call", "fusion",
      "custom_gradient", "scan", "cond",
      // Built by the functions of "conv2d gradients", "max_pool2d", "avg_pool2d".
      "conv2d_input_gradient", "conv2d_kernel_gradient", "max_pool2d_gradient", "avg_pool2d_gradient"};
  for (const auto make : {conformance::elementwise_cases, conformance::reduction_cases, conformance::shape_cases,
                          conformance::product_cases, conformance::attention_cases, conformance::normalization_cases,
                          conformance::loss_cases, conformance::training_cases}) {
    for (const OpCase &one : make())
      seen.insert(one.op);
  }
  for (const graph::OpDefinition &definition : graph::all_ops()) {
    // What has no program form is tested where it runs: tests/data/routine_ops_test.cc.
    if (!definition.program || seen.count(definition.name) != 0) continue;
    print_error("op '%s' has no case in tests/conformance/backend_cases.cc\n", std::string(definition.name).c_str());
    _fail(__FILE__, __LINE__);
  }
}

struct Family {
  const char *name;
  std::vector<OpCase> (*make)();
};

}  // namespace

int main(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  static const Family kFamilies[] = {
      {"elementwise", conformance::elementwise_cases},
      {"reductions", conformance::reduction_cases},
      {"shapes", conformance::shape_cases},
      {"products", conformance::product_cases},
      {"attention", conformance::attention_cases},
      {"normalization", conformance::normalization_cases},
      {"losses", conformance::loss_cases},
      {"training", conformance::training_cases},
  };
  std::vector<CMUnitTest> tests{{"every_op_is_tested", every_op_is_tested, nullptr, nullptr, nullptr}};
  for (const Family &family : kFamilies)
    tests.push_back({family.name, check_family, nullptr, nullptr, reinterpret_cast<void *>(family.make)});
  return _cmocka_run_group_tests("ops", tests.data(), tests.size(), nullptr, nullptr);
}
