// SPDX-License-Identifier: Apache-2.0
// Metrics: what is registered, and the numbers.
#include "nn_testing.h"
#include "testing.h"

namespace metrics_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

// Largest: 0, 2, 1, 1. Second largest: 2, 0, 0, 2.
const Numbers kLogits = {2, -1, 0.5, 0, -0.25, 3, 1, 1.5, -1, -2, 4, 0};

Numbers measure(const std::string &metric, const std::vector<ValueId> &inputs, Bench &bench,
                Attributes attributes = {}) {
  attributes["name"] = std::string("m");
  bench.expand(metric, inputs, attributes);
  assert_string_equal(bench.error().c_str(), "");
  const auto found = bench.builder.model().metrics.find("m");
  assert_true(found != bench.builder.model().metrics.end());
  assert_string_equal(bench.shape(found->second).c_str(), "[]");
  return assert_ok_value(bench.evaluate(found->second));
}

void test_mean(void **) {
  Bench plain;
  assert_numbers(measure("metric_mean", {plain.input("v", {1, 2, 6, -1}, {})}, plain), {2});
  Bench matrix;
  assert_numbers(measure("metric_mean", {matrix.input("v", {1, 3, 5, 7, 0, 2}, {2})}, matrix), {3});
  Bench weighted;
  assert_numbers(
      measure("metric_mean", {weighted.input("v", {1, 2, 6, -1}, {}), weighted.input("w", {1, 0, 2, 1}, {})}, weighted),
      {(1 + 12 - 1) / 4.0});
}

void test_accuracy(void **) {
  Bench plain;
  assert_numbers(measure("metric_accuracy",
                         {plain.input("l", kLogits, {3}), plain.input("y", {0, 2, 0, 1}, {}, DType::i32)}, plain),
                 {0.75});
  Bench column;
  assert_numbers(measure("metric_accuracy",
                         {column.input("l", kLogits, {3}), column.input("y", {0, 1, 0, 1}, {1}, DType::u8)}, column),
                 {0.5});
  Bench weighted;
  assert_numbers(measure("metric_accuracy",
                         {weighted.input("l", kLogits, {3}), weighted.input("y", {0, 2, 0, 1}, {}, DType::i64),
                          weighted.input("w", {1, 1, 5, 1}, {})},
                         weighted),
                 {3 / 8.0});
}

void test_top_k_accuracy(void **) {
  const std::vector<std::pair<int64_t, double>> expected = {{1, 0.25}, {2, 0.75}, {3, 1}};
  for (const auto &[k, accuracy] : expected) {
    Bench bench;
    assert_numbers(
        measure("metric_top_k_accuracy",
                {bench.input("l", kLogits, {3}), bench.input("y", {2, 2, 0, 0}, {1}, DType::i32)}, bench, {{"k", k}}),
        {accuracy});
  }
}

void test_errors(void **) {
  Bench unnamed;
  unnamed.expand("metric_mean", {unnamed.input("v", {}, {})});
  assert_contains(unnamed.error().c_str(), "metric_mean: attribute 'name' is missing");
  Bench twice;
  const ValueId value = twice.input("v", {}, {});
  twice.expand("metric_mean", {value}, {{"name", std::string("m")}});
  twice.expand("metric_mean", {value}, {{"name", std::string("m")}});
  assert_contains(twice.error().c_str(), "there is already a metric 'm'");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_mean),
    cmocka_unit_test(test_accuracy),
    cmocka_unit_test(test_top_k_accuracy),
    cmocka_unit_test(test_errors),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace metrics_test
