// SPDX-License-Identifier: Apache-2.0
// Batch and layer normalization: variables, running statistics, and the numbers in both modes.
#include <cmath>

#include "nn_testing.h"
#include "testing.h"

namespace normalization_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

const Numbers kX = {1, 10, 2, 20, 6, 60, -1, 2};  // [4, 2]
const Numbers kScale = {2, 0.5}, kOffset = {1, -1};

struct Moments {
  Numbers mean, variance;
};

Moments moments_by_column() {
  Moments m{Numbers(2, 0), Numbers(2, 0)};
  for (size_t i = 0; i < 8; ++i)
    m.mean[i % 2] += kX[i] / 4;
  for (size_t i = 0; i < 8; ++i)
    m.variance[i % 2] += std::pow(kX[i] - m.mean[i % 2], 2) / 4;
  return m;
}

Numbers normalized(const Moments &m, const Numbers &scale, const Numbers &offset, double epsilon) {
  Numbers y;
  for (size_t i = 0; i < 8; ++i)
    y.push_back((kX[i] - m.mean[i % 2]) / std::sqrt(m.variance[i % 2] + epsilon) * scale[i % 2] + offset[i % 2]);
  return y;
}

Variables weights(const Numbers &mean, const Numbers &variance) {
  return {{"batch_norm/scale", kScale},
          {"batch_norm/offset", kOffset},
          {"batch_norm/running_mean", mean},
          {"batch_norm/running_variance", variance}};
}

void test_batch_norm_variables(void **) {
  Bench bench;
  const ValueId y = bench.expand("layer_batch_norm", {bench.input("x", kX, {2})});
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(y).c_str(), "[batch, 2]");
  assert_int_equal(bench.builder.model().variables.size(), 4);
  for (const char *name : {"batch_norm/scale", "batch_norm/offset"}) {
    assert_non_null(bench.variable(name));
    assert_true(bench.variable(name)->trainable);
  }
  for (const char *name : {"batch_norm/running_mean", "batch_norm/running_variance"}) {
    assert_non_null(bench.variable(name));
    assert_false(bench.variable(name)->trainable);
    assert_true(bench.variable(name)->aggregation == graph::Aggregation::aggregated);
  }
  assert_string_equal(bench.variable("batch_norm/scale")->initializer.name.c_str(), "ones");
  assert_string_equal(bench.variable("batch_norm/offset")->initializer.name.c_str(), "zeros");
  assert_string_equal(bench.variable("batch_norm/running_mean")->initializer.name.c_str(), "zeros");
  assert_string_equal(bench.variable("batch_norm/running_variance")->initializer.name.c_str(), "ones");
}

void test_batch_norm_training(void **) {
  Bench bench;
  const ValueId y =
      bench.expand("layer_batch_norm", {bench.input("x", kX, {2})}, {{"epsilon", 0.25}, {"momentum", 0.75}});
  const Moments m = moments_by_column();
  const Variables variables = weights({4, -4}, {2, 8});
  assert_numbers(assert_ok_value(bench.evaluate(y, variables)), normalized(m, kScale, kOffset, 0.25));
  const auto &assignments = bench.builder.model().assignments;
  assert_int_equal(assignments.size(), 2);
  assert_numbers(assert_ok_value(bench.evaluate(assignments.at("batch_norm/running_mean"), variables)),
                 {0.75 * 4 + 0.25 * m.mean[0], 0.75 * -4 + 0.25 * m.mean[1]});
  assert_numbers(assert_ok_value(bench.evaluate(assignments.at("batch_norm/running_variance"), variables)),
                 {0.75 * 2 + 0.25 * m.variance[0], 0.75 * 8 + 0.25 * m.variance[1]});
}

void test_batch_norm_inference(void **) {
  Bench bench;
  const ValueId y = bench.expand("layer_batch_norm", {bench.input("x", kX, {2})}, {}, false);
  assert_int_equal(bench.builder.model().assignments.size(), 0);
  assert_int_equal(bench.builder.model().variables.size(), 4);
  const Moments running{{3, -5}, {4, 0.5}};
  assert_numbers(assert_ok_value(bench.evaluate(y, weights(running.mean, running.variance))),
                 normalized(running, kScale, kOffset, 0.001));
}

