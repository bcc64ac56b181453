// SPDX-License-Identifier: Apache-2.0
//
// What libraries are told of a convolution: its padding, and when it is a product.
#include "backend/gpu/library/library_convolution.h"

#include "testing.h"

namespace library_convolution_test {

using namespace tutti::impl;
using namespace tutti::impl::backend::gpu;
using tensor::DType;

namespace {

void the_padding_behind_gives_the_same_windows(void **) {
  assert_int_equal(padding_behind(56, 56, 3, 1, 1, 1), 1);
  // "same" with a step of 2: one more behind than in front.
  assert_int_equal(padding_behind(56, 28, 3, 2, 1, 0), 1);
  // Nothing is needed behind, and as much as in front does no harm.
  assert_int_equal(padding_behind(224, 112, 7, 2, 1, 3), 3);
  assert_int_equal(padding_behind(224, 112, 3, 2, 1, 1), 1);
  // A last row that no window reaches.
  assert_int_equal(padding_behind(8, 3, 3, 2, 1, 0), 0);
  assert_int_equal(padding_behind(28, 28, 3, 1, 2, 2), 2);
  for (int64_t input = 1; input < 12; ++input) {
    for (int64_t window = 1; window < 5; ++window) {
      for (int64_t stride = 1; stride < 4; ++stride) {
        for (int64_t before = 0; before < window; ++before) {
          for (int64_t after = 0; after < window; ++after) {
            if (input + before + after < window) continue;
            const int64_t output = (input + before + after - window) / stride + 1;
            const int64_t behind = padding_behind(input, output, window, stride, 1, before);
            assert_int_equal((input + before + behind - window) / stride + 1, output);
          }
        }
      }
    }
  }
}

/// Two images of 3 by 5 pixels, four channels to six.
ConvolutionShape one_pixel() {
  ConvolutionShape shape;
  shape.dtype = DType::bf16;
  shape.x = {2, 3, 5, 4};
  shape.kernel = {1, 1, 4, 6};
  shape.y = {2, 3, 5, 6};
  return shape;
}

void one_pixel_is_a_product(void **) {
  assert_true(is_product(one_pixel()));
  ConvolutionShape strided = one_pixel(), padded = one_pixel(), grouped = one_pixel(), wide = one_pixel();
  ConvolutionShape padded_behind = one_pixel();
  strided.stride = {1, 2};
  padded.pad_before = {0, 1};
  padded_behind.pad_after = {1, 0};
  grouped.kernel[2] = 2;
  wide.kernel[1] = 3;
  for (const ConvolutionShape &other : {strided, padded, padded_behind, grouped, wide})
    assert_false(is_product(other));
  assert_int_equal(grouped.groups(), 2);
}

void padding_becomes_even(void **) {
  ConvolutionShape shape = one_pixel();
  shape.x = {2, 9, 8, 3};
  shape.kernel = {3, 3, 3, 5};
  shape.y = {2, 5, 5, 5};
  shape.stride = {2, 2};
  shape.pad_before = {2, 1};
  shape.pad_after = {0, 2};
  const ConvolutionShape even = evenly_padded(shape);
  const std::array<int64_t, 4> x = {2, 11, 9, 3};
  const std::array<int64_t, 2> pads = {0, 1};
  assert_true(even.x == x);
  assert_true(even.pad_before == pads && even.pad_after == pads);
  // All else is as it was, and what is even stays so.
  assert_true(even.y == shape.y && even.kernel == shape.kernel && even.stride == shape.stride);
  assert_true(evenly_padded(even).x == x);
  assert_true(evenly_padded(even).pad_before == pads);
}

void each_pass_is_a_product_of_its_own(void **) {
  struct {
    ConvolutionPass pass;
    int64_t m, n, k;
    bool transpose_a, transpose_b;
  } const cases[] = {{ConvolutionPass::forward, 30, 6, 4, false, false},
                     {ConvolutionPass::input_gradient, 30, 4, 6, false, true},
                     {ConvolutionPass::kernel_gradient, 4, 6, 30, true, false}};
  for (const auto &one : cases) {
    const ProductShape product = product_of(one_pixel(), one.pass);
    assert_true(product.dtype == DType::bf16);
    assert_int_equal(product.m, one.m);
    assert_int_equal(product.n, one.n);
    assert_int_equal(product.k, one.k);
    assert_true(product.transpose_a == one.transpose_a && product.transpose_b == one.transpose_b);
  }
}

void what_is_empty_is_known(void **) {
  assert_false(is_empty(one_pixel()));
  ConvolutionShape none = one_pixel();
  none.x[0] = none.y[0] = 0;
  assert_true(is_empty(none));
}

void times_depend_on_all_of_it(void **) {
  ConvolutionShape shape = one_pixel();
  shape.stride = {2, 1};
  shape.dilation = {1, 3};
  shape.pad_before = {1, 0};
  shape.pad_after = {2, 4};
  assert_string_equal(describe_convolution(shape, ConvolutionPass::kernel_gradient).c_str(),
                      "kernel gradient bf16 x 2x3x5x4 kernel 1x1x4x6 y 2x3x5x6 stride 2x1 dilation 1x3 pads 1x0+2x4");
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_padding_behind_gives_the_same_windows),
      cmocka_unit_test(one_pixel_is_a_product),
      cmocka_unit_test(padding_becomes_even),
      cmocka_unit_test(each_pass_is_a_product_of_its_own),
      cmocka_unit_test(what_is_empty_is_known),
      cmocka_unit_test(times_depend_on_all_of_it),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace library_convolution_test
