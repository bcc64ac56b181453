// SPDX-License-Identifier: Apache-2.0
//
// Passes over the elements of [images, rows, channels] in which a thread keeps the parameters of its channels. Included
// by .cu files only.
//
//   struct Pass {
//     static constexpr int kWidth = ..;                                    // neighbouring channels of a thread
//     static constexpr bool kBeginsAtTheEnd = true;                        // if it is there, from the last row on
//     struct Channels { .. };                                              // a thread's registers
//     struct Loaded { .. };                                                // of elements, as they lie in memory
//     __device__ Channels begin(int64_t image, int64_t channel) const;
//     __device__ Loaded load(const Channels &, int64_t index) const;       // elements index .. index + kWidth - 1
//     __device__ void finish(const Channels &, int64_t index, const Loaded &) const;
//   };
#ifndef TUTTI_BACKEND_GPU_DEVICE_CHANNEL_PASS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_CHANNEL_PASS_INL_H_

#include "backend/gpu/device/reduction-inl.h"

namespace tutti::impl::backend::gpu {

/// A few for each multiprocessor: what a thread keeps of its channels takes as long to make as many rows.
inline constexpr int64_t kPassBlocks = 1024;

/// Units are images x slices x tiles: a block has `lanes` packs of channels side by side, in kBlockThreads / lanes
/// lines of rows, and takes the rows of a slice.
struct ChannelPassLayout {
  int64_t images, rows, channels, tiles, slices, slice_rows;
  int32_t lanes;

  __host__ __device__ int64_t units() const { return images * slices * tiles; }
};

inline ChannelPassLayout channel_pass_layout(int64_t images, int64_t rows, int64_t channels, int64_t width) {
  const ReductionLayout columns = columns_reduced(images, rows, channels, width);
  const int64_t lines = kBlockThreads / columns.lanes,
                most = std::max<int64_t>(1, kPassBlocks / (columns.tiles * images));
  const int64_t slice_rows = divide_up(divide_up(rows, std::min(divide_up(rows, lines * 4), most)), lines) * lines;
  return {images, rows, channels, columns.tiles, divide_up(rows, slice_rows), slice_rows, columns.lanes};
}

template <typename Pass>
__device__ __forceinline__ void run_pass(const Pass &pass, const ChannelPassLayout &layout) {
  constexpr bool kIsReversed = requires { Pass::kBeginsAtTheEnd; };
  const int thread = static_cast<int>(threadIdx.x), lane = thread % layout.lanes;
  const int64_t lines = kBlockThreads / layout.lanes;
  for (int64_t unit = blockIdx.x; unit < layout.units(); unit += gridDim.x) {
    const int64_t channel = (unit % layout.tiles * layout.lanes + lane) * Pass::kWidth;
    const int64_t slice = unit / layout.tiles % layout.slices, image = unit / layout.tiles / layout.slices;
    if (channel >= layout.channels) continue;
    const typename Pass::Channels channels = pass.begin(image, channel);
    int64_t row = slice * layout.slice_rows + thread / layout.lanes;
    const int64_t end = (slice + 1) * layout.slice_rows < layout.rows ? (slice + 1) * layout.slice_rows : layout.rows;
    const int64_t step_elements = kIsReversed ? -lines * layout.channels : lines * layout.channels;
    int64_t index = (image * layout.rows + (kIsReversed ? layout.rows - 1 - row : row)) * layout.channels + channel;
    // Two rows are on their way at once.
    for (; row + lines < end; row += 2 * lines, index += 2 * step_elements) {
      const typename Pass::Loaded first = pass.load(channels, index),
                                  second = pass.load(channels, index + step_elements);
      pass.finish(channels, index, first);
      pass.finish(channels, index + step_elements, second);
    }
    if (row < end) pass.finish(channels, index, pass.load(channels, index));
  }
}

template <typename Pass>
__global__ void pass_over_rows(const Pass pass, const ChannelPassLayout layout) {
  run_pass(pass, layout);
}

/// Pass::kBlocksAtOnce blocks share a multiprocessor at least.
template <typename Pass>
__global__ void __launch_bounds__(kBlockThreads, Pass::kBlocksAtOnce)
    pass_over_rows_at_once(const Pass pass, const ChannelPassLayout layout) {
  run_pass(pass, layout);
}

template <typename Pass>
constexpr auto pass_kernel() {
  if constexpr (requires { Pass::kBlocksAtOnce; }) {
    return &pass_over_rows_at_once<Pass>;
  } else {
    return &pass_over_rows<Pass>;
  }
}

template <typename Pass>
gpuError_t launch_pass(const Pass &pass, int64_t images, int64_t rows, int64_t channels, gpuStream_t stream) {
  if (images * rows * channels == 0) return gpuSuccess;
  const ChannelPassLayout layout = channel_pass_layout(images, rows, channels, Pass::kWidth);
  return gpu_launch(pass_kernel<Pass>(), static_cast<unsigned>(std::min(layout.units(), kMostBlocks)), kBlockThreads, 0,
                    stream, pass, layout);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_CHANNEL_PASS_INL_H_
