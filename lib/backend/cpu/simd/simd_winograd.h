// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of f32 images with kernels of 3 x 3 at stride 1, and their gradients, by Winograd's minimal filtering
// F(4x4, 3x3): A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016. A tile of 4 x 4
// results takes 36 multiplications per pair of channels instead of 144; transforming tiles of images and the kernel
// costs additions, which pay from about 32 channels on. Rounding: about 1e-6 relative (plain sums: 2e-7).
//
//   x [images, in, height, width] --B^T x B--> 36 matrices [tiles, in] --+
//   kernel [3, 3, in, out]        --G k G^T--> 36 matrices [in, out]   --+-> 36 products [tiles, out] --A^T m A--> y
//
// Tiles are taken in groups that stay in the second-level cache, all 36 products of a group one after the other. The
// gradient of the kernel is the adjoint of that: 36 products [in, tiles] x [tiles, out], summed over the groups. The
// gradient of the input is a convolution with the turned kernel on transposed() shapes.
//
// Channels are multiples of 16; images may be of any size, padding is 0 .. 2 on each side. Each function works on a
// range, so that threads can share the work; results do not depend on how it is cut, only on the arguments and the
// instruction set. No allocation: scratch is given, 64-byte aligned.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_WINOGRAD_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_WINOGRAD_H_

#include <cstdint>

namespace tutti::impl::backend::cpu {

/// Where the elements of images lie, in floats; 16 channels are next to each other and make a block.
struct WinogradImages {
  int64_t channels = 0, height = 0, width = 0;
  int64_t image_stride = 0, block_stride = 0, row_stride = 0, column_stride = 0;

  /// [images, channels / 16, height, width, 16]
  static WinogradImages blocked(int64_t channels, int64_t height, int64_t width);
  /// [images, height, width, channels]
  static WinogradImages row_major(int64_t channels, int64_t height, int64_t width);
  int64_t blocks() const { return channels / 16; }
};

struct WinogradShape {
  int64_t images = 0;
  WinogradImages x, y;  ///< y.height = x.height + padding - 2, and so on
  int64_t pad_top = 0, pad_left = 0;

  int64_t tiles_down() const { return (y.height + 3) / 4; }
  int64_t tiles_across() const { return (y.width + 3) / 4; }
  int64_t tiles() const { return images * tiles_down() * tiles_across(); }
  /// Panels of 32 channels of y; the last one may have 16.
  int64_t panels() const { return (y.channels + 31) / 32; }
  /// The convolution that makes the gradient of x from that of y.
  WinogradShape transposed() const;
};

/// Part of a convolution: some tiles of y, some panels of its channels.
struct WinogradRange {
  int64_t tile_begin = 0, tile_end = 0, panel_begin = 0, panel_end = 0;
  static WinogradRange all(const WinogradShape &shape) { return {0, shape.tiles(), 0, shape.panels()}; }
};

/// Where the elements of a kernel lie, in floats: 16 output channels are next to each other.
struct WinogradKernel {
  int64_t tap_stride = 0, in_stride = 0;  ///< of the 9 taps, of an input channel within a block of 16
  int64_t in_block_stride = 0, out_block_stride = 0;

  /// [3, 3, in, out]. The taps of large kernels are far apart, which costs time.
  static WinogradKernel row_major(int64_t in, int64_t out);
  /// [out / 16, in / 16, 3, 3, 16 in, 16 out]
  static WinogradKernel blocked(int64_t in);
};

/// Exactly one of `kernel` and `transformed` is given.
struct WinogradWeights {
  const float *kernel = nullptr;
  WinogradKernel place;
  bool turned = false;                 ///< for transposed() shapes; `kernel` and `place` stay the forward ones
  const float *transformed = nullptr;  ///< made by winograd_transform_kernel for the same shape
};

/// Applied in this order to each element; null and false mean nothing.
struct WinogradEpilogue {
  const float *bias = nullptr;      ///< by channel of y: added
  const float *scale = nullptr;     ///< by channel of y: multiplied
  const float *shift = nullptr;     ///< by channel of y: added after the scale
  const float *residual = nullptr;  ///< laid out as y: added; may be y itself
  bool relu = false;
};

/// Floats of a transformed kernel: four times the kernel. Worth keeping where the kernel stays the same: the transform
/// costs as much as the products of 5 tiles.
int64_t winograd_kernel_floats(const WinogradShape &shape);
/// Transforms the panels [begin, end) into their place in `transformed`.
void winograd_transform_kernel(const WinogradShape &shape, const WinogradWeights &weights, int64_t panel_begin,
                               int64_t panel_end, float *transformed);

/// Up to so many tiles are taken at once, and need the transformed kernel only once: larger parts are best done with a
/// kernel that is transformed before, smaller ones cut by panels.
int64_t winograd_group_tiles(const WinogradShape &shape);

int64_t winograd_scratch_floats(const WinogradShape &shape, const WinogradRange &range, bool kernel_is_transformed);
/// y = epilogue(x * kernel) for the tiles and channels of the range.
void winograd_convolve(const WinogradShape &shape, const WinogradRange &range, const WinogradWeights &weights,
                       const float *x, const WinogradEpilogue &epilogue, float *y, float *scratch);

/// Part of a kernel's gradient: some blocks of 16 channels of x, some panels of channels of y.
struct WinogradGradientRange {
  int64_t block_begin = 0, block_end = 0, panel_begin = 0, panel_end = 0;
  static WinogradGradientRange all(const WinogradShape &shape) { return {0, shape.x.blocks(), 0, shape.panels()}; }
};

int64_t winograd_gradient_scratch_floats(const WinogradShape &shape, const WinogradGradientRange &range);
/// The kernel's gradient for the channels of the range. `dbias` [out], if not null: the sum of dy for the channels of
/// the range's panels, which only the ranges that begin at block 0 write.
void winograd_kernel_gradient(const WinogradShape &shape, const WinogradGradientRange &range, const float *x,
                              const float *dy, const WinogradKernel &place, float *dkernel, float *dbias,
                              float *scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_WINOGRAD_H_
