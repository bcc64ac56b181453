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

std::string error_of(const std::string &metric, const std::vector<int64_t> &predictions,
                     const std::vector<int64_t> &targets, DType dtype, Attributes attributes = {}) {
  Bench bench;
  attributes["name"] = std::string("m");
  const ValueId p = bench.input("p", {}, predictions), t = bench.input("t", {}, targets, dtype);
  bench.expand(metric, {p, t}, attributes);
  return bench.error();
}

void test_errors_of_shapes(void **) {
  assert_contains(error_of("metric_mean_squared_error", {3}, {2}, DType::f32).c_str(),
                  "metric_mean_squared_error: predictions [batch, 3] and targets [batch, 2] must have the same shape");
  assert_contains(error_of("metric_precision", {3}, {2}, DType::i32, {{"average", std::string("macro")}}).c_str(),
                  "targets [batch, 2] do not fit predictions [batch, 3]: expected [batch]");
  assert_contains(error_of("metric_recall", {3}, {}, DType::i32).c_str(),
                  "average 'binary' takes targets of the shape of predictions; for class numbers choose micro, macro");
  assert_contains(error_of("metric_f_beta", {}, {}, DType::i32, {{"average", std::string("micro")}}).c_str(),
                  "expected predictions [batch, classes], got [batch]: average 'binary' is for one class");
  assert_contains(error_of("metric_confusion_matrix", {3}, {}, DType::f32).c_str(),
                  "targets are f32, expected class numbers, which are integers");
  assert_contains(error_of("metric_auc", {3}, {}, DType::i32).c_str(),
                  "for class numbers choose micro, macro or weighted");
  Bench weights;
  const ValueId p = weights.input("p", {}, {3}), t = weights.input("t", {}, {3}), w = weights.input("w", {}, {2});
  weights.expand("metric_binary_accuracy", {p, t, w}, {{"name", std::string("m")}});
  assert_contains(weights.error().c_str(), "weights [batch, 2] do not fit the values [batch, 3]");
}

void test_errors_of_attributes(void **) {
  assert_contains(error_of("metric_precision", {}, {}, DType::i32, {{"threshold", 1.5}}).c_str(),
                  "attribute 'threshold': expected from 0 to 1, got 1.5");
  assert_contains(error_of("metric_auc", {}, {}, DType::i32, {{"thresholds", std::vector<double>{0.5, -0.1}}}).c_str(),
                  "attribute 'thresholds' has -0.1, expected numbers from 0 to 1");
  const auto of_classes = [](std::vector<int64_t> classes) {
    return error_of("metric_recall", {3}, {}, DType::i32,
                    {{"average", std::string("macro")}, {"classes", std::move(classes)}});
  };
  assert_contains(of_classes({0, 3}).c_str(), "attribute 'classes' has class 3, expected a class below 3");
  assert_contains(of_classes({-1}).c_str(), "attribute 'classes' has class -1, expected a class below 3");
  assert_contains(of_classes({1, 1}).c_str(), "attribute 'classes' has class 1 twice, expected each once");
  assert_contains(error_of("metric_recall", {}, {}, DType::i32, {{"classes", std::vector<int64_t>{0}}}).c_str(),
                  "attribute 'classes' is for averages over classes, not for 'binary'");
}

/// At the ends of probabilities: everything or nothing is above a limit of logits.
void test_limits_of_logits(void **) {
  for (const auto &[threshold, recall] : {std::pair(0.0, 1.0), std::pair(1.0, 0.0), std::pair(0.5, 0.5)}) {
    Bench bench;
    const ValueId p = bench.input("p", {-50, 50, 3, -2}, {}), t = bench.input("t", {1, 1, 0, 0}, {}, DType::i32);
    assert_numbers(measure("metric_recall", {p, t}, bench, {{"threshold", threshold}, {"from_logits", true}}),
                   {recall});
  }
}

/// Whatever the batch is, what is added up over batches is a sum of f64.
void test_counts_are_exact(void **) {
  Bench bench;
  const ValueId p = bench.input("p", {0.9, 0.1, 0.8}, {}), t = bench.input("t", {1, 1, 0}, {}, DType::i32);
  bench.expand("metric_matthews_correlation", {p, t}, {{"name", std::string("m")}});
  assert_string_equal(bench.error().c_str(), "");
  int sums = 0;
  for (const graph::Node &node : bench.builder.graph().nodes()) {
    if (node.op != "reduce_sum" || bench.builder.rank(node.inputs[0]) == 0) continue;
    assert_true(bench.builder.dtype(node.inputs[0]) == DType::f64);
    ++sums;
  }
  assert_true(sums >= 4);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_mean),
    cmocka_unit_test(test_accuracy),
    cmocka_unit_test(test_top_k_accuracy),
    cmocka_unit_test(test_errors),
    cmocka_unit_test(test_errors_of_shapes),
    cmocka_unit_test(test_errors_of_attributes),
    cmocka_unit_test(test_limits_of_logits),
    cmocka_unit_test(test_counts_are_exact),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace metrics_test
