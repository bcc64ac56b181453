// SPDX-License-Identifier: Apache-2.0
// Losses against the formulas in double: reductions, weights per example and per class, label smoothing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/autodiff.h"
#include "nn_testing.h"
#include "testing.h"

namespace losses_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

constexpr int64_t kRows = 4, kClasses = 3;
const Numbers kLogits = {2, -1, 0.5, 0, 0.25, -3, 1, 1, 1, -2, 4, 0};
const Numbers kLabels = {0, 2, 1, 1};
const Numbers kWeights = {1, 0.5, 0, 3};
const Numbers kClassWeights = {2, 0.25, 5};

double log_softmax(const Numbers &logits, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t c = 0; c < kClasses; ++c)
    sum += std::exp(logits[size_t(row * kClasses + c)]);
  return logits[size_t(row * kClasses + column)] - std::log(sum);
}

/// Per example: cross-entropy against (1 - smoothing) * target + smoothing / classes.
Numbers cross_entropies(const Numbers &targets, double smoothing) {
  Numbers result;
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t c = 0; c < kClasses; ++c) {
      const double target = (1 - smoothing) * targets[size_t(row * kClasses + c)] + smoothing / double(kClasses);
      sum -= target * log_softmax(kLogits, row, c);
    }
    result.push_back(sum);
  }
  return result;
}

Numbers one_hot(const Numbers &labels) {
  Numbers result(size_t(kRows * kClasses), 0);
  for (size_t row = 0; row < labels.size(); ++row)
    result[row * size_t(kClasses) + size_t(labels[row])] = 1;
  return result;
}

double reduced(const Numbers &values, const Numbers &weights, const std::string &reduction) {
  double sum = 0, total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double weight = weights.empty() ? 1 : weights[i];
    sum += weight * values[i];
    total += weight;
  }
  if (reduction == "sum") return sum;
  return reduction == "mean" ? sum / double(values.size()) : total == 0 ? 0 : sum / total;
}

struct Case {
  bool weighted, by_class;
  double smoothing;
  const char *reduction;
};

void check_sparse(const Case &c) {
  Bench bench;
  std::vector<ValueId> inputs = {bench.input("logits", kLogits, {kClasses}),
                                 bench.input("labels", kLabels, {}, DType::i32)};
  Attributes attributes = {{"reduction", std::string(c.reduction)}, {"label_smoothing", c.smoothing}};
  Numbers weights(size_t(kRows), 1);
  if (c.weighted) {
    inputs.push_back(bench.input("weights", kWeights, {}));
    weights = kWeights;
  }
  if (c.by_class) {
    attributes["class_weights"] = kClassWeights;
    for (size_t row = 0; row < weights.size(); ++row)
      weights[row] *= kClassWeights[size_t(kLabels[row])];
  }
  const ValueId loss = bench.expand("loss_sparse_softmax_cross_entropy", inputs, attributes);
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(loss).c_str(), "[]");
  const double expected = reduced(cross_entropies(one_hot(kLabels), c.smoothing), weights, c.reduction);
  assert_numbers(assert_ok_value(bench.evaluate(loss)), {expected});
}

void test_sparse_softmax_cross_entropy(void **) {
  for (const char *reduction : {"mean", "sum", "weighted_mean"})
    for (const bool weighted : {false, true})
      for (const bool by_class : {false, true})
        for (const double smoothing : {0.0, 0.1, 1.0})
          check_sparse({weighted, by_class, smoothing, reduction});
}

void test_defaults_are_mean_without_smoothing(void **) {
  Bench bench;
  const ValueId loss =
      bench.expand("loss_sparse_softmax_cross_entropy",
                   {bench.input("logits", kLogits, {kClasses}), bench.input("labels", kLabels, {}, DType::i64)});
  assert_numbers(assert_ok_value(bench.evaluate(loss)), {reduced(cross_entropies(one_hot(kLabels), 0), {}, "mean")});
}

