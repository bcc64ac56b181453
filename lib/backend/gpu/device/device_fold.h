// SPDX-License-Identifier: Apache-2.0
//
// What lets a convolution of few channels with a stride of two be one of 16 channels without a stride, of elements of
// 16 bits: squares of two by two pixels become one pixel ("space to depth"), of four places for the channels of each.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_FOLD_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_FOLD_H_

#include <tutti_gpu.h>

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// Of an axis (0 height, 1 width): pixel i of the folded image has pixels 2 (i + first) and the next of the own one,
/// zeros where that has none; element a of the folded kernel has elements 2 (a + first) + pad and the next.
struct FoldedAxis {
  int64_t own, folded;            ///< pixels of the image
  int64_t window, folded_window;  ///< elements of the kernel
  int64_t first, pad;
};

struct StrideFold {
  static constexpr int32_t kStride = 2, kPlaces = 4, kChannels = kStride * kStride * kPlaces;

  int64_t images, filters;
  int32_t channels;  ///< of the own image, kPlaces at most
  FoldedAxis axes[2];
};

/// to[images, rows, columns, kChannels] of from[images, height, width, channels].
gpuError_t launch_fold_image(const StrideFold &fold, void *to, const void *from, gpuStream_t stream);
/// to[filters, rows, columns, kChannels] of from[height, width, channels, filters].
gpuError_t launch_fold_kernel(const StrideFold &fold, void *to, const void *from, gpuStream_t stream);
/// The elements that the own kernel has: to[height, width, channels, filters] of
/// from[filters, rows, columns, kChannels].
gpuError_t launch_unfold_kernel(const StrideFold &fold, void *to, const void *from, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_FOLD_H_
