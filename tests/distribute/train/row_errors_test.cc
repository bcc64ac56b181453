// SPDX-License-Identifier: Apache-2.0
//
// A label or an index out of range is named by its row of the batch, not of the share that a device has of it: in
// training, evaluation and prediction, on one and more devices whose shares are uneven.
#include <cstring>
#include <string>
#include <vector>

#include "base/text.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/predict_case.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::row_errors_test {

namespace base = impl::base;
namespace data = impl::data;
using impl::distribute::Evaluator;
using impl::distribute::PredictOptions;

constexpr int64_t kRows = 7, kTable = 4, kClasses = 3;

/// Two indices in each row pick from a table; labels of this dtype.
static Model model_of(DType label) {
  GraphBuilder b;
  const ValueId indices = b.feature("indices", DType::i64, {GraphBuilder::batch(), 2});
  const ValueId labels = b.label("labels", label, {GraphBuilder::batch()});
  const ValueId table = b.variable("table", DType::f32, {kTable, kClasses}, {"ones", {}});
  const ValueId rows = b.op("gather", {table, indices}, {{"axis", int64_t{0}}});
  const ValueId logits = b.reduce_sum(rows, {1});
  b.set_output("logits", logits);
  b.set_loss(b.reduce_mean(b.op("sparse_softmax_cross_entropy", {logits, labels})));
  b.add_metric("mean", b.reduce_mean(logits));
  impl::graph::TrainSpec train;
  train.optimizer.op = "sgd_update";
  train.optimizer.learning_rate = b.constant(0.1, DType::f32);
  b.set_train(std::move(train));
  return assert_ok_value(b.finish());
}

struct Bad {
  int64_t row;        // of all batches
  bool is_label;      // or the second index
  std::string value;  // as errors have it
  int64_t bits;       // that value
  DType label = DType::i32;
};

static std::string text_of(const Bad &bad) {
  const std::string row = std::to_string(bad.row % kRows);
  return bad.is_label ? base::concat("label ", bad.value, " in row ", row, " is outside [0, ", kClasses, ")")
                      : base::concat("index ", bad.value, " in row ", row, ", element 1 is outside [0, ", kTable, ")");
}

static std::vector<Tensor> tensors_of(const Bad &bad, int64_t rows) {
  Tensor indices = assert_ok_value(Tensor::zeros(DType::i64, {rows, 2}));
  Tensor labels = assert_ok_value(Tensor::zeros(bad.label, {rows}));
  if (!bad.is_label) indices.mutable_data_as<int64_t>()[bad.row * 2 + 1] = bad.bits;
  if (bad.is_label) {
    const size_t size = impl::tensor::size_bytes(bad.label);
    std::memcpy(labels.mutable_data_as<char>() + static_cast<size_t>(bad.row) * size, &bad.bits, size);
  }
  return {indices, labels};
}

static data::DatasetRef batches_of(const Bad &bad, int64_t batches) {
  const std::vector<Tensor> tensors = tensors_of(bad, batches * kRows);
  data::Pipeline pipeline(data::from_slices({{"indices", tensors[0]}, {"labels", tensors[1]}}));
  return assert_ok_value(pipeline.batch(kRows).build());
}

static Status train_with(const Bad &bad, int32_t replicas, int32_t accumulation) {
  TrainerOptions options;
  options.accumulation = accumulation;
  const auto trainer =
      assert_ok_value(Trainer::open(model_of(bad.label), assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(assert_ok_value(batches_of(bad, 2)->make_iterator({}))));
  return trainer->run(-1, nullptr).status();
}

static void check(const Status &status, const Bad &bad, const char *where, int32_t replicas) {
  if (status.to_string().find(text_of(bad)) != std::string::npos) return;
  fail_msg("%s on %d devices: %s; expected: %s", where, replicas, status.to_string().c_str(), text_of(bad).c_str());
}

/// A row of the first batch and one of the second, of the first and of the last device.
constexpr int64_t kBadRows[] = {1, 6, kRows + 4};

static void training_names_the_row_of_the_batch(void **) {
  for (const int32_t replicas : {1, 2, 3}) {
    for (const int64_t row : kBadRows) {
      for (const Bad &bad : {Bad{row, true, "3", 3}, Bad{row, false, "-1", -1}}) {
        check(train_with(bad, replicas, 1), bad, "training", replicas);
        check(train_with(bad, replicas, 2), bad, "training with two batches a step", replicas);
      }
    }
  }
}

static void evaluation_and_prediction_name_the_row_of_the_batch(void **) {
  for (const int32_t replicas : {1, 2, 3}) {
    const StrategyRef strategy = assert_ok_value(make_test_strategy(replicas));
    const Model model = model_of(DType::i32);
    const auto evaluator = assert_ok_value(Evaluator::open(model, strategy, {}));
    const auto engine = open_engine(assert_ok_value(impl::graph::predict_model(model)), strategy);
    for (const int64_t row : kBadRows) {
      const Bad label{row, true, "3", 3}, index{row, false, "4", 4};
      for (const Bad &bad : {label, index}) {
        const auto iterator = assert_ok_value(batches_of(bad, 2)->make_iterator({}));
        check(evaluator->run(*numbered_version(model), *iterator, -1, nullptr).status(), bad, "evaluation", replicas);
      }
      const Bad one{row % kRows, false, "4", 4};
      const std::vector<Tensor> features{tensors_of(one, kRows)[0]};
      check(engine->run(features, nullptr).status(), one, "prediction", replicas);
    }
  }
}

/// As its dtype has it.
static void the_value_is_written_as_it_is(void **) {
  const Bad kCases[] = {{5, true, "-128", -128, DType::i8},
                        {5, true, "255", 255, DType::u8},
                        {5, true, "-32768", -32768, DType::i16},
                        {5, true, "65535", 65535, DType::u16},
                        {5, true, "-2147483648", -2147483648, DType::i32},
                        {5, true, "4294967295", 4294967295, DType::u32},
                        {5, true, "-9223372036854775808", INT64_MIN, DType::i64},
                        {5, true, "9223372036854775808", INT64_MIN, DType::u64},
                        {5, true, "18446744073709551615", -1, DType::u64}};
  for (const Bad &bad : kCases) {
    const Model model = model_of(bad.label);
    const auto evaluator = assert_ok_value(Evaluator::open(model, assert_ok_value(make_test_strategy(1)), {}));
    const auto iterator = assert_ok_value(batches_of(bad, 1)->make_iterator({}));
    check(train_with(bad, 2, 1), bad, "training", 2);
    check(evaluator->run(*numbered_version(model), *iterator, -1, nullptr).status(), bad, "evaluation", 1);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(training_names_the_row_of_the_batch),
    cmocka_unit_test(evaluation_and_prediction_name_the_row_of_the_batch),
    cmocka_unit_test(the_value_is_written_as_it_is),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::row_errors_test
