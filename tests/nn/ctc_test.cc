// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: what may be given, which rows are errors, and what does not count. Its numbers
// are compared with PyTorch's in tests/conformance/backend_losses_test.cc.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graph/autodiff.h"
#include "nn_testing.h"
#include "testing.h"

namespace ctc_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

constexpr int64_t kFrames = 3, kClasses = 4, kMost = 2;

/// Of two rows.
struct Rows {
  Numbers labels = {1, 2, 3, 3}, input_lengths = {3, 3}, label_lengths = {2, 2};
  DType dtype = DType::i32;
};

Numbers scores(int64_t classes = kClasses) {
  Numbers values;
  for (int64_t i = 0; i < 2 * kFrames * classes; ++i)
    values.push_back(std::sin(double(3 * i)));
  return values;
}

std::vector<ValueId> inputs_of(Bench &bench, const Rows &rows, const Numbers &logits = scores()) {
  return {bench.input("logits", logits, {kFrames, kClasses}), bench.input("labels", rows.labels, {kMost}, rows.dtype),
          bench.input("frames", rows.input_lengths, {}, rows.dtype),
          bench.input("counts", rows.label_lengths, {}, rows.dtype)};
}

const Attributes kEach = {{"reduction", std::string("none")}};

base::Result<Numbers> losses(const Rows &rows, const Numbers &logits = scores(), Attributes attributes = kEach) {
  Bench bench;
  const ValueId loss = bench.expand("loss_ctc", inputs_of(bench, rows, logits), std::move(attributes));
  assert_string_equal(bench.error().c_str(), "");
  return bench.evaluate(loss);
}

Numbers logarithms(const Numbers &logits, int64_t row, int64_t frame) {
  const double *const own = logits.data() + (row * kFrames + frame) * kClasses;
  double sum = 0;
  for (int64_t c = 0; c < kClasses; ++c)
    sum += std::exp(own[c]);
  Numbers result;
  for (int64_t c = 0; c < kClasses; ++c)
    result.push_back(own[c] - std::log(sum));
  return result;
}

/// By the definition: the probabilities of all paths.
void test_values(void **) {
  const Numbers x = scores();
  double first = 0;
  for (const auto &path : std::vector<std::vector<size_t>>{{1, 2, 0}, {1, 0, 2}, {0, 1, 2}, {1, 1, 2}, {1, 2, 2}}) {
    double sum = 0;
    for (size_t t = 0; t < path.size(); ++t)
      sum += logarithms(x, 0, int64_t(t))[path[t]];
    first += std::exp(sum);
  }
  const double second = logarithms(x, 1, 0)[3] + logarithms(x, 1, 1)[0] + logarithms(x, 1, 2)[3];
  assert_numbers(assert_ok_value(losses({})), {-std::log(first), -second});
}

void assert_row_error(const Rows &rows, const std::string &expected) {
  const auto made = losses(rows);
  assert_false(made.ok());
  const std::string text = made.status().to_string();
  if (text.find(expected) == std::string::npos) fail_msg("got '%s', expected '%s'", text.c_str(), expected.c_str());
}

void test_rows_that_cannot_be(void **) {
  assert_row_error({.input_lengths = {3, 4}}, "ctc/input_lengths/gather' (gather): index 4 in row 1 is outside [0, 4)");
  assert_row_error({.input_lengths = {-1, 3}},
                   "ctc/input_lengths/gather' (gather): index -1 in row 0 is outside [0, 4)");
  assert_row_error({.label_lengths = {2, 3}}, "ctc/label_lengths/gather' (gather): index 3 in row 1 is outside [0, 3)");
  assert_row_error({.label_lengths = {-2, 1}},
                   "ctc/label_lengths/gather' (gather): index -2 in row 0 is outside [0, 3)");
  assert_row_error({.labels = {1, 2, 4, 3}},
                   "ctc/labels/gather' (gather): index 4 in row 1, element 0 is outside [0, 4)");
  assert_row_error({.labels = {1, -1, 3, 3}},
                   "ctc/labels/gather' (gather): index -1 in row 0, element 1 is outside [0, 4)");
  assert_row_error({.labels = {1, 2, 3, 0}},
                   "ctc/labels_that_are_blank/gather' (gather): index 1 in row 1, element 1 is outside [0, 1)");
  assert_row_error({.input_lengths = {3, 2}}, "ctc/spare_frames/gather' (gather): index -1 in row 1 is outside [0, 4)");
  assert_row_error({.input_lengths = {0, 3}}, "ctc/spare_frames/gather' (gather): index -2 in row 0 is outside [0, 4)");
}

/// Labels of the largest numbers do not wrap around to some that are right.
void test_wide_labels(void **) {
  const auto made = losses({.labels = {1, 4294967297.0, 3, 3}, .dtype = DType::i64});
  assert_false(made.ok());
  assert_true(made.status().to_string().find("index 4294967297 in row 0, element 1") != std::string::npos);
  for (const DType dtype : {DType::u8, DType::i16, DType::u32, DType::i64, DType::u64})
    assert_numbers(assert_ok_value(losses({.dtype = dtype})), assert_ok_value(losses({})));
}

/// The loss and the gradient for the logits.
std::vector<Numbers> with_gradient(const Rows &rows, const Numbers &logits, const Attributes &attributes) {
  Bench bench;
  const std::vector<ValueId> inputs = inputs_of(bench, rows, logits);
  const ValueId loss = bench.expand("loss_ctc", inputs, attributes);
  assert_string_equal(bench.error().c_str(), "");
  const auto gradient = graph::gradients_or_zeros(bench.builder, std::vector{loss}, {}, std::vector{inputs[0]});
  assert_true(gradient.ok());
  return {assert_ok_value(bench.evaluate(loss)), assert_ok_value(bench.evaluate(gradient->front()))};
}

