// SPDX-License-Identifier: Apache-2.0
//
// Functions and their gradients against those of PyTorch and NumPy: golden/functions.json, written by
// golden/make_function_golden.py. A function is a graph of several ops, which backends fuse as they like.
//
// usage: backend_functions_test BACKEND DIRECTORY
#include <span>
#include <utility>

#include "entry_cases.h"
#include "testing.h"

namespace backend_functions_test {

using namespace tutti::impl;
using conformance::GoldenCase;
using graph::GraphBuilder;

namespace {

conformance::EntryCases entries;

GraphBuilder::Values build(GraphBuilder &builder, const GoldenCase &golden, const GraphBuilder::Values &inputs) {
  GraphBuilder::Values further;
  GraphBuilder::Values results = {
      nn::expand(builder, golden.op, 1, inputs, golden.attributes, {.training = true}, &further)};
  results.insert(results.end(), further.begin(), further.end());
  return conformance::with_gradients(builder, golden, inputs, std::move(results));
}

int count_wrong(std::span<const GoldenCase> some, size_t line, backend::Level level, const char *instructions) {
  return conformance::count_wrong_results(entries, "functions.json", some, line, level, instructions, build);
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
