// SPDX-License-Identifier: Apache-2.0
// Dense, flatten and dropout: variables, names, defaults and numbers.
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "graph/autodiff.h"
#include "nn_testing.h"
#include "testing.h"

namespace dense_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

const Numbers kX = {1, 2, -1, 0.5, 3, -2};                         // [2, 3]
const Numbers kKernel = {1, 0, -1, 2, 0.5, 1, 0, -3, 2, 1, 1, 1};  // [3, 4]
const Numbers kBias = {0.5, -0.5, 0, 1};

Numbers affine(bool bias) {
  Numbers y(8, 0);
  for (size_t row = 0; row < 2; ++row)
    for (size_t unit = 0; unit < 4; ++unit) {
      double sum = bias ? kBias[unit] : 0;
      for (size_t i = 0; i < 3; ++i)
        sum += kX[row * 3 + i] * kKernel[i * 4 + unit];
      y[row * 4 + unit] = sum;
    }
  return y;
}

void test_variables_and_defaults(void **) {
  Bench bench;
  const ValueId y = bench.expand("layer_dense", {bench.input("x", kX, {3})}, {{"units", int64_t{4}}});
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(y).c_str(), "[batch, 4]");
  assert_int_equal(bench.builder.model().variables.size(), 2);
  const graph::VariableSpec *kernel = bench.variable("dense/kernel"), *bias = bench.variable("dense/bias");
  assert_non_null(kernel);
  assert_non_null(bias);
  assert_true(kernel->dims == (std::vector<int64_t>{3, 4}));
  assert_true(bias->dims == (std::vector<int64_t>{4}));
  assert_true(kernel->trainable && bias->trainable && kernel->automatic_name);
  assert_true(kernel->aggregation == graph::Aggregation::trained);
  assert_string_equal(kernel->initializer.name.c_str(), "glorot_uniform");
  assert_string_equal(bias->initializer.name.c_str(), "zeros");
  assert_string_equal(kernel->creator.c_str(), "dense");
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"dense/kernel", kKernel}, {"dense/bias", kBias}})), affine(true));
}

void test_names_of_several_layers(void **) {
  Bench bench;
  ValueId x = bench.input("x", kX, {3});
  x = bench.expand("layer_dense", {x}, {{"units", int64_t{4}}});
  bench.builder.push_scope("head");
  x = bench.expand("layer_dense", {x}, {{"units", int64_t{5}}});
  x = bench.expand("layer_dense", {x}, {{"units", int64_t{6}}});
  bench.builder.pop_scope();
  bench.expand("layer_dense", {x}, {{"units", int64_t{7}}});
  assert_string_equal(bench.error().c_str(), "");
  for (const char *name : {"dense/kernel", "head/dense/kernel", "head/dense_1/kernel", "dense_1/bias"})
    if (bench.variable(name) == nullptr) fail_msg("no variable %s", name);
  assert_true(bench.variable("dense_1/kernel")->dims == (std::vector<int64_t>{6, 7}));
}

void test_no_bias_and_initializers(void **) {
  Bench bench;
  const ValueId y =
      bench.expand("layer_dense", {bench.input("x", kX, {3})},
                   {{"units", int64_t{4}}, {"use_bias", false}, {"kernel_initializer", std::string("he_normal")}});
  assert_int_equal(bench.builder.model().variables.size(), 1);
  assert_string_equal(bench.variable("dense/kernel")->initializer.name.c_str(), "he_normal");
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"dense/kernel", kKernel}})), affine(false));
}

/// The names of tutti_graph_variable hold for layers too.
void test_initializers_by_their_public_names(void **) {
  Bench bench;
  bench.expand("layer_dense", {bench.input("x", kX, {3})},
               {{"units", int64_t{4}},
                {"kernel_initializer", std::string("random_normal")},
                {"bias_initializer", std::string("random_uniform")}});
  assert_string_equal(bench.variable("dense/kernel")->initializer.name.c_str(), "normal");
  assert_string_equal(bench.variable("dense/bias")->initializer.name.c_str(), "uniform");
}