void test_labels_and_weights_with_a_last_dimension_of_1(void **) {
  Bench bench;
  const ValueId loss =
      bench.expand("loss_sparse_softmax_cross_entropy",
                   {bench.input("logits", kLogits, {kClasses}), bench.input("labels", kLabels, {1}, DType::u8),
                    bench.input("weights", kWeights, {1})},
                   {{"class_weights", kClassWeights}});
  assert_string_equal(bench.error().c_str(), "");
  Numbers weights = kWeights;
  for (size_t row = 0; row < weights.size(); ++row)
    weights[row] *= kClassWeights[size_t(kLabels[row])];
  assert_numbers(assert_ok_value(bench.evaluate(loss)),
                 {reduced(cross_entropies(one_hot(kLabels), 0), weights, "mean")});
}

void test_weighted_mean_of_no_weight_is_zero(void **) {
  Bench bench;
  const ValueId loss =
      bench.expand("loss_sparse_softmax_cross_entropy",
                   {bench.input("logits", kLogits, {kClasses}), bench.input("labels", kLabels, {}, DType::i32),
                    bench.input("weights", {0, 0, 0, 0}, {})},
                   {{"reduction", std::string("weighted_mean")}});
  assert_numbers(assert_ok_value(bench.evaluate(loss)), {0});
}

void test_softmax_cross_entropy(void **) {
  const Numbers targets = {0.2, 0.3, 0.5, 1, 0, 0, 0, 0.5, 0.5, 0.1, 0.1, 0.8};
  for (const char *reduction : {"mean", "sum", "weighted_mean"}) {
    Bench bench;
    const ValueId loss =
        bench.expand("loss_softmax_cross_entropy",
                     {bench.input("logits", kLogits, {kClasses}), bench.input("targets", targets, {kClasses}),
                      bench.input("weights", kWeights, {})},
                     {{"reduction", std::string(reduction)}, {"label_smoothing", 0.2}});
    assert_string_equal(bench.error().c_str(), "");
    assert_numbers(assert_ok_value(bench.evaluate(loss)),
                   {reduced(cross_entropies(targets, 0.2), kWeights, reduction)});
  }
}

void test_sigmoid_cross_entropy(void **) {
  const Numbers logits = {30, -30, 0, 1.5, -2, 0.25, 80, -80}, targets = {1, 0, 1, 0, 1, 0.5, 0, 1};
  Numbers per_example;
  for (size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (size_t i = row * 2; i < row * 2 + 2; ++i)
      sum += std::max(logits[i], 0.0) - logits[i] * targets[i] + std::log1p(std::exp(-std::abs(logits[i])));
    per_example.push_back(sum / 2);
  }
  for (const char *reduction : {"mean", "sum", "weighted_mean"}) {
    Bench bench;
    const ValueId loss = bench.expand("loss_sigmoid_cross_entropy",
                                      {bench.input("logits", logits, {2}), bench.input("targets", targets, {2}),
                                       bench.input("weights", kWeights, {})},
                                      {{"reduction", std::string(reduction)}});
    assert_numbers(assert_ok_value(bench.evaluate(loss)), {reduced(per_example, kWeights, reduction)});
  }
}

void test_mean_squared_error(void **) {
  const Numbers predictions = {1, 2, 3, 4, -1, 0.5, 0, 0}, targets = {0, 2, 1, 8, -1, 1.5, 3, -4};
  Numbers per_example;
  for (size_t row = 0; row < 4; ++row)
    per_example.push_back((std::pow(predictions[row * 2] - targets[row * 2], 2) +
                           std::pow(predictions[row * 2 + 1] - targets[row * 2 + 1], 2)) /
                          2);
  for (const char *reduction : {"mean", "sum", "weighted_mean"}) {
    Bench bench;
    const ValueId loss =
        bench.expand("loss_mean_squared_error",
                     {bench.input("predictions", predictions, {2}), bench.input("targets", targets, {2}, DType::f64),
                      bench.input("weights", kWeights, {})},
                     {{"reduction", std::string(reduction)}});
    assert_string_equal(bench.error().c_str(), "");
    assert_numbers(assert_ok_value(bench.evaluate(loss)), {reduced(per_example, kWeights, reduction)});
  }
}

// ---- weights of elements ----

constexpr int64_t kTokens = 2;

/// Of each token w times its loss, and w: means over an example's tokens.
struct PerExample {
  Numbers weighted, weights;
};