/// Neither labels nor frames behind the end of a row change anything, and the frames have no gradient.
void test_what_is_behind_does_not_count(void **) {
  Rows rows = {.labels = {1, 2, 3, 1}, .input_lengths = {3, 2}, .label_lengths = {2, 1}};
  const std::vector<Numbers> plain = with_gradient(rows, scores(), kEach);
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double strange : {1e4, -infinity, infinity, nan}) {
    for (const double label : {-5.0, 0.0, 3.0, 1e6}) {
      Numbers logits = scores();
      for (int64_t c = 0; c < kClasses; ++c)
        logits[size_t((kFrames + 2) * kClasses + c)] = strange;
      rows.labels[3] = label;
      const std::vector<Numbers> made = with_gradient(rows, logits, kEach);
      assert_numbers(made[0], plain[0]);
      assert_numbers(made[1], plain[1]);
    }
  }
  for (int64_t c = 0; c < kClasses; ++c)
    assert_true(plain[1][size_t((kFrames + 2) * kClasses + c)] == 0);
}

/// A row without labels is all blanks; one without frames has probability 1 for no labels.
void test_nothing(void **) {
  const Rows rows = {.input_lengths = {0, 3}, .label_lengths = {0, 0}};
  double blanks = 0;
  for (int64_t t = 0; t < kFrames; ++t)
    blanks -= logarithms(scores(), 1, t)[0];
  assert_numbers(assert_ok_value(losses(rows)), {0, blanks});
  Bench bench;
  GraphBuilder &b = bench.builder;
  const ValueId logits = bench.input("logits", scores(), {kFrames, kClasses});
  const ValueId no_labels = b.broadcast_to(b.constant(0, DType::i32), {GraphBuilder::batch(), graph::Dim(0)});
  const ValueId loss = bench.expand("loss_ctc", {logits, no_labels}, {{"reduction", std::string("sum")}});
  assert_string_equal(bench.error().c_str(), "");
  for (int64_t t = 0; t < kFrames; ++t)
    blanks -= logarithms(scores(), 0, t)[0];
  assert_numbers(assert_ok_value(bench.evaluate(loss)), {blanks});
}

/// What has no alignment, or a probability of 0, is 0 and has no gradient.
void test_zero_infinity(void **) {
  Attributes zero = kEach;
  zero["zero_infinity"] = true;
  const Rows rows = {.input_lengths = {3, 2}};
  const std::vector<Numbers> made = with_gradient(rows, scores(), zero), plain = with_gradient({}, scores(), kEach);
  assert_numbers(made[0], {plain[0][0], 0});
  for (size_t i = 0; i < made[1].size(); ++i)
    assert_true(i < made[1].size() / 2 ? std::fabs(made[1][i] - plain[1][i]) < 1e-6 : made[1][i] == 0);
  Numbers logits = scores();
  for (int64_t t = 0; t < kFrames; ++t)
    logits[size_t((kFrames + t) * kClasses + 3)] = -std::numeric_limits<double>::infinity();
  const std::vector<Numbers> never = with_gradient({}, logits, zero);
  assert_numbers(never[0], {plain[0][0], 0});
  for (size_t i = made[1].size() / 2; i < made[1].size(); ++i)
    assert_true(never[1][i] == 0);
  assert_true(with_gradient({}, logits, kEach)[0][1] > 1e19);
}

/// Evaluation computes the same without what the backward pass wants.
void test_evaluation(void **) {
  Bench bench;
  const ValueId loss = bench.expand("loss_ctc", inputs_of(bench, {}), kEach, false);
  assert_numbers(assert_ok_value(bench.evaluate(loss)), assert_ok_value(losses({})));
}

void assert_refused(const std::vector<ValueId> &inputs, Bench &bench, const std::string &expected,
                    const Attributes &attributes = {}) {
  bench.expand("loss_ctc", inputs, attributes);
  if (bench.error().find(expected) == std::string::npos)
    fail_msg("got '%s', expected '%s'", bench.error().c_str(), expected.c_str());
}

void test_refused_inputs(void **) {
  Bench flat, floating, other, many, blank;
  assert_refused({flat.input("logits", scores(), {kFrames * kClasses}), flat.input("labels", {1, 2}, {1}, DType::i32)},
                 flat, "ctc: loss_ctc: expected logits of floating point [batch, time, classes], got f32 [batch, 12]");
  assert_refused({floating.input("logits", scores(), {kFrames, kClasses}), floating.input("labels", {1, 2}, {1})},
                 floating, "expected labels of integers [batch, most labels], got f32 [batch, 1]");
  assert_refused({other.input("logits", scores(), {kFrames, kClasses}), other.input("labels", {1, 2}, {}, DType::i32)},
                 other, "expected labels of integers [batch, most labels], got i32 [batch]");
  std::vector<ValueId> inputs = inputs_of(many, {});
  inputs[3] = inputs[1];
  assert_refused(inputs, many, "expected label_lengths of integers [batch], got i32 [batch, 2]");
  assert_refused(inputs_of(blank, {}), blank, "blank is 4, expected one of the 4 classes", {{"blank", int64_t{4}}});
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_values),      cmocka_unit_test(test_rows_that_cannot_be),
    cmocka_unit_test(test_wide_labels), cmocka_unit_test(test_what_is_behind_does_not_count),
    cmocka_unit_test(test_nothing),     cmocka_unit_test(test_zero_infinity),
    cmocka_unit_test(test_evaluation),  cmocka_unit_test(test_refused_inputs),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace ctc_test
