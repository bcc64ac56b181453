// SPDX-License-Identifier: Apache-2.0
//
// Functions and their gradients against those of PyTorch and NumPy: golden/functions.json, written by
// golden/make_function_golden.py. A function is a graph of several ops, which backends fuse as they like.
//
// usage: backend_functions_test BACKEND DIRECTORY
#include <span>
#include <string>
#include <vector>

#include "entry_cases.h"
#include "graph/autodiff.h"
#include "testing.h"

namespace backend_functions_test {

using namespace tutti::impl;
using conformance::GoldenCase;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::Tensor;

namespace {

conformance::EntryCases entries;

/// The results, and the gradients for the inputs that are differentiated.
GraphBuilder::Values build(GraphBuilder &builder, const GoldenCase &golden, const GraphBuilder::Values &inputs) {
  GraphBuilder::Values further;
  GraphBuilder::Values results = {
      nn::expand(builder, golden.op, 1, inputs, golden.attributes, {.training = true}, &further)};
  results.insert(results.end(), further.begin(), further.end());
  if (!builder.ok() || golden.differentiated.empty()) return results;
  GraphBuilder::Values targets, seeds, wanted;
  for (const ValueId result : results) {
    if (tensor::is_floating(builder.dtype(result))) targets.push_back(result);
  }
  for (const Tensor &upstream : golden.upstreams)
    seeds.push_back(builder.constant(upstream));
  for (const int64_t input : golden.differentiated)
    wanted.push_back(inputs.at(static_cast<size_t>(input)));
  const auto gradients = graph::gradients_or_zeros(builder, targets, seeds, wanted);
  if (!gradients.ok()) builder.fail(gradients.status());
  if (gradients.ok()) results.insert(results.end(), gradients->begin(), gradients->end());
  return results;
}

base::Status compare(const Tensor &result, const Tensor &expected, const GoldenCase &golden) {
  if (!(result.shape() == expected.shape()) || result.dtype() != expected.dtype())
    return base::internal_error("is ", result.describe(), ", expected ", expected.describe());
  return tensor::compare_close(result, expected, golden.relative, golden.absolute);
}

size_t result_count(const GoldenCase &golden) { return golden.outputs.size() + golden.gradients.size(); }

/// `results`: those of the case, and its gradients.
base::Status check_case(const GoldenCase &golden, std::span<const Tensor> results) {
  for (size_t i = 0; i < golden.outputs.size(); ++i) {
    const base::Status status = compare(results[i], golden.outputs[i], golden);
    if (!status.ok()) return status.wrap(base::concat("result ", i));
  }
  for (size_t i = 0; i < golden.gradients.size(); ++i) {
    const base::Status status = compare(results[golden.outputs.size() + i], golden.gradients[i], golden);
    if (!status.ok()) return status.wrap(base::concat("gradient of input ", golden.differentiated[i]));
  }
  return base::Status();
}

/// How many of some cases, the first of which is in line `line`, are wrong.
int count_wrong(std::span<const GoldenCase> some, size_t line, backend::Level level, const char *instructions) {
  const auto ran = conformance::run_together(entries, some, level, build);
  if (!ran.ok()) {
    print_error("functions.json from line %zu on, %s: %s\n", line, instructions, ran.status().to_string().c_str());
    return static_cast<int>(some.size());
  }
  int wrong = 0;
  size_t at = 0;
  for (const GoldenCase &golden : some) {
    assert_true(at + result_count(golden) <= ran->size());
    const base::Status status = check_case(golden, std::span(*ran).subspan(at, result_count(golden)));
    if (!status.ok()) {
      ++wrong;
      print_error("functions.json line %zu (%s), %s: %s\n", line, golden.op.c_str(), instructions,
                  status.to_string().c_str());
    }
    at += result_count(golden);
    ++line;
  }
  return wrong;
}

void test_values_and_gradients(void **) {
  const int wrong = conformance::count_wrong_cases(entries, 16, count_wrong);
  assert_true(entries.cases.size() > 300);
  assert_int_equal(wrong, 0);
}

/// No function is left out, and no attribute.
void test_every_function_has_numbers(void **) {
  conformance::assert_every_entry_has_cases(entries,
                                            [](const nn::Definition &definition) { return definition.is_function; });
}

}  // namespace

static int run_all(int argc, char **argv) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_values_and_gradients),
      cmocka_unit_test(test_every_function_has_numbers),
  };
  return conformance::run_entry_tests(argc, argv, "functions.json", entries, "functions", tests);
}
TEST_SOURCE(run_all)

}  // namespace backend_functions_test
