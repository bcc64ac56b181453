// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_fold.h"

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/image_places-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

constexpr int kPlaces = StrideFold::kPlaces, kStride = StrideFold::kStride, kChannels = StrideFold::kChannels;

/// A thread has a line of a square: two pixels side by side.
__global__ void fold_image(const StrideFold fold, const ImagePlaces places, int64_t lines, uint16_t *to,
                           const uint16_t *from) {
  const FoldedAxis &height = fold.axes[0], &width = fold.axes[1];
  for (int64_t line = grid_thread(); line < lines; line += grid_threads()) {
    const ImagePlace at = places.at(line);  // whose channel is the line's number in the square
    const int64_t row = kStride * (at.row + height.first) + at.channel, first = kStride * (at.column + width.first);
    const uint16_t *const pixel = from + ((at.image * height.own + row) * width.own + first) * fold.channels;
    const bool is_row = row >= 0 && row < height.own;
    Pack<uint16_t, kStride * kPlaces> stored;
    TUTTI_UNROLL
    for (int i = 0; i < kStride; ++i) {
      const bool is_inside = is_row && first + i >= 0 && first + i < width.own;
      TUTTI_UNROLL
      for (int channel = 0; channel < kPlaces; ++channel) {
        const bool is_there = is_inside && channel < fold.channels;
        stored.items[i * kPlaces + channel] = is_there ? pixel[i * fold.channels + channel] : uint16_t{0};
      }
    }
    reinterpret_cast<Pack<uint16_t, kStride * kPlaces> *>(to)[line] = stored;
  }
}

/// Where element (y, x, channel) of the own kernel lies in the folded one of a filter; `y` and `x` less the padding.
__device__ inline int64_t folded_at(const StrideFold &fold, int64_t y, int64_t x, int64_t channel) {
  const FoldedAxis &height = fold.axes[0], &width = fold.axes[1];
  // Counted from the first square on, nothing is negative.
  const int64_t down = y - kStride * height.first, across = x - kStride * width.first;
  const int64_t square = down / kStride * width.folded_window + across / kStride;
  return square * kChannels + (down % kStride * kStride + across % kStride) * kPlaces + channel;
}

__device__ inline int64_t folded_size(const StrideFold &fold) {
  return fold.axes[0].folded_window * fold.axes[1].folded_window * kChannels;
}

__global__ void clear(uint16_t *to, int64_t elements) {
  for (int64_t i = grid_thread(); i < elements; i += grid_threads())
    to[i] = 0;
}

/// For each element of the own kernel, whose last axis is filters.
template <bool kFolds>
__global__ void move_kernel(const StrideFold fold, int64_t elements, uint16_t *to, const uint16_t *from) {
  const FoldedAxis &height = fold.axes[0], &width = fold.axes[1];
  for (int64_t own = grid_thread(); own < elements; own += grid_threads()) {
    const int64_t filter = own % fold.filters, channel = own / fold.filters % fold.channels;
    const int64_t pixel = own / fold.filters / fold.channels;
    const int64_t y = pixel / width.window - height.pad, x = pixel % width.window - width.pad;
    const int64_t folded = filter * folded_size(fold) + folded_at(fold, y, x, channel);
    if (kFolds) {
      to[folded] = from[own];
    } else {
      to[own] = from[folded];
    }
  }
}

int64_t own_elements(const StrideFold &fold) {
  return fold.axes[0].window * fold.axes[1].window * fold.channels * fold.filters;
}

}  // namespace

gpuError_t launch_fold_image(const StrideFold &fold, void *to, const void *from, gpuStream_t stream) {
  const int64_t rows = fold.axes[0].folded, columns = fold.axes[1].folded;
  const int64_t lines = fold.images * rows * columns * kStride;
  if (lines == 0) return gpuSuccess;
  return gpu_launch(fold_image, blocks_for(lines, 65536), kBlockThreads, 0, stream, fold,
                    ImagePlaces::of(rows, columns, kStride), lines, static_cast<uint16_t *>(to),
                    static_cast<const uint16_t *>(from));
}

gpuError_t launch_fold_kernel(const StrideFold &fold, void *to, const void *from, gpuStream_t stream) {
  const int64_t folded = fold.filters * fold.axes[0].folded_window * fold.axes[1].folded_window * kChannels;
  if (own_elements(fold) == 0) return gpuSuccess;
  auto *const target = static_cast<uint16_t *>(to);
  const gpuError_t error = gpu_launch(clear, blocks_for(folded), kBlockThreads, 0, stream, target, folded);
  if (error != gpuSuccess) return error;
  return gpu_launch(move_kernel<true>, blocks_for(own_elements(fold)), kBlockThreads, 0, stream, fold,
                    own_elements(fold), target, static_cast<const uint16_t *>(from));
}

gpuError_t launch_unfold_kernel(const StrideFold &fold, void *to, const void *from, gpuStream_t stream) {
  if (own_elements(fold) == 0) return gpuSuccess;
  return gpu_launch(move_kernel<false>, blocks_for(own_elements(fold)), kBlockThreads, 0, stream, fold,
                    own_elements(fold), static_cast<uint16_t *>(to), static_cast<const uint16_t *>(from));
}

}  // namespace tutti::impl::backend::gpu