PerExample per_example(const Numbers &values, const Numbers &weights) {
  PerExample result;
  for (size_t row = 0; row < size_t(kRows); ++row) {
    double weighted = 0, total = 0;
    for (size_t i = row * size_t(kTokens); i < (row + 1) * size_t(kTokens); ++i) {
      weighted += weights[i] * values[i];
      total += weights[i];
    }
    result.weighted.push_back(weighted / double(kTokens));
    result.weights.push_back(total / double(kTokens));
  }
  return result;
}

double reduced_elements(const Numbers &values, const Numbers &weights, const std::string &reduction) {
  const PerExample examples = per_example(values, weights);
  const double weighted = std::accumulate(examples.weighted.begin(), examples.weighted.end(), 0.0);
  const double total = std::accumulate(examples.weights.begin(), examples.weights.end(), 0.0);
  return reduction == "sum" ? weighted : reduction == "mean" ? weighted / double(kRows) : weighted / total;
}

const Numbers kTokenLogits = {2, -1, 0.5, 0, 0.25, -3, 1, 1, 1, -2, 4, 0, -0.5, 3, 1, 2, 2, -2, -1, 0, 1, 0, 0, 0.75};
const Numbers kTokenLabels = {0, 2, 1, 1, 2, 0, 0, 1}, kTokenWeights = {1, 0, 0.5, 2, 0, 0, 3, 1};

Numbers token_losses() {
  Numbers losses;
  for (size_t token = 0; token < kTokenLabels.size(); ++token) {
    double sum = 0;
    for (size_t c = 0; c < size_t(kClasses); ++c)
      sum += std::exp(kTokenLogits[token * size_t(kClasses) + c]);
    losses.push_back(std::log(sum) - kTokenLogits[token * size_t(kClasses) + size_t(kTokenLabels[token])]);
  }
  return losses;
}

/// Padding is masked this way: logits [batch, time, classes], weights [batch, time].
void test_weights_of_elements(void **) {
  for (const char *reduction : {"mean", "sum", "weighted_mean"}) {
    for (const bool by_class : {false, true}) {
      Bench bench;
      Attributes attributes = {{"reduction", std::string(reduction)}};
      Numbers weights = kTokenWeights;
      if (by_class) attributes["class_weights"] = kClassWeights;
      for (size_t i = 0; by_class && i < weights.size(); ++i)
        weights[i] *= kClassWeights[size_t(kTokenLabels[i])];
      const ValueId loss = bench.expand("loss_sparse_softmax_cross_entropy",
                                        {bench.input("logits", kTokenLogits, {kTokens, kClasses}),
                                         bench.input("labels", kTokenLabels, {kTokens}, DType::i32),
                                         bench.input("weights", kTokenWeights, {kTokens}, DType::f64)},
                                        attributes);
      assert_string_equal(bench.error().c_str(), "");
      assert_numbers(assert_ok_value(bench.evaluate(loss)), {reduced_elements(token_losses(), weights, reduction)});
    }
  }
}

/// One for all counts for each example.
void test_one_weight_for_all(void **) {
  for (const char *reduction : {"mean", "sum", "weighted_mean"}) {
    Bench bench;
    const ValueId loss =
        bench.expand("loss_sparse_softmax_cross_entropy",
                     {bench.input("logits", kLogits, {kClasses}), bench.input("labels", kLabels, {}, DType::i32),
                      bench.builder.constant(0.5, DType::f32)},
                     {{"reduction", std::string(reduction)}});
    assert_string_equal(bench.error().c_str(), "");
    assert_numbers(assert_ok_value(bench.evaluate(loss)),
                   {reduced(cross_entropies(one_hot(kLabels), 0), Numbers(size_t(kRows), 0.5), reduction)});
  }
}

/// Weights of examples beside those of classes, which are of elements.
void test_weights_of_examples_beside_class_weights(void **) {
  Bench bench;
  Numbers weights;
  for (size_t i = 0; i < kTokenLabels.size(); ++i)
    weights.push_back(kWeights[i / size_t(kTokens)] * kClassWeights[size_t(kTokenLabels[i])]);
  const ValueId loss =
      bench.expand("loss_sparse_softmax_cross_entropy",
                   {bench.input("logits", kTokenLogits, {kTokens, kClasses}),
                    bench.input("labels", kTokenLabels, {kTokens}, DType::i32), bench.input("weights", kWeights, {})},
                   {{"class_weights", kClassWeights}, {"reduction", std::string("weighted_mean")}});
  assert_string_equal(bench.error().c_str(), "");
  assert_numbers(assert_ok_value(bench.evaluate(loss)), {reduced_elements(token_losses(), weights, "weighted_mean")});
}

