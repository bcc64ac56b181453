// SPDX-License-Identifier: Apache-2.0
//
// Each op of the table on the backend under test and on the reference backend: equal dtypes, shapes and, within
// tolerance, values. Every op of the registry must appear in the table or in the list of those tested elsewhere.
//
// Products once more with factors that may be rounded to TF32, which changes nothing but on GPUs that have it.
//
// usage: backend_ops_test BACKEND      some of the cases: case_selection.h
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/random/philox.h"
#include "base/text.h"
#include "case_selection.h"
#include "graph/op_registry.h"
#include "testing.h"

namespace backend_ops_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::element;
using conformance::OpCase;
using conformance::size_of;
using tensor::DType;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;

constexpr double kTf32Error = 2e-3;

struct Tolerance {
  double relative = 0, absolute = 0;
};

/// Whether a result is as exact as f32: also a sum of f32 that is given as f64.
bool is_f32(const OpCase &one, const Tensor &result) {
  const bool has_f32 = std::ranges::any_of(one.inputs, [](const auto &input) { return input.dtype == DType::f32; });
  return result.dtype() == DType::f32 || (result.dtype() == DType::f64 && has_f32 && one.op != "cast");
}

/// f32: 1e-5 of the element or of the result's size, as a sum of terms that cancel is exact to its terms' size.
Tolerance tolerance_of(const OpCase &one, const Tensor &expected) {
  if (is_f32(one, expected)) return {1e-5, 1e-5 * size_of(expected)};
  switch (expected.dtype()) {
    case DType::f16:
      return {2e-3, 2e-3};
    case DType::bf16:
      return {1.6e-2, 1.6e-2};
    case DType::f64:
      return {1e-9, 1e-9};
    default:
      return {};
  }
}

/// The largest error of results in f32, in those of which finite numbers are expected, as a part of what tolerance_of()
/// weighs it by.
struct Worst {
  double error = 0;
  std::string where;

  void see(const Tensor &got, const Tensor &expected, const OpCase &one, size_t result) {
    if (!is_f32(one, expected) || one.absolute != 0) return;
    if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape())) return;
    const double size = size_of(expected);
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const double x = element(got, i), y = element(expected, i);
      if (!std::isfinite(y) || x == y || std::abs(x - y) <= error * (std::abs(y) + size)) continue;
      error = std::abs(x - y) / (std::abs(y) + size);
      where = base::concat(one.describe(), " result ", result);
    }
  }
};
Worst worst;

base::Result<std::vector<Tensor>> run(const backend::DeviceRef &device, const OpCase &one,
                                      const std::vector<Tensor> &inputs,
                                      backend::Precision precision = backend::Precision::f32) {
  const auto plain = [&](graph::GraphBuilder &builder, const graph::GraphBuilder::Values &values) {
    return builder.op_n(one.op, values, one.attributes);
  };
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::seed, 42).set(backend::RunScalar::batch_counter, 3);
  backend::GraphExecutorOptions options;
  options.precision = precision;
  return conformance::run_graph(device, inputs, one.build ? one.build : plain, scalars, options);
}

base::Result<std::vector<Tensor>> inputs_of(const OpCase &one) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    TUTTI_ASSIGN(Tensor input, conformance::make_operand(one.inputs[i], 100 + i));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

base::Status check_case(const OpCase &one, bool *is_missing, backend::Precision precision) {
  TUTTI_ASSIGN(const std::vector<Tensor> inputs, inputs_of(one));
  TUTTI_ASSIGN(const std::vector<Tensor> expected, run(tested->oracle, one, inputs));
  auto results = run(tested->device, one, inputs, precision);
  *is_missing = results.code() == base::Code::unimplemented && conformance::is_optional(inputs, one.attributes);
  if (*is_missing) return base::Status();
  TUTTI_TRY(results);
  if (results->size() != expected.size()) return base::internal_error(results->size(), " results");
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tolerance usual = tolerance_of(one, expected[i]);
    const double relative = one.relative == 0 ? usual.relative : one.relative;
    const double absolute = one.absolute == 0 ? usual.absolute : one.absolute;
    worst.see((*results)[i], expected[i], one, i);
    const base::Status status = tensor::compare_close((*results)[i], expected[i], relative, absolute);
    if (!status.ok()) return status.wrap(base::concat("result ", i));
  }
  return base::Status();
}

size_t tested_cases = 0;

void check_cases(const std::vector<OpCase> &cases, backend::Precision precision = backend::Precision::f32) {
  int failures = 0, missing = 0;
  tested_cases += cases.size();
  for (const OpCase &one : cases) {
    bool is_missing = false;
    const base::Status status = check_case(one, &is_missing, precision);
    missing += is_missing ? 1 : 0;
    if (status.ok()) continue;
    if (++failures <= 20) print_error("%s: %s\n", one.describe().c_str(), status.to_string().c_str());
  }
  print_message("%zu cases, %d of optional dtypes not implemented\n", cases.size(), missing);
  if (worst.error > 0) print_message("f32 is off by %.2g of its size at most: %s\n", worst.error, worst.where.c_str());
  worst = {};
  assert_int_equal(failures, 0);
}

void check_family(void **state) {
  check_cases(conformance::selected(reinterpret_cast<std::vector<OpCase> (*)()>(*state)()));
}

void something_was_selected(void **) { assert_true(tested_cases > 0); }

/// Two factors are off by 2^-11 each at most, and sums of such products by no more of their size.
void products_in_tf32(void **) {
  std::vector<OpCase> cases = conformance::product_cases();
  const auto is_other = [](const OpCase &one) {
    return one.inputs[0].dtype != DType::f32 || one.op.find("pool") != std::string::npos || one.build != nullptr;
  };
  std::erase_if(cases, is_other);
  assert_true(cases.size() > 150);
  for (OpCase &one : cases) {
    const std::vector<Tensor> expected = assert_ok_value(run(tested->oracle, one, assert_ok_value(inputs_of(one))));
    one.relative = kTf32Error;
    one.absolute = kTf32Error * size_of(expected[0]);
  }
  check_cases(conformance::selected(cases), backend::Precision::tf32_where_faster);
}

/// A new op must come with cases.
void every_op_is_tested(void **) {
  // In tests/conformance/backend_programs_test.cc, or handled before a backend sees them.
  std::set<std::string, std::less<>> seen = {
      "input", "constant", "variable", "run_scalar", "state_read", "state_write", "all_reduce", "call", "fusion",
      "custom_gradient", "scan", "cond", "update_rule",
      // Built by the functions of "conv2d gradients", "max_pool2d", "avg_pool2d".
      "conv2d_input_gradient", "conv2d_kernel_gradient", "max_pool2d_gradient", "avg_pool2d_gradient"};
  for (const auto make : {conformance::elementwise_cases, conformance::reduction_cases, conformance::shape_cases,
                          conformance::product_cases, conformance::attention_cases, conformance::normalization_cases,
                          conformance::loss_cases, conformance::training_cases}) {
    for (const OpCase &one : make())
      seen.insert(one.op);
  }
  for (const graph::OpDefinition &definition : graph::all_ops()) {
    // What has no program form is tested where it runs: tests/data/graph/routine_ops_test.cc.
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

static int run_all(int argc, char **argv) {
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
  tests.push_back({"products_in_tf32", products_in_tf32, nullptr, nullptr, nullptr});
  tests.push_back({"something_was_selected", something_was_selected, nullptr, nullptr, nullptr});
  return _cmocka_run_group_tests("ops", tests.data(), tests.size(), nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_ops_test
