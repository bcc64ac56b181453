// SPDX-License-Identifier: Apache-2.0
// Convolutions against a plain loop over windows.
#include <algorithm>

#include "nn_testing.h"
#include "testing.h"

namespace conv_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

struct Image {
  int64_t height, width, channels;
  Numbers data;  // [height, width, channels]

  double at(int64_t y, int64_t x, int64_t c) const {
    if (y < 0 || x < 0 || y >= height || x >= width) return 0;
    return data[size_t((y * width + x) * channels + c)];
  }
};

struct Window {
  int64_t size, stride = 1, dilation = 1, groups = 1;
  bool same = true;
};

Numbers numbers(int64_t count, double scale) {
  Numbers result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(scale * double((i * 37 + 11) % 23 - 11));
  return result;
}

/// kernel [size, size, channels / groups, filters]
Image convolve(const Image &in, const Numbers &kernel, const Numbers &bias, const Window &w) {
  const int64_t span = (w.size - 1) * w.dilation + 1, filters = int64_t(bias.size());
  const auto extent = [&](int64_t size) {
    return w.same ? (size + w.stride - 1) / w.stride : (size - span) / w.stride + 1;
  };
  const auto before = [&](int64_t size) {
    return w.same ? std::max<int64_t>((extent(size) - 1) * w.stride + span - size, 0) / 2 : 0;
  };
  Image out{extent(in.height), extent(in.width), filters, {}};
  const int64_t per_group = in.channels / w.groups;
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x)
      for (int64_t f = 0; f < filters; ++f) {
        double sum = bias[size_t(f)];
        const int64_t group = f / (filters / w.groups);
        for (int64_t i = 0; i < w.size; ++i)
          for (int64_t j = 0; j < w.size; ++j)
            for (int64_t c = 0; c < per_group; ++c)
              sum += in.at(y * w.stride - before(in.height) + i * w.dilation,
                           x * w.stride - before(in.width) + j * w.dilation, group * per_group + c) *
                     kernel[size_t(((i * w.size + j) * per_group + c) * filters + f)];
        out.data.push_back(sum);
      }
  return out;
}

const Image kImage{5, 4, 4, numbers(80, 0.25)};

void check_conv(const Window &w, int64_t filters) {
  Bench bench;
  const ValueId y = bench.expand("layer_conv2d", {bench.input("x", kImage.data, {5, 4, 4})},
                                 {{"filters", filters},
                                  {"size", w.size},
                                  {"stride", w.stride},
                                  {"dilation", w.dilation},
                                  {"groups", w.groups},
                                  {"padding", std::string(w.same ? "same" : "valid")}});
  assert_string_equal(bench.error().c_str(), "");
  assert_true(bench.variable("conv2d/kernel")->dims == (std::vector<int64_t>{w.size, w.size, 4 / w.groups, filters}));
  const Numbers kernel = numbers(w.size * w.size * 4 / w.groups * filters, 0.125), bias = numbers(filters, 0.5);
  const Image expected = convolve(kImage, kernel, bias, w);
  assert_string_equal(bench.shape(y).c_str(),
                      graph::to_string({GraphBuilder::batch(), expected.height, expected.width, filters}).c_str());
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"conv2d/kernel", kernel}, {"conv2d/bias", bias}})), expected.data);
}

void test_conv2d(void **) {
  for (const bool same : {true, false})
    for (const int64_t size : {1, 2, 3})
      for (const int64_t stride : {1, 2})
        for (const int64_t groups : {1, 2, 4})
          check_conv({.size = size, .stride = stride, .groups = groups, .same = same}, 8);
  check_conv({.size = 2, .dilation = 2}, 3);
  check_conv({.size = 2, .dilation = 3, .same = false}, 3);
}

void test_conv2d_defaults(void **) {
  Bench bench;
  const ValueId y = bench.expand("layer_conv2d", {bench.input("x", kImage.data, {5, 4, 4})},
                                 {{"filters", int64_t{2}}, {"size", int64_t{3}}});
  const Numbers kernel = numbers(72, 0.125), bias = {1, -1};
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"conv2d/kernel", kernel}, {"conv2d/bias", bias}})),
                 convolve(kImage, kernel, bias, {.size = 3}).data);
  assert_string_equal(bench.variable("conv2d/kernel")->initializer.name.c_str(), "glorot_uniform");
}

void test_conv2d_activation_without_bias(void **) {
  Bench bench;
  const ValueId y = bench.expand(
      "layer_conv2d", {bench.input("x", kImage.data, {5, 4, 4})},
      {{"filters", int64_t{2}}, {"size", int64_t{1}}, {"use_bias", false}, {"activation", std::string("relu")}});
  assert_int_equal(bench.builder.model().variables.size(), 1);
  const Numbers kernel = numbers(8, 0.5);
  Numbers expected = convolve(kImage, kernel, {0, 0}, {.size = 1}).data;
  for (double &value : expected)
    value = std::max(value, 0.0);
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"conv2d/kernel", kernel}})), expected);
}