/// Weights with fewer dimensions than the loss weigh all elements below.
void test_weights_of_groups_of_elements(void **) {
  const Numbers predictions = {1, 2, 3, 4, -1, 0.5, 0, 0, 2, 2, 1, 0, 5, 1, 1, 3};
  Numbers squares;
  for (size_t i = 0; i < predictions.size(); i += 2)
    squares.push_back((predictions[i] * predictions[i] + predictions[i + 1] * predictions[i + 1]) / 2);
  for (const char *reduction : {"mean", "sum", "weighted_mean"}) {
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{kTokens}, {kTokens, 1}}) {
      Bench bench;
      const ValueId loss = bench.expand("loss_mean_squared_error",
                                        {bench.input("predictions", predictions, {kTokens, 2}),
                                         bench.input("targets", Numbers(predictions.size(), 0), {kTokens, 2}),
                                         bench.input("weights", kTokenWeights, shape)},
                                        {{"reduction", std::string(reduction)}});
      assert_string_equal(bench.error().c_str(), "");
      assert_numbers(assert_ok_value(bench.evaluate(loss)), {reduced_elements(squares, kTokenWeights, reduction)});
    }
  }
}

void test_l2_penalty(void **) {
  Bench bench;
  const ValueId kernel = bench.builder.variable("kernel", DType::f32, {2, 2});
  const ValueId penalty = bench.expand("loss_l2_penalty", {kernel}, {{"rate", 0.01}});
  assert_string_equal(bench.shape(penalty).c_str(), "[]");
  assert_numbers(assert_ok_value(bench.evaluate(penalty, {{"kernel", {1, -2, 3, 0.5}}})), {0.01 * 14.25});
}

/// Class numbers of any integer type, and of no other.
void test_types_of_labels(void **) {
  for (const char *entry :
       {"sparse_softmax_cross_entropy", "sparse_categorical_cross_entropy", "sparse_softmax_focal", "multi_margin"}) {
    Numbers losses;
    for (const DType dtype : {DType::i32, DType::u8, DType::i64, DType::f32}) {
      Bench bench;
      const ValueId loss = bench.expand("loss_" + std::string(entry),
                                        {bench.input("scores", {0.25, 0.25, 0.5, 0.2, 0.3, 0.5}, {kClasses}),
                                         bench.input("labels", {1, 2}, {}, dtype)},
                                        {{"class_weights", kClassWeights}});
      if (dtype == DType::f32) {
        assert_contains(bench.error().c_str(), "labels are f32, expected class numbers, which are integers");
        continue;
      }
      assert_string_equal(bench.error().c_str(), "");
      losses.push_back(assert_ok_value(bench.evaluate(loss)).at(0));
    }
    assert_numbers(losses, {losses[0], losses[0], losses[0]});
  }
}

std::string error_of(const std::string &entry, const std::vector<std::vector<int64_t>> &shapes,
                     const Attributes &attributes = {}) {
  Bench bench;
  bench.builder.push_scope("head");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < shapes.size(); ++i)
    inputs.push_back(bench.input("i" + std::to_string(i), {}, shapes[i], i == 1 ? DType::i32 : DType::f32));
  bench.expand(entry, inputs, attributes);
  return bench.error();
}