void test_activations(void **) {
  const Numbers linear = affine(true);
  const std::map<std::string, double (*)(double)> activations = {
      {"none", [](double v) { return v; }},
      {"relu", [](double v) { return v > 0 ? v : 0; }},
      {"sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"tanh", [](double v) { return std::tanh(v); }},
      {"gelu", [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }},
      {"gelu_tanh",
       [](double v) {
         return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
       }},
      {"silu", [](double v) { return v / (1 + std::exp(-v)); }},
  };
  for (const auto &[name, function] : activations) {
    Bench bench;
    const ValueId y =
        bench.expand("layer_dense", {bench.input("x", kX, {3})}, {{"units", int64_t{4}}, {"activation", name}});
    Numbers expected;
    for (const double value : linear)
      expected.push_back(function(value));
    const Numbers got = assert_ok_value(bench.evaluate(y, {{"dense/kernel", kKernel}, {"dense/bias", kBias}}));
    if (first_difference(got, expected, 1e-5) >= 0) fail_msg("activation %s", name.c_str());
  }
}

/// Against central differences of the layer itself, in f64; nothing lies where relu has its kink.
void test_gradients_of_activations(void **) {
  const Variables variables = {{"dense/kernel", kKernel}, {"dense/bias", kBias}};
  for (const std::string name : {"none", "relu", "sigmoid", "tanh", "gelu", "silu", "gelu_tanh"}) {
    const auto layer = [&](Bench &bench, const Numbers &numbers) {
      const ValueId x = bench.input("x", numbers, {3}, DType::f64);
      return std::pair(x, bench.expand("layer_dense", {x}, {{"units", int64_t{4}}, {"activation", name}}));
    };
    const auto sum_at = [&](const Numbers &numbers) {
      Bench bench;
      double sum = 0;
      for (const double y : assert_ok_value(bench.evaluate(layer(bench, numbers).second, variables)))
        sum += y;
      return sum;
    };
    Bench bench;
    const auto [x, y] = layer(bench, kX);
    const ValueId targets[] = {y}, inputs[] = {x};
    const ValueId gradient = assert_ok_value(graph::gradients(bench.builder, targets, {}, inputs))[0];
    const Numbers got = assert_ok_value(bench.evaluate(gradient, variables));
    assert_int_equal(got.size(), kX.size());
    for (size_t i = 0; i < kX.size(); ++i) {
      Numbers above = kX, below = kX;
      above[i] += 1e-5;
      below[i] -= 1e-5;
      const double expected = (sum_at(above) - sum_at(below)) / 2e-5;
      if (!(std::fabs(got[i] - expected) < 1e-8 * (1 + std::fabs(expected))))
        fail_msg("%s: gradient %zu is %.12g, expected %.12g", name.c_str(), i, got[i], expected);
    }
  }
}

void test_dense_over_the_last_of_several_dimensions(void **) {
  Bench bench;
  const ValueId y =
      bench.expand("layer_dense", {bench.input("x", {1, 2, 3, 4, 5, 6, 7, 8}, {2, 2})}, {{"units", int64_t{1}}});
  assert_string_equal(bench.shape(y).c_str(), "[batch, 2, 1]");
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"dense/kernel", {10, 1}}, {"dense/bias", {0}}})),
                 {12, 34, 56, 78});
}

void test_dense_of_a_scalar_row(void **) {
  Bench bench;
  bench.expand("layer_dense", {bench.input("x", {}, {})}, {{"units", int64_t{4}}});
  assert_contains(bench.error().c_str(),
                  "dense: layer_dense: expected an input whose last dimension is known, got shape [batch]");
}

void test_flatten(void **) {
  Bench bench;
  const ValueId y = bench.expand("layer_flatten", {bench.input("x", {1, 2, 3, 4, 5, 6, 7, 8}, {2, 2})});
  assert_string_equal(bench.shape(y).c_str(), "[batch, 4]");
  assert_numbers(assert_ok_value(bench.evaluate(y)), {1, 2, 3, 4, 5, 6, 7, 8});
  Bench flat;
  const ValueId row = flat.expand("layer_flatten", {flat.input("x", {1, 2}, {})});
  assert_string_equal(flat.shape(row).c_str(), "[batch, 1]");
}

void test_dropout(void **) {
  Bench serving;
  const ValueId x = serving.input("x", {1}, {1});
  assert_int_equal(serving.expand("layer_dropout", {x}, {{"rate", 0.5}}, false), x);
  assert_int_equal(serving.expand("layer_dropout", {x}, {{"rate", 0.0}}, true), x);

  Bench bench;
  const ValueId y = bench.expand("layer_dropout", {bench.input("x", Numbers(4000, 3), {4})}, {{"rate", 0.25}});
  const Numbers numbers = assert_ok_value(bench.evaluate(y));
  size_t kept = 0;
  for (const double value : numbers) {
    if (value != 0) ++kept;
    assert_true(value == 0 || std::abs(value - 4) < 1e-5);
  }
  assert_in_range(kept, 2900, 3100);  // 3000 expected, deviation 27

  Bench bad;
  bad.expand("layer_dropout", {bad.input("x", {}, {1})}, {{"rate", 1.0}});
  assert_contains(bad.error().c_str(), "layer_dropout: attribute 'rate' must be below 1");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_variables_and_defaults),
    cmocka_unit_test(test_names_of_several_layers),
    cmocka_unit_test(test_no_bias_and_initializers),
    cmocka_unit_test(test_initializers_by_their_public_names),
    cmocka_unit_test(test_activations),
    cmocka_unit_test(test_gradients_of_activations),
    cmocka_unit_test(test_dense_over_the_last_of_several_dimensions),
    cmocka_unit_test(test_dense_of_a_scalar_row),
    cmocka_unit_test(test_flatten),
    cmocka_unit_test(test_dropout),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace dense_test
