// SPDX-License-Identifier: Apache-2.0
//
// Winograd convolutions and their gradients against plain sums in double precision, on every instruction set.
#include "backend/cpu/simd/simd_winograd.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/simd/simd_testing.h"
#include "testing.h"

namespace simd_winograd_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT

/// One convolution; pad = {top, bottom, left, right}.
struct Case {
  int64_t images, in, out, height, width;
  int64_t pad[4];
  bool blocked;

  WinogradShape shape() const {
    const auto make = blocked ? &WinogradImages::blocked : &WinogradImages::row_major;
    WinogradShape s;
    s.images = images;
    s.x = make(in, height, width);
    s.y = make(out, height + pad[0] + pad[1] - 2, width + pad[2] + pad[3] - 2);
    s.pad_top = pad[0];
    s.pad_left = pad[2];
    return s;
  }
  std::string name() const {
    std::string text = std::to_string(images) + " x " + std::to_string(height) + " x " + std::to_string(width);
    text += ", " + std::to_string(in) + " -> " + std::to_string(out) + " channels, padding";
    for (int64_t p : pad)
      text += " " + std::to_string(p);
    return text + (blocked ? ", blocked" : ", row-major");
  }
};

int64_t count(const WinogradShape &s, const WinogradImages &g) { return s.images * g.image_stride; }

size_t place(const WinogradImages &g, int64_t image, int64_t row, int64_t column, int64_t channel) {
  return static_cast<size_t>(image * g.image_stride + channel / 16 * g.block_stride + row * g.row_stride +
                             column * g.column_stride + channel % 16);
}

/// Kernels lie in blocks where the images do.
WinogradKernel kernel_place(const WinogradShape &s) {
  return s.x.column_stride == 16 ? WinogradKernel::blocked(s.x.channels)
                                 : WinogradKernel::row_major(s.x.channels, s.y.channels);
}

/// Calls body(image, output row, output column, input row, input column, i, j) for every tap inside the image.
template <typename Body>
void for_taps(const WinogradShape &s, const Body &body) {
  for (int64_t n = 0; n < s.images; ++n) {
    for (int64_t row = 0; row < s.y.height; ++row) {
      for (int64_t column = 0; column < s.y.width; ++column) {
        for (int64_t i = 0; i < 3; ++i) {
          for (int64_t j = 0; j < 3; ++j) {
            const int64_t from = row + i - s.pad_top, at = column + j - s.pad_left;
            if (from < 0 || from >= s.x.height || at < 0 || at >= s.x.width) continue;
            body(n, row, column, from, at, i, j);
          }
        }
      }
    }
  }
}

/// A convolution's operands and what plain sums make of them.
struct Expected {
  WinogradShape s;
  WinogradKernel place_of_kernel;
  std::vector<float> x, kernel, dy;
  std::vector<double> y, dx, dkernel, dbias;

  explicit Expected(const WinogradShape &shape)
      : s(shape),
        place_of_kernel(kernel_place(shape)),
        x(noise(count(s, s.x), 1)),
        kernel(noise(9 * s.x.channels * s.y.channels, 2)),
        dy(noise(count(s, s.y), 3)),
        y(dy.size(), 0.0),
        dx(x.size(), 0.0),
        dkernel(kernel.size(), 0.0),
        dbias(static_cast<size_t>(s.y.channels), 0.0) {
    for_taps(s, [&](int64_t n, int64_t row, int64_t column, int64_t from, int64_t at, int64_t i, int64_t j) {
      for (int64_t c = 0; c < s.x.channels; ++c)
        add(place(s.x, n, from, at, c), place(s.y, n, row, column, 0), 3 * i + j, c);
    });
    for (int64_t n = 0; n < s.images; ++n) {
      for (int64_t i = 0; i < s.y.height * s.y.width; ++i) {
        for (int64_t c = 0; c < s.y.channels; ++c)
          dbias[static_cast<size_t>(c)] += double{dy[place(s.y, n, i / s.y.width, i % s.y.width, c)]};
      }
    }
  }