void test_errors(void **) {
  const std::string sparse = "loss_sparse_softmax_cross_entropy";
  assert_contains(error_of(sparse, {{3}, {}}, {{"class_weights", Numbers{1, 2}}}).c_str(),
                  "head: loss_sparse_softmax_cross_entropy: attribute 'class_weights' needs one weight for each of the "
                  "3 classes, got 2");
  assert_contains(error_of(sparse, {{}, {}}).c_str(), "expected logits [batch, classes]");
  assert_contains(error_of(sparse, {{3}, {}}, {{"reduction", std::string("median")}}).c_str(),
                  "attribute 'reduction' must be one of mean, sum, weighted_mean, none; got 'median'");
  assert_contains(error_of(sparse, {{3}, {}}, {{"label_smoothing", 1.5}}).c_str(),
                  "attribute 'label_smoothing': expected from 0 to 1, got 1.5");
  assert_contains(error_of(sparse, {{3}, {}}, {{"label_smooting", 0.5}}).c_str(),
                  "unknown attribute 'label_smooting', did you mean 'label_smoothing'?");
  assert_contains(error_of(sparse, {{3}}).c_str(), "input 'labels' is missing");
  assert_contains(error_of("loss_mean_squared_error", {{3}, {2}}).c_str(),
                  "predictions [batch, 3] and targets [batch, 2] must have the same shape");
  assert_contains(error_of(sparse, {{5, 3}, {5}, {4}}).c_str(),
                  "head: loss_sparse_softmax_cross_entropy: weights [batch, 4] do not fit the values [batch, 5]: "
                  "expected one for each example, or for each element");
}

struct Mistake {
  std::string entry;
  std::vector<std::vector<int64_t>> shapes;  ///< without the rows; those of weights last
  Attributes attributes;
  const char *error;
};

/// The error of a loss that a model gave wrong shapes or numbers names the input or the attribute.
void test_mistakes(void **) {
  const double nan = std::nan("");
  const std::vector<Mistake> mistakes = {
      {"quantile",
       {{3}, {3}},
       {{"quantile", 0.0}},
       "attribute 'quantile': expected more than 0 and less than 1, got 0"},
      {"quantile",
       {{3}, {3}},
       {{"quantile", 1.0}},
       "attribute 'quantile': expected more than 0 and less than 1, got 1"},
      {"quantile",
       {{3}, {3}},
       {{"quantile", nan}},
       "attribute 'quantile': expected more than 0 and less than 1, got nan"},
      {"quantile", {{3}, {3}}, {}, "attribute 'quantile' is missing"},
      {"huber", {{3}, {3}}, {{"delta", -1.0}}, "loss_huber: attribute 'delta': expected more than 0, got -1"},
      {"huber", {{3}, {2}}, {}, "predictions [batch, 3] and targets [batch, 2] must have the same shape"},
      {"poisson", {{3}, {3, 1}}, {}, "predictions [batch, 3] and targets [batch, 3, 1] must have the same shape"},
      {"hinge", {{3}, {3}}, {{"margin", -0.5}}, "loss_hinge: attribute 'margin': expected at least 0, got -0.5"},
      {"hinge",
       {{3}, {3}},
       {{"class_weights", Numbers{1, 2, 3}}},
       "needs two weights, of target 0 and of target 1, got 3"},
      {"multi_margin", {{3}, {2}}, {}, "labels [batch, 2] do not fit scores [batch, 3]: expected [batch]"},
      {"multi_margin", {{}, {}}, {}, "expected scores [batch, classes], got a value of lower rank"},
      {"sparse_softmax_focal", {{3}, {}}, {{"gamma", -1.0}}, "attribute 'gamma': expected at least 0, got -1"},
      {"sparse_softmax_focal",
       {{4, 3}, {5}},
       {},
       "labels [batch, 5] do not fit logits [batch, 4, 3]: expected [batch, 4]"},
      {"sigmoid_focal", {{3}, {3}}, {{"alpha", 1.5}}, "attribute 'alpha': expected from 0 to 1, got 1.5"},
      {"softmax_focal",
       {{3}, {3}},
       {{"class_weights", Numbers{1, -2, 1}}},
       "the weight of class 1 is -2, expected a number of at least 0"},
      {"softmax_cross_entropy", {{3}, {3}}, {{"class_weights", Numbers{1, nan, 1}}}, "the weight of class 1 is nan"},
      {"softmax_cross_entropy",
       {{3}, {3}},
       {{"class_weights", Numbers{1}}},
       "needs one weight for each of the 3 classes, got 1"},
      {"sigmoid_cross_entropy",
       {{3}, {3}},
       {{"positive_weights", Numbers{1, 2}}},
       "attribute 'positive_weights' needs one number, or one for each of the 3 elements of the last dimension, got 2"},
      {"binary_cross_entropy",
       {{3}, {3}},
       {{"epsilon", 0.5}},
       "attribute 'epsilon': expected more than 0 and less than 0.5, got 0.5"},
      {"binary_cross_entropy",
       {{3}, {3}},
       {{"positive_weights", Numbers{-1}}},
       "attribute 'positive_weights': number 0 is -1"},
      {"sparse_categorical_cross_entropy", {{3}, {3}}, {}, "labels [batch, 3] do not fit predictions [batch, 3]"},
      {"categorical_cross_entropy", {{}, {}}, {}, "expected predictions [batch, classes]"},
      {"kullback_leibler",
       {{3}, {3}},
       {{"form", std::string("odds")}},
       "attribute 'form' must be one of probabilities, log_probabilities, logits; got 'odds'"},
      {"dice", {{3}, {3}}, {{"class_weights", Numbers{1, 2, 3}}}, "attribute 'class_weights' needs 'per_class'"},
      {"dice",
       {{3}, {3}},
       {{"per_class", true}, {"over", std::string("batch")}},
       "'per_class' is for dice over examples"},
      {"dice", {{}, {}}, {{"per_class", true}}, "expected predictions [batch, classes]"},
      {"dice", {{3}, {3}}, {{"smooth", -1.0}}, "attribute 'smooth': expected at least 0, got -1"},
      {"cosine_similarity", {{}, {}}, {}, "expected predictions [batch, channels]"},
      {"contrastive", {{3}, {3}, {2}}, {}, "targets [batch, 2] do not fit the pairs: expected [batch]"},
      {"contrastive", {{3}, {3}, {}}, {{"margin", -1.0}}, "attribute 'margin': expected at least 0, got -1"},
      {"triplet", {{3}, {3}, {4}}, {}, "anchor [batch, 3] and negative [batch, 4] must have the same shape"},
      {"triplet", {{3}, {3}, {3}}, {{"margin", -1.0}}, "attribute 'margin': expected at least 0, got -1"},
      {"triplet", {{3}, {3}}, {}, "input 'negative' is missing"},
      {"triplet", {{3}, {3}, {3}, {2}}, {}, "weights [batch, 2] do not fit the values [batch]"},
  };
  for (const Mistake &one : mistakes)
    assert_contains(error_of("loss_" + one.entry, one.shapes, one.attributes).c_str(), one.error);
}

