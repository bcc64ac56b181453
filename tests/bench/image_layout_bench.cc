// SPDX-License-Identifier: Apache-2.0
//
// What ops bound by memory take for each byte of their image, row-major and in blocks of 16 channels, on one thread:
// where the table in lib/backend/cpu/lower/image_layouts.cc comes from.
//
//   image_layout_bench
#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "backend/cpu/convolution/convolution_timing.h"
#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/kernel/pool.h"
#include "backend/cpu/simd/simd_norm.h"

namespace {

using namespace tutti::impl::backend::cpu;

struct Image {
  int64_t rows, side, channels;
  int64_t elements() const { return rows * side * side * channels; }
};

/// The least of some runs, in seconds per byte of the image.
double measure(const Image &image, const std::function<void()> &run) {
  double least = 1e9;
  for (int i = 0; i < 12; ++i) {
    const double start = thread_seconds();
    run();
    least = std::min(least, thread_seconds() - start);
  }
  return least / static_cast<double>(image.elements() * 4);
}

PoolShape pool_shape(const Image &image, bool blocked) {
  PoolShape s;
  const int64_t blocks = blocked ? image.channels / 16 : 1;
  s.images = image.rows * blocks;
  s.channels = image.channels / blocks;
  s.in_height = s.in_width = image.side;
  s.out_height = s.out_width = image.side / 2;
  s.window[0] = s.window[1] = s.stride[0] = s.stride[1] = 2;
  return s;
}

void measure_all(const Image &image) {
  const auto n = static_cast<size_t>(image.elements());
  std::vector<float> x(n), dy(n), y(n), a(2048, 1.0f), b(2048, 0.1f), c(2048, 0.01f);
  std::vector<double> sum(2048), squares(2048);
  for (size_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(i * 2654435761u % 1000) * 1e-3f - 0.5f;
  dy = x;
  std::printf("%lld x %lld x %lld x %lld\n", static_cast<long long>(image.rows), static_cast<long long>(image.side),
              static_cast<long long>(image.side), static_cast<long long>(image.channels));
  struct Op {
    const char *name;
    std::function<void(const ChannelShape &, const PoolShape &)> run;
  };
  const ChannelMask mask = {a.data(), b.data()};
  const Op ops[] = {
      {"moments", [&](auto &s, auto &) { channel_moments(s, x.data(), sum.data(), squares.data()); }},
      {"apply", [&](auto &s, auto &) { channel_apply(s, x.data(), a.data(), b.data(), nullptr, true, y.data()); }},
      {"gradient moments",
       [&](auto &s, auto &) {
         channel_gradient_moments(s, dy.data(), x.data(), b.data(), mask, sum.data(), squares.data());
       }},
      {"gradient apply",
       [&](auto &s, auto &) {
         channel_gradient_apply(s, dy.data(), x.data(), b.data(), a.data(), c.data(), c.data(), mask, y.data());
       }},
      {"max pool", [&](auto &, auto &p) { max_pool(p, x.data(), y.data()); }},
      {"max pool gradient",
       [&](auto &, auto &p) { max_pool_gradient(p, dy.data(), x.data(), y.data(), true, dy.data()); }},
      {"average pool", [&](auto &, auto &p) { average_pool(p, x.data(), y.data()); }},
  };
  const ChannelShape plain = ChannelShape::plain(image.elements() / image.channels, image.channels);
  const ChannelShape blocked = ChannelShape::blocked(image.rows, image.side * image.side, image.channels);
  for (const Op &op : ops) {
    const double in_rows = measure(image, [&] { op.run(plain, pool_shape(image, false)); });
    const double in_blocks = measure(image, [&] { op.run(blocked, pool_shape(image, true)); });
    std::printf("  %-20s row-major %6.3f  blocked %6.3f  difference %7.3f ns/10 B\n", op.name, in_rows * 1e10,
                in_blocks * 1e10, (in_blocks - in_rows) * 1e10);
  }
  const double reorder =
      measure(image, [&] { to_blocked(image.rows, image.side * image.side, image.channels, x.data(), y.data()); });
  std::printf("  %-20s %6.3f ns/10 B\n", "reorder", reorder * 1e10);
}

}  // namespace

int main() {
  for (const Image &image :
       {Image{32, 56, 64}, Image{8, 28, 128}, Image{128, 32, 16}, Image{128, 16, 32}, Image{128, 8, 64},
        Image{32, 14, 256}, Image{8, 28, 512}, Image{8, 14, 1024}, Image{8, 7, 2048}})
    measure_all(image);
  return 0;
}
