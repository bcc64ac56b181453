// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_interpolate.h"

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Where an element of an axis lies: as graph::ops::interpolated().
struct Between {
  int64_t low, high;
  double share;

  __device__ Between(int64_t i, int64_t from, int64_t to) {
    const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const auto below = static_cast<int64_t>(std::floor(at));
    low = below < 0 ? 0 : below < from ? below : from - 1;
    high = below + 1 < from ? below + 1 : from - 1;
    share = low == high ? 0 : at - static_cast<double>(below);
  }
  /// What is not needed may be infinite.
  template <typename C>
  __device__ C of(C first, C second) const {
    return share == 0 ? first : first + static_cast<C>(share) * (second - first);
  }
};

template <typename C>
__global__ void interpolate(const Interpolation images) {
  const int64_t total = images.rows * images.to_height * images.to_width * images.channels;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const int64_t channel = i % images.channels, pixel = i / images.channels;
    const int64_t line = pixel / images.to_width, row = line / images.to_height;
    const Between across(pixel % images.to_width, images.width, images.to_width);
    const Between down(line % images.to_height, images.height, images.to_height);
    const auto at = [&](int64_t y, int64_t x) {
      const int64_t place = ((row * images.height + y) * images.width + x) * images.channels + channel;
      return load_element<C>(images.dtype, images.x, place);
    };
    const C left = down.of(at(down.low, across.low), at(down.high, across.low));
    const C right = down.of(at(down.low, across.high), at(down.high, across.high));
    store_element<C>(images.dtype, images.y, i, across.of(left, right));
  }
}

}  // namespace

gpuError_t launch_interpolation(const Interpolation &images, gpuStream_t stream) {
  const int64_t total = images.rows * images.to_height * images.to_width * images.channels;
  if (total == 0) return gpuSuccess;
  const auto kernel = images.dtype == DType::f64 ? interpolate<double> : interpolate<float>;
  return gpu_launch(kernel, blocks_for(total), kBlockThreads, 0, stream, images);
}

}  // namespace tutti::impl::backend::gpu