/// A class number that there is not is an error of the run, with whatever loss.
void test_labels_out_of_range(void **) {
  for (const char *entry :
       {"sparse_softmax_cross_entropy", "sparse_categorical_cross_entropy", "sparse_softmax_focal", "multi_margin"}) {
    for (const double label : {-1.0, 3.0, 4294967297.0}) {
      for (const bool by_class : {false, true}) {
        Bench bench;
        const DType dtype = label > 3 ? DType::i64 : DType::i32;
        Attributes attributes;
        if (by_class) attributes["class_weights"] = kClassWeights;
        const ValueId loss = bench.expand("loss_" + std::string(entry),
                                          {bench.input("scores", {0.25, 0.25, 0.5, 0.2, 0.3, 0.5}, {kClasses}),
                                           bench.input("labels", {1, label}, {}, dtype)},
                                          attributes);
        assert_string_equal(bench.error().c_str(), "");
        const auto result = bench.evaluate(loss);
        if (result.ok()) fail_msg("%s takes label %g", entry, label);
        assert_contains(result.status().to_string().c_str(), std::to_string(int64_t(label)).c_str());
      }
    }
  }
}

/// Where a distance or a norm is 0 the loss is as elsewhere, and its gradient is 0 or that of the other vector.
void test_vectors_without_a_direction(void **) {
  struct Degenerate {
    const char *entry;
    std::vector<Numbers> inputs;  ///< [2, 2] each; targets [2]
    Numbers losses;
  };
  const Numbers zeros(4, 0), ones(4, 1), twos(4, 2);
  const std::vector<Degenerate> cases = {
      {"cosine_similarity", {zeros, ones}, {0, 0}},
      {"cosine_similarity", {ones, zeros}, {0, 0}},
      {"cosine_similarity", {zeros, zeros}, {0, 0}},
      {"contrastive", {ones, ones, {0, 1}}, {1, 0}},
      {"triplet", {ones, ones, ones}, {1, 1}},
      {"triplet", {ones, ones, twos}, {0, 0}},
      {"triplet", {ones, twos, ones}, {1 + std::sqrt(2.0), 1 + std::sqrt(2.0)}},
  };
  for (const Degenerate &one : cases) {
    Bench bench;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < one.inputs.size(); ++i) {
      const bool is_vector = one.inputs[i].size() == 4;
      inputs.push_back(bench.input("i" + std::to_string(i), one.inputs[i],
                                   is_vector ? std::vector<int64_t>{2} : std::vector<int64_t>()));
    }
    const ValueId loss = bench.expand("loss_" + std::string(one.entry), inputs, {{"reduction", std::string("none")}});
    assert_string_equal(bench.error().c_str(), "");
    const auto gradients =
        assert_ok_value(graph::gradients_or_zeros(bench.builder, std::span(&loss, 1), {}, std::span(inputs.data(), 2)));
    assert_numbers(assert_ok_value(bench.evaluate(loss)), one.losses);
    for (const ValueId gradient : gradients)
      for (const double number : assert_ok_value(bench.evaluate(gradient)))
        if (!(std::abs(number) <= 1)) fail_msg("%s: gradient %g", one.entry, number);
  }
}

