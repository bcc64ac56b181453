// SPDX-License-Identifier: Apache-2.0
//
// Normalisation of images against plain loops, for every instruction set that this machine has.
#include "backend/cpu/simd/simd_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/simd/simd_testing.h"
#include "testing.h"

namespace simd_norm_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT

/// Element (row, channel) of an image in either layout.
int64_t place(const ChannelShape &s, int64_t row, int64_t channel) {
  return channel / s.width * s.block_stride + row / s.rows * s.piece_stride + row % s.rows * s.width +
         channel % s.width;
}

/// Inputs of the kernels of normalisations, and where a fused relu lies on the edge: a target without fused
/// multiply-add may take either side there.
struct Channels {
  explicit Channels(const ChannelShape &shape)
      : s(shape),
        x(noise(s.count() * s.channels(), 1)),
        dy(noise(s.count() * s.channels(), 2)),
        a(noise(s.channels(), 3)),
        b(noise(s.channels(), 4)),
        mean(noise(s.channels(), 5)),
        slope(noise(s.channels(), 6)),
        shift(noise(s.channels(), 7)) {}

  double value(int64_t row, int64_t c) const { return static_cast<double>(x[at(row, c)]); }
  float open(int64_t row, int64_t c) const {
    return std::fma(x[at(row, c)], a[static_cast<size_t>(c)], b[static_cast<size_t>(c)]);
  }
  bool is_edge(int64_t row, int64_t c) const { return std::fabs(open(row, c)) < 1e-6f; }
  double gradient(int64_t row, int64_t c, bool masked) const {
    return masked && !(open(row, c) > 0) ? 0 : static_cast<double>(dy[at(row, c)]);
  }
  size_t at(int64_t row, int64_t c) const { return static_cast<size_t>(place(s, row, c)); }

  ChannelShape s;
  std::vector<float> x, dy, a, b, mean, slope, shift;
};

void check_moments(const Channels &g, bool masked) {
  const ChannelShape &s = g.s;
  const auto channels = static_cast<size_t>(s.channels());
  std::vector<double> sum(channels), squares(channels), sum_dy(channels), dy_xc(channels);
  const ChannelMask mask = masked ? ChannelMask{g.a.data(), g.b.data()} : ChannelMask{};
  channel_moments(s, g.x.data(), sum.data(), squares.data());
  channel_gradient_moments(s, g.dy.data(), g.x.data(), g.mean.data(), mask, sum_dy.data(), dy_xc.data());
  for (int64_t c = 0; c < s.channels(); ++c) {
    const auto channel = static_cast<size_t>(c);
    double expected[4] = {0, 0, 0, 0};
    bool edge = false;
    for (int64_t row = 0; row < s.count(); ++row) {
      const double value = g.value(row, c), gradient = g.gradient(row, c, masked);
      expected[0] += value;
      expected[1] += value * value;
      expected[2] += gradient;
      expected[3] += gradient * (value - static_cast<double>(g.mean[channel]));
      edge = edge || (masked && g.is_edge(row, c));
    }
    const double got[4] = {sum[channel], squares[channel], sum_dy[channel], dy_xc[channel]};
    const double limits[4] = {1e-3, 1e-3, edge ? 1.1 : 1e-3, edge ? 2.2 : 1e-3};
    for (int i = 0; i < 4; ++i)
      assert_true(std::fabs(got[i] - expected[i]) < limits[i]);
  }
}

void check_passes(const Channels &g, bool masked) {
  const ChannelShape &s = g.s;
  std::vector<float> y(g.x.size()), dx(g.x.size());
  const float *other = masked ? g.dy.data() : nullptr;
  channel_apply(s, g.x.data(), g.a.data(), g.b.data(), other, true, y.data());
  const ChannelMask mask = masked ? ChannelMask{g.a.data(), g.b.data()} : ChannelMask{};
  channel_gradient_apply(s, g.dy.data(), g.x.data(), g.mean.data(), g.a.data(), g.slope.data(), g.shift.data(), mask,
                         dx.data());
  for (int64_t c = 0; c < s.channels(); ++c) {
    const auto channel = static_cast<size_t>(c);
    const auto a = static_cast<double>(g.a[channel]), mean = static_cast<double>(g.mean[channel]);
    for (int64_t row = 0; row < s.count(); ++row) {
      const size_t at = g.at(row, c);
      double value = g.value(row, c) * a + static_cast<double>(g.b[channel]);
      if (masked) value += static_cast<double>(g.dy[at]);
      assert_true(std::fabs(static_cast<double>(y[at]) - std::max(0.0, value)) < 1e-5);
      if (masked && g.is_edge(row, c)) continue;
      const double gradient = g.gradient(row, c, masked) * a +
                              (g.value(row, c) - mean) * static_cast<double>(g.slope[channel]) +
                              static_cast<double>(g.shift[channel]);
      assert_true(std::fabs(static_cast<double>(dx[at]) - gradient) < 1e-5);
    }
  }
}

void check_channels(const ChannelShape &s) {
  const Channels channels(s);
  for (const bool masked : {false, true}) {
    check_moments(channels, masked);
    check_passes(channels, masked);
  }
}

/// Narrow ones, wide ones in whole vectors and not, and more than are walked together.
void channels_agree(void **) {
  on_all_targets([] {
    for (int64_t channels : {1, 3, 16, 17, 40, 48, 72, 130, 256, 640}) {
      for (int64_t rows : {1, 7, 261})
        check_channels(ChannelShape::plain(rows, channels));
    }
    check_channels(ChannelShape::blocked(3, 35, 48));
  });
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {cmocka_unit_test(channels_agree)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace simd_norm_test