void test_depthwise(void **) {
  for (const int64_t multiplier : {1, 3}) {
    Bench bench;
    const ValueId y = bench.expand("layer_depthwise_conv2d", {bench.input("x", kImage.data, {5, 4, 4})},
                                   {{"size", int64_t{3}}, {"multiplier", multiplier}, {"stride", int64_t{2}}});
    assert_string_equal(bench.error().c_str(), "");
    assert_true(bench.variable("depthwise_conv2d/kernel")->dims == (std::vector<int64_t>{3, 3, 1, 4 * multiplier}));
    const Numbers kernel = numbers(36 * multiplier, 0.25), bias = numbers(4 * multiplier, 1);
    assert_numbers(
        assert_ok_value(bench.evaluate(y, {{"depthwise_conv2d/kernel", kernel}, {"depthwise_conv2d/bias", bias}})),
        convolve(kImage, kernel, bias, {.size = 3, .stride = 2, .groups = 4}).data);
  }
}

void test_separable(void **) {
  Bench bench;
  const ValueId y = bench.expand(
      "layer_separable_conv2d", {bench.input("x", kImage.data, {5, 4, 4})},
      {{"filters", int64_t{3}}, {"size", int64_t{3}}, {"multiplier", int64_t{2}}, {"padding", std::string("valid")}});
  assert_string_equal(bench.error().c_str(), "");
  assert_int_equal(bench.builder.model().variables.size(), 3);
  assert_true(bench.variable("separable_conv2d/depthwise_kernel")->dims == (std::vector<int64_t>{3, 3, 1, 8}));
  assert_true(bench.variable("separable_conv2d/pointwise_kernel")->dims == (std::vector<int64_t>{1, 1, 8, 3}));
  const Numbers depthwise = numbers(72, 0.125), pointwise = numbers(24, 0.25), bias = {1, 2, 3};
  const Image middle = convolve(kImage, depthwise, Numbers(8, 0), {.size = 3, .groups = 4, .same = false});
  assert_numbers(assert_ok_value(bench.evaluate(y, {{"separable_conv2d/depthwise_kernel", depthwise},
                                                    {"separable_conv2d/pointwise_kernel", pointwise},
                                                    {"separable_conv2d/bias", bias}})),
                 convolve(middle, pointwise, bias, {.size = 1}).data);
}

/// A layer that cannot be, and what the error says.
void expect_error(const std::string &layer, const std::vector<int64_t> &dims, Attributes attributes,
                  const char *expected) {
  Bench bench;
  attributes["filters"] = int64_t{4};
  attributes["size"] = int64_t{3};
  bench.expand(layer, {bench.input("x", {}, dims)}, std::move(attributes));
  assert_contains(bench.error().c_str(), expected);
}

void test_errors_of_other_ranks(void **) {
  expect_error("layer_conv1d", {5, 4, 4}, {},
               "conv1d: layer_conv1d: expected sequences [batch, length, channels], got [batch, 5, 4, 4]");
  expect_error("layer_conv3d", {5, 4, 4}, {}, "layer_conv3d: expected volumes [batch, depth, height, width, channels]");
  expect_error("layer_conv3d", {2, 4, 4, 1}, {{"padding", std::string("valid")}},
               "the kernel is deeper than the padded volume of depth 2");
  expect_error("layer_conv1d_transpose", {5, 4}, {{"extra", int64_t{1}}}, "with same padding there is nothing extra");
  expect_error("layer_conv3d_transpose", {2, 2, 2, 4},
               {{"extra", std::vector<int64_t>{2, 0, 0}},
                {"strides", std::vector<int64_t>{2, 0, 0}},
                {"padding", std::string("valid")}},
               "expected less extra than the stride 2, got 2");
  expect_error("layer_conv2d_transpose", {5, 4, 4}, {{"groups", int64_t{3}}},
               "layer_conv2d_transpose: 4 channels and 4 filters cannot be divided into 3 groups");
  expect_error("layer_separable_conv1d", {5}, {}, "layer_separable_conv1d: expected sequences");
  expect_error("layer_conv2d", {5, 4, 4}, {{"sizes", std::vector<int64_t>{3}}},
               "attribute 'sizes' has 1 elements, expected 2");
  expect_error("layer_conv2d", {5, 4, 4}, {{"padding", std::string("causal")}},
               "attribute 'padding' must be one of same, valid, explicit; got 'causal'");
}

void test_errors(void **) {
  Bench groups;
  groups.expand("layer_conv2d", {groups.input("x", {}, {5, 4, 4})},
                {{"filters", int64_t{4}}, {"size", int64_t{3}}, {"groups", int64_t{3}}});
  assert_contains(groups.error().c_str(),
                  "conv2d: layer_conv2d: 4 channels and 4 filters cannot be divided into 3 groups");
  Bench rank;
  rank.builder.push_scope("stem");
  rank.expand("layer_conv2d", {rank.input("x", {}, {5})}, {{"filters", int64_t{4}}, {"size", int64_t{3}}});
  assert_contains(rank.error().c_str(), "stem/conv2d");
  assert_contains(rank.error().c_str(), "[batch, 5]");
  Bench small;
  small.expand("layer_conv2d", {small.input("x", {}, {2, 2, 1})},
               {{"filters", int64_t{4}}, {"size", int64_t{3}}, {"padding", std::string("valid")}});
  assert_contains(small.error().c_str(), "[batch, 2, 2, 1]");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_conv2d),
    cmocka_unit_test(test_conv2d_defaults),
    cmocka_unit_test(test_conv2d_activation_without_bias),
    cmocka_unit_test(test_depthwise),
    cmocka_unit_test(test_separable),
    cmocka_unit_test(test_errors),
    cmocka_unit_test(test_errors_of_other_ranks),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace conv_test