/// Without a reduction: a number for each element, with whatever weights; a model may make its loss of them.
void test_no_reduction(void **) {
  const Numbers predictions = {1, 2, 3, 4, -1, 0.5, 0, 0}, targets = {0, 2, 1, 8, -1, 1.5, 3, -4};
  const Numbers of_elements = {1, 0, 2, 0.5, 1, 1, 3, 0};
  for (const char *kind : {"none", "examples", "elements", "one"}) {
    Bench bench;
    std::vector<ValueId> inputs = {bench.input("predictions", predictions, {2}), bench.input("targets", targets, {2})};
    const std::string chosen = kind;
    if (chosen == "examples") inputs.push_back(bench.input("weights", kWeights, {}));
    if (chosen == "elements") inputs.push_back(bench.input("weights", of_elements, {2}));
    if (chosen == "one") inputs.push_back(bench.builder.constant(2.5, DType::f32));
    const ValueId loss = bench.expand("loss_mean_absolute_error", inputs, {{"reduction", std::string("none")}});
    assert_string_equal(bench.error().c_str(), "");
    assert_string_equal(bench.shape(loss).c_str(), "[batch, 2]");
    Numbers expected;
    for (size_t i = 0; i < predictions.size(); ++i) {
      const double weight = chosen == "examples"   ? kWeights[i / 2]
                            : chosen == "elements" ? of_elements[i]
                            : chosen == "one"      ? 2.5
                                                   : 1;
      expected.push_back(weight * std::abs(predictions[i] - targets[i]));
    }
    assert_numbers(assert_ok_value(bench.evaluate(loss)), expected);
  }
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_sparse_softmax_cross_entropy),
    cmocka_unit_test(test_defaults_are_mean_without_smoothing),
    cmocka_unit_test(test_labels_and_weights_with_a_last_dimension_of_1),
    cmocka_unit_test(test_weighted_mean_of_no_weight_is_zero),
    cmocka_unit_test(test_softmax_cross_entropy),
    cmocka_unit_test(test_sigmoid_cross_entropy),
    cmocka_unit_test(test_mean_squared_error),
    cmocka_unit_test(test_weights_of_elements),
    cmocka_unit_test(test_one_weight_for_all),
    cmocka_unit_test(test_weights_of_examples_beside_class_weights),
    cmocka_unit_test(test_weights_of_groups_of_elements),
    cmocka_unit_test(test_l2_penalty),
    cmocka_unit_test(test_errors),
    cmocka_unit_test(test_mistakes),
    cmocka_unit_test(test_labels_out_of_range),
    cmocka_unit_test(test_types_of_labels),
    cmocka_unit_test(test_vectors_without_a_direction),
    cmocka_unit_test(test_no_reduction),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace losses_test