  /// One tap of one channel of x with all channels of y.
  void add(size_t x_at, size_t y_at, int64_t tap, int64_t channel) {
    const WinogradKernel &g = place_of_kernel;
    const int64_t k_at = tap * g.tap_stride + channel / 16 * g.in_block_stride + channel % 16 * g.in_stride;
    const double value = double{x[x_at]};
    double sum = 0;
    for (int64_t block = 0; block < s.y.blocks(); ++block) {
      const size_t from = y_at + static_cast<size_t>(block * s.y.block_stride);
      const size_t k = static_cast<size_t>(k_at + block * g.out_block_stride);
      for (size_t c = 0; c < 16; ++c) {
        y[from + c] += value * double{kernel[k + c]};
        dkernel[k + c] += value * double{dy[from + c]};
        sum += double{dy[from + c]} * double{kernel[k + c]};
      }
    }
    dx[x_at] += sum;
  }
};

/// What the kernels make of the same operands.
struct Computed {
  std::vector<float> y, dx, dkernel, dbias;

  explicit Computed(const Expected &e)
      : y(e.y.size(), NAN), dx(e.x.size(), NAN), dkernel(e.kernel.size(), NAN), dbias(e.dbias.size(), NAN) {
    const WinogradShape back = e.s.transposed();
    const WinogradRange all = WinogradRange::all(e.s), back_all = WinogradRange::all(back);
    const WinogradGradientRange whole = WinogradGradientRange::all(e.s);
    const Scratch scratch(
        std::max({winograd_scratch_floats(e.s, all, false), winograd_scratch_floats(back, back_all, false),
                  winograd_gradient_scratch_floats(e.s, whole)}));
    float *memory = scratch.memory.get();
    const WinogradWeights weights{e.kernel.data(), e.place_of_kernel, false, nullptr};
    const WinogradWeights turned{e.kernel.data(), e.place_of_kernel, true, nullptr};
    winograd_convolve(e.s, all, weights, e.x.data(), {}, y.data(), memory);
    winograd_convolve(back, back_all, turned, e.dy.data(), {}, dx.data(), memory);
    winograd_kernel_gradient(e.s, whole, e.x.data(), e.dy.data(), e.place_of_kernel, dkernel.data(), dbias.data(),
                             memory);
  }
};