void test_batch_norm_without_scale_and_center(void **) {
  Bench bench;
  const ValueId y =
      bench.expand("layer_batch_norm", {bench.input("x", kX, {2})}, {{"scale", false}, {"center", false}});
  assert_int_equal(bench.builder.model().variables.size(), 2);
  assert_numbers(assert_ok_value(
                     bench.evaluate(y, {{"batch_norm/running_mean", {0, 0}}, {"batch_norm/running_variance", {1, 1}}})),
                 normalized(moments_by_column(), {1, 1}, {0, 0}, 0.001));
}

void test_batch_norm_of_images(void **) {
  // The same numbers as [1, 2, 2, 2]: statistics over all but the last dimension.
  Bench bench;
  const ValueId y = bench.expand("layer_batch_norm", {bench.input("x", kX, {2, 2, 2})}, {{"epsilon", 0.5}});
  assert_numbers(assert_ok_value(bench.evaluate(y, weights({0, 0}, {1, 1}))),
                 normalized(moments_by_column(), kScale, kOffset, 0.5));
}

void test_layer_norm(void **) {
  Bench bench;
  const ValueId y = bench.expand("layer_layer_norm", {bench.input("x", {1, 2, 6, -3, 0, 0}, {3})}, {{"epsilon", 0.5}});
  assert_string_equal(bench.error().c_str(), "");
  assert_int_equal(bench.builder.model().variables.size(), 2);
  assert_true(bench.variable("layer_norm/scale")->trainable);
  const Numbers scale = {1, 2, -1}, offset = {0, 1, 0.5};
  Numbers expected;
  for (const Numbers &row : {Numbers{1, 2, 6}, Numbers{-3, 0, 0}}) {
    const double mean = (row[0] + row[1] + row[2]) / 3;
    const double variance = (std::pow(row[0] - mean, 2) + std::pow(row[1] - mean, 2) + std::pow(row[2] - mean, 2)) / 3;
    for (size_t i = 0; i < 3; ++i)
      expected.push_back((row[i] - mean) / std::sqrt(variance + 0.5) * scale[i] + offset[i]);
  }
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"layer_norm/scale", scale}, {"layer_norm/offset", offset}})),
                 expected);
}

void test_rms_norm(void **) {
  Bench bench;
  const ValueId y = bench.expand("layer_rms_norm", {bench.input("x", {1, 2, 6, -3, 0, 0}, {3})}, {{"epsilon", 0.5}});
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(y).c_str(), "[batch, 3]");
  assert_int_equal(bench.builder.model().variables.size(), 1);
  const Numbers scale = {1, 2, -1};
  Numbers expected;
  for (const Numbers &row : {Numbers{1, 2, 6}, Numbers{-3, 0, 0}}) {
    const double square = (row[0] * row[0] + row[1] * row[1] + row[2] * row[2]) / 3;
    for (size_t i = 0; i < 3; ++i)
      expected.push_back(row[i] / std::sqrt(square + 0.5) * scale[i]);
  }
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"rms_norm/scale", scale}})), expected);
  Bench plain;
  const ValueId unscaled = plain.expand("layer_rms_norm", {plain.input("x", {3, 4}, {2})}, {{"scale", false}});
  assert_int_equal(plain.builder.model().variables.size(), 0);
  const double root = std::sqrt(12.5 + 1e-6);
  assert_numbers(assert_ok_value(plain.evaluate(unscaled, {})), {3 / root, 4 / root});
}

