// SPDX-License-Identifier: Apache-2.0
//
// tests lib/graph/batch.cc, placement.cc and replicate.cc in training: rows that are sequences of a length that only
// the data tells, merged with their positions, give on any number of replicas what they give on one.
#include <cmath>
#include <vector>

#include "data/dataset/batch_stage.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::sequences_test {

namespace data = impl::data;
namespace graph = impl::graph;

constexpr int64_t kMostRows = 8, kWidth = 3, kUnits = 5;

enum class Norm { none, batch, dropout };

static graph::Dim length() { return data::unknown_dim(); }

/// A dense layer over each position, what `norm` says, all positions of all rows as one matrix, weighted by their
/// number, and another dense layer.
static Model sequence_model(Norm norm) {
  graph::GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), length(), kWidth});
  const ValueId first = b.variable("first", DType::f32, {kWidth, kUnits}, {"glorot_uniform", {}});
  ValueId hidden = b.unary("tanh", b.matmul(x, first));
  if (norm == Norm::batch) {
    const ValueId scale = b.variable("scale", DType::f32, {kUnits}, {"ones", {}});
    const ValueId offset = b.variable("offset", DType::f32, {kUnits}, {"zeros", {}});
    hidden = b.op_n("batch_norm_training", {hidden, scale, offset})[0];
  }
  const graph::Dim positions = GraphBuilder::batch() * length();
  hidden = b.reshape(hidden, {positions, kUnits});
  if (norm == Norm::dropout) hidden = b.op("dropout", {hidden}, {{"rate", 0.3}});
  const ValueId number =
      b.op("iota", {}, {{"dims", graph::Dims{positions, 1}}, {"axis", int64_t{0}}, {"dtype", DType::f32}});
  hidden = b.mul(hidden, b.unary("sin", number));
  const ValueId second = b.variable("second", DType::f32, {kUnits, 1}, {"glorot_uniform", {}});
  const ValueId square = b.unary("square", b.add_scalar(b.matmul(hidden, second), -0.5));
  b.set_loss(b.reduce_mean(square));
  graph::TrainSpec train;
  train.optimizer.learning_rate = b.constant(0.2, DType::f32);
  train.optimizer.op = "sgd_update";
  b.set_train(std::move(train));
  return assert_ok_value(b.finish());
}

struct Batch {
  int64_t rows, length;
};
/// Of fewer rows than there are devices, too.
static const std::vector<Batch> kBatches = {{5, 4}, {3, 1}, {1, 7}, {kMostRows, 4}, {2, 2}, {7, 3}};

/// Losses of the steps, and variables after the last, of batches whose numbers are a fixed function.
static Trained train_sequences(const Model &model, int32_t replicas, int32_t accumulation = 1) {
  const data::ElementSpec row = {{{"x", data::Role::feature, DType::f32, {length(), kWidth}}}};
  const auto feed = assert_ok_value(data::Feed::create(assert_ok_value(data::batch_spec(row, kMostRows)), 16));
  for (size_t index = 0; index < kBatches.size(); ++index) {
    const auto [rows, positions] = kBatches[index];
    std::vector<float> numbers;
    for (int64_t i = 0; i < rows * positions * kWidth; ++i)
      numbers.push_back(static_cast<float>(std::sin(static_cast<double>(7 * i + 31 * static_cast<int64_t>(index)))));
    data::Element element;
    element.components.push_back(assert_ok_value(Tensor::from_values<float>({rows, positions, kWidth}, numbers)));
    assert_ok(feed->push(std::move(element), nullptr, impl::base::Deadline::after_ms(10000)));
  }
  assert_ok(feed->end());
  TrainerOptions options;
  options.accumulation = accumulation;
  const auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(assert_ok_value(feed->dataset()->make_iterator({}))));
  Trained result;
  result.examples = assert_ok_value(trainer->run(-1, nullptr)).examples;
  for (const double loss : trainer->loss_history())
    result.losses.push_back(loss);
  for (const graph::VariableSpec &variable : model.variables)
    result.variables[variable.name] = to_doubles(assert_ok_value(trainer->get_variable(variable.name)));
  result.replicas_identical = assert_ok_value(trainer->replicas_are_identical());
  return result;
}

static void assert_same(const Trained &got, const Trained &expected) {
  assert_int_equal(got.examples, 26);
  assert_true(got.replicas_identical);
  const double losses = relative_difference(got.losses, expected.losses), weights = relative_difference(got, expected);
  if (!(losses < 2e-5 && weights < 2e-5)) fail_msg("losses differ by %g, variables by %g", losses, weights);
}

static void test_replicas_are_one_device(void **) {
  for (const Norm norm : {Norm::none, Norm::batch, Norm::dropout}) {
    const Model model = sequence_model(norm);
    const Trained one = train_sequences(model, 1);
    assert_int_equal(one.losses.size(), kBatches.size());
    for (int32_t replicas = 2; replicas <= 4; ++replicas)
      assert_same(train_sequences(model, replicas), one);
  }
}

/// Two batches to a step, of another number of rows and another length: the mean over positions is that of each batch.
static void test_several_batches_to_a_step(void **) {
  const Model model = sequence_model(Norm::none);
  const Trained one = train_sequences(model, 1, 2);
  assert_int_equal(one.losses.size(), kBatches.size() / 2);
  for (int32_t replicas = 2; replicas <= 3; ++replicas)
    assert_same(train_sequences(model, replicas, 2), one);
}

/// A length is one number in a batch: what does not have it is told, and never read.
static void test_lengths_that_differ_are_told(void **) {
  graph::GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), length()});
  const ValueId y = b.feature("y", DType::f32, {GraphBuilder::batch(), length()});
  const ValueId w = b.variable("w", DType::f32, {1}, {"ones", {}});
  b.set_loss(b.reduce_mean(b.mul(w, b.mul(x, y))));
  graph::TrainSpec train;
  train.optimizer.learning_rate = b.constant(0.1, DType::f32);
  train.optimizer.op = "sgd_update";
  b.set_train(std::move(train));
  const Model model = assert_ok_value(b.finish());
  const data::ElementSpec row = {
      {{"x", data::Role::feature, DType::f32, {length()}}, {"y", data::Role::feature, DType::f32, {length()}}}};
  for (int32_t replicas = 1; replicas <= 2; ++replicas) {
    const auto feed = assert_ok_value(data::Feed::create(assert_ok_value(data::batch_spec(row, kMostRows)), 16));
    data::Element element;
    element.components.push_back(assert_ok_value(Tensor::from_values<float>({2, 9}, std::vector<float>(18, 1))));
    element.components.push_back(assert_ok_value(Tensor::from_values<float>({2, 4}, std::vector<float>(8, 1))));
    assert_ok(feed->push(std::move(element), nullptr, impl::base::Deadline::after_ms(10000)));
    const auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), {}));
    assert_ok(trainer->initialize());
    assert_ok(trainer->attach_input(assert_ok_value(feed->dataset()->make_iterator({}))));
    assert_error_contains(trainer->run(1, nullptr), "input 'y' has dims [batch, unknown]; a batch of 2 rows has");
    assert_ok(feed->end());
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_replicas_are_one_device),
    cmocka_unit_test(test_several_batches_to_a_step),
    cmocka_unit_test(test_lengths_that_differ_are_told),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::sequences_test