double relative_error(const std::vector<float> &got, const std::vector<double> &expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (double{got[i]} - expected[i]) * (double{got[i]} - expected[i]);
    size += expected[i] * expected[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

void expect_accurate(const Case &c, double limit) {
  const Expected expected(c.shape());
  on_all_targets([&] {
    const Computed computed(expected);
    const double errors[4] = {relative_error(computed.y, expected.y), relative_error(computed.dx, expected.dx),
                              relative_error(computed.dkernel, expected.dkernel),
                              relative_error(computed.dbias, expected.dbias)};
    for (double error : errors) {
      if (!(error <= limit)) {
        fail_msg("%s: relative errors %g %g %g %g", c.name().c_str(), errors[0], errors[1], errors[2], errors[3]);
      }
    }
  });
}

void any_size_and_padding_agrees(void **) {
  const int64_t sizes[][2] = {{1, 1}, {2, 3}, {4, 4}, {5, 7}, {8, 6}, {9, 13}};
  const int64_t pads[][4] = {{1, 1, 1, 1}, {0, 0, 0, 0}, {2, 2, 2, 2}, {0, 1, 2, 1}, {1, 0, 0, 2}};
  for (bool blocked : {true, false}) {
    for (const auto &size : sizes) {
      for (const auto &pad : pads) {
        const Case c{3, 32, 48, size[0], size[1], {pad[0], pad[1], pad[2], pad[3]}, blocked};
        if (c.shape().y.height > 0 && c.shape().y.width > 0) expect_accurate(c, 5e-6);
      }
    }
  }
}

void any_channels_and_batch_agree(void **) {
  for (int64_t in : {16, 32, 80, 160}) {
    for (int64_t out : {16, 32, 96}) {
      for (int64_t images : {1, 2, 5})
        expect_accurate({images, in, out, 10, 9, {1, 1, 1, 1}, images != 2}, 5e-6);
    }
  }
}

void residual_networks_are_accurate(void **) {
  expect_accurate({2, 64, 64, 32, 32, {1, 1, 1, 1}, true}, 5e-6);
  expect_accurate({2, 128, 128, 16, 16, {1, 1, 1, 1}, true}, 5e-6);
  expect_accurate({3, 256, 256, 8, 8, {1, 1, 1, 1}, true}, 5e-6);
  expect_accurate({4, 512, 512, 4, 4, {1, 1, 1, 1}, true}, 5e-6);
  expect_accurate({32, 64, 32, 28, 28, {1, 1, 1, 1}, true}, 5e-6);
}

void no_images_have_no_gradient(void **) {
  const Expected expected(Case{0, 32, 32, 8, 8, {1, 1, 1, 1}, true}.shape());
  on_all_targets([&] {
    const Computed computed(expected);
    for (float value : computed.dkernel)
      assert_true(value == 0);
    for (float value : computed.dbias)
      assert_true(value == 0);
  });
}

/// Any cut of the work makes the bits of the whole.
void ranges_make_the_same_bits(void **) {
  const Expected e(Case{9, 96, 80, 18, 17, {1, 1, 1, 1}, true}.shape());
  on_all_targets([&] {
    const Computed whole(e);
    std::vector<float> y(e.y.size()), dkernel(e.kernel.size()), dbias(e.dbias.size());
    const WinogradWeights weights{e.kernel.data(), e.place_of_kernel, false, nullptr};
    const int64_t tiles[] = {0, 7, 7, 100, e.s.tiles()}, panels[] = {0, 1, 3}, blocks[] = {0, 1, 6};
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 2; ++j) {
        const WinogradRange range{tiles[i], tiles[i + 1], panels[j], panels[j + 1]};
        const Scratch scratch(winograd_scratch_floats(e.s, range, false));
        winograd_convolve(e.s, range, weights, e.x.data(), {}, y.data(), scratch.memory.get());
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      for (size_t j = 0; j < 2; ++j) {
        const WinogradGradientRange range{blocks[i], blocks[i + 1], panels[j], panels[j + 1]};
        const Scratch scratch(winograd_gradient_scratch_floats(e.s, range));
        winograd_kernel_gradient(e.s, range, e.x.data(), e.dy.data(), e.place_of_kernel, dkernel.data(), dbias.data(),
                                 scratch.memory.get());
      }
    }
    assert_true(y == whole.y);
    assert_true(dkernel == whole.dkernel);
    assert_true(dbias == whole.dbias);
  });
}

void epilogues_agree(void **) {
  for (bool keep_kernel : {false, true}) {
    const Expected e(Case{2, 32, 48, 7, 9, {1, 1, 1, 1}, true}.shape());
    const std::vector<float> bias = noise(48, 5), scale = noise(48, 6), shift = noise(48, 7), residual = e.dy;
    on_all_targets([&] {
      std::vector<float> y = residual, transformed;
      WinogradWeights weights{e.kernel.data(), e.place_of_kernel, false, nullptr};
      const Scratch kernel(winograd_kernel_floats(e.s));
      if (keep_kernel) {
        winograd_transform_kernel(e.s, weights, 0, 1, kernel.memory.get());
        winograd_transform_kernel(e.s, weights, 1, 2, kernel.memory.get());
        weights = {nullptr, {}, false, kernel.memory.get()};
      }
      const Scratch scratch(winograd_scratch_floats(e.s, WinogradRange::all(e.s), keep_kernel));
      const WinogradEpilogue epilogue{bias.data(), scale.data(), shift.data(), y.data(), true};
      winograd_convolve(e.s, WinogradRange::all(e.s), weights, e.x.data(), epilogue, y.data(), scratch.memory.get());
      std::vector<double> expected(e.y.size());
      for (int64_t n = 0; n < e.s.images; ++n) {
        for (int64_t i = 0; i < e.s.y.height * e.s.y.width; ++i) {
          for (size_t c = 0; c < 48; ++c) {
            const size_t at = place(e.s.y, n, i / e.s.y.width, i % e.s.y.width, static_cast<int64_t>(c));
            const double sum = (e.y[at] + double{bias[c]}) * double{scale[c]} + double{shift[c]};
            expected[at] = std::max(0.0, sum + double{residual[at]});
          }
        }
      }
      expect_close(y, expected, 5e-5, "epilogue");
    });
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(any_size_and_padding_agrees),    cmocka_unit_test(any_channels_and_batch_agree),
      cmocka_unit_test(residual_networks_are_accurate), cmocka_unit_test(no_images_have_no_gradient),
      cmocka_unit_test(ranges_make_the_same_bits),      cmocka_unit_test(epilogues_agree),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace simd_winograd_test