/// Images [2, 2, 3, 4]: of each, groups of so many channels in six places.
void check_groups(const std::string &layer, size_t group, const Attributes &attributes) {
  constexpr size_t kImages = 2, kPlaces = 6, kChannels = 4;
  Numbers x;
  for (size_t i = 0; i < kImages * kPlaces * kChannels; ++i)
    x.push_back(static_cast<double>((i * 7 + i / 5) % 13) - 5);
  const Numbers scale = {1, 2, -1, 0.5}, offset = {0, 1, 0.5, -2};
  Bench bench;
  const ValueId y = bench.expand("layer_" + layer, {bench.input("x", x, {2, 3, 4})}, attributes);
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(y).c_str(), "[batch, 2, 3, 4]");
  Numbers expected(x.size());
  for (size_t image = 0; image < kImages; ++image) {
    for (size_t first = 0; first < kChannels; first += group) {
      double mean = 0, variance = 0;
      const auto at = [&](size_t i) { return (image * kPlaces + i / group) * kChannels + first + i % group; };
      for (size_t i = 0; i < kPlaces * group; ++i)
        mean += x[at(i)] / static_cast<double>(kPlaces * group);
      for (size_t i = 0; i < kPlaces * group; ++i)
        variance += std::pow(x[at(i)] - mean, 2) / static_cast<double>(kPlaces * group);
      for (size_t i = 0; i < kPlaces * group; ++i) {
        const size_t channel = at(i) % kChannels;
        expected[at(i)] = (x[at(i)] - mean) / std::sqrt(variance + 0.25) * scale[channel] + offset[channel];
      }
    }
  }
  assert_numbers(assert_ok_value(bench.evaluate(y, {{layer + "/scale", scale}, {layer + "/offset", offset}})),
                 expected);
}

void test_group_norm(void **) { check_groups("group_norm", 2, {{"groups", int64_t{2}}, {"epsilon", 0.25}}); }

void test_instance_norm(void **) { check_groups("instance_norm", 1, {{"epsilon", 0.25}}); }

/// One group over rows without places is a layer normalisation.
void test_group_norm_of_rows(void **) {
  Bench groups, layer;
  const Numbers x = {1, 2, 6, -3, 0, 0};
  const ValueId y = groups.expand("layer_group_norm", {groups.input("x", x, {3})},
                                  {{"groups", int64_t{1}}, {"scale", false}, {"center", false}});
  const ValueId expected = layer.expand("layer_layer_norm", {layer.input("x", x, {3})});
  assert_int_equal(groups.builder.model().variables.size(), 0);
  assert_numbers(
      assert_ok_value(groups.evaluate(y, {})),
      assert_ok_value(layer.evaluate(expected, {{"layer_norm/scale", {1, 1, 1}}, {"layer_norm/offset", {0, 0, 0}}})));
}

void test_errors(void **) {
  Bench groups;
  groups.expand("layer_group_norm", {groups.input("x", {}, {5, 6})}, {{"groups", int64_t{4}}});
  assert_contains(groups.error().c_str(), "4 groups do not divide the channels of [batch, 5, 6]");
  Bench rows;
  rows.expand("layer_instance_norm", {rows.input("x", {}, {5})});
  assert_contains(rows.error().c_str(), "expected positions between rows and channels, got [batch, 5]");
  Bench bench;
  bench.expand("layer_batch_norm", {bench.input("x", {}, {})});
  assert_contains(bench.error().c_str(),
                  "batch_norm: layer_batch_norm: expected an input whose last dimension is known, got shape [batch]");
  Bench statistics;
  statistics.expand("layer_batch_norm", {statistics.input("x", {}, {2})}, {{"statistics", std::string("local")}});
  assert_contains(statistics.error().c_str(), "attribute 'statistics' must be one of global, per_replica; got 'local'");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_batch_norm_variables),
    cmocka_unit_test(test_batch_norm_training),
    cmocka_unit_test(test_batch_norm_inference),
    cmocka_unit_test(test_batch_norm_without_scale_and_center),
    cmocka_unit_test(test_batch_norm_of_images),
    cmocka_unit_test(test_layer_norm),
    cmocka_unit_test(test_rms_norm),
    cmocka_unit_test(test_group_norm),
    cmocka_unit_test(test_instance_norm),
    cmocka_unit_test(test_group_norm_of_rows),
    cmocka_unit_test(test_errors),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace normalization_test
