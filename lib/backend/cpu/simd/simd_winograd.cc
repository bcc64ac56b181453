// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_winograd.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_winograd.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd_winograd-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {
namespace {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

// Tiles whose results stay in registers with two vectors of channels each.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 14 : 6;
// Channels of x multiplied at once: their part of the kernel stays in the second-level cache for all positions, in the
// first-level cache for one.
constexpr int64_t kDepth = 64;
// A group's transformed images and results should stay in the second-level cache; smaller groups read the kernel more
// often.
constexpr int64_t kGroupBytes = 512 * 1024;
constexpr int64_t kGroupTiles = 28;

// ---- the kernel ----

// A transformed kernel is cut into panels, those into slices of kDepth channels of x: [36][channel][32 or 16]. All
// panels and slices take the room of the largest.
int64_t panel_width(const WinogradShape &s, int64_t panel) { return HWY_MIN(kPanel, s.y.channels - panel * kPanel); }

int64_t slice_depth(const WinogradShape &s, int64_t first) { return HWY_MIN(kDepth, s.x.channels - first); }

int64_t slice_floats(const WinogradShape &s) { return kPositions * spread(kPanel * slice_depth(s, 0)); }

int64_t panel_floats(const WinogradShape &s) { return (s.x.channels + kDepth - 1) / kDepth * slice_floats(s); }

// 3 x 3 vectors `tap_step` apart become 36, `step` apart.
HWY_INLINE void transform_kernel_vector(const float *HWY_RESTRICT from, int64_t tap_step, float *HWY_RESTRICT to,
                                        int64_t step) {
  V columns[3][6];
  HWY_UNROLL(3)
  for (int j = 0; j < 3; ++j) {
    kernel_column(hn::LoadU(d, from + j * tap_step), hn::LoadU(d, from + (3 + j) * tap_step),
                  hn::LoadU(d, from + (6 + j) * tap_step), columns[j]);
  }
  HWY_UNROLL(6)
  for (int i = 0; i < 6; ++i) {
    V row[6];
    kernel_column(columns[0][i], columns[1][i], columns[2][i], row);
    HWY_UNROLL(6)
    for (int j = 0; j < 6; ++j)
      hn::Store(row[j], d, to + (6 * i + j) * step);
  }
}

// 16 rows of 16 floats become 16 columns.
HWY_INLINE void turn_block(const float *HWY_RESTRICT from, int64_t row, float *HWY_RESTRICT to) {
  const int64_t lanes = float_lanes();
  HWY_ALIGN float turned[4 * HWY_MAX_BYTES / sizeof(float)];
  for (int64_t i = 0; i < kBlock; i += 4, from += 4 * row) {
    for (int64_t j = 0; j < kBlock; j += lanes) {
      hn::StoreInterleaved4(hn::LoadU(d, from + j), hn::LoadU(d, from + row + j), hn::LoadU(d, from + 2 * row + j),
                            hn::LoadU(d, from + 3 * row + j), d, turned);
      for (int64_t k = 0; k < lanes; ++k)
        std::memcpy(to + (j + k) * kBlock + i, turned + 4 * k, 4 * sizeof(float));
    }
  }
}

// Channels [first, first + depth) of x of a panel.
void transform_slice(const WinogradShape &s, const WinogradWeights &weights, int64_t panel, int64_t first,
                     int64_t depth, float *HWY_RESTRICT to) {
  HWY_ALIGN float turned[2][9 * kBlock * kBlock];
  const int64_t lanes = float_lanes();
  const int64_t width = panel_width(s, panel), step = spread(depth * width);
  const WinogradKernel &g = weights.place;
  for (int64_t i = 0; i < depth; i += kBlock) {
    const float *from[2] = {};
    int64_t row = g.in_stride, tap_step = g.tap_stride;
    for (int64_t j = 0; j < width; j += kBlock) {
      const int64_t in = (first + i) / kBlock, out = (panel * kPanel + j) / kBlock;
      from[j / kBlock] = weights.kernel + (weights.turned ? out * g.in_block_stride + in * g.out_block_stride
                                                          : in * g.in_block_stride + out * g.out_block_stride);
      if (!weights.turned) continue;
      for (int64_t tap = 0; tap < 9; ++tap)
        turn_block(from[j / kBlock] + (8 - tap) * tap_step, row, turned[j / kBlock] + tap * kBlock * kBlock);
      from[j / kBlock] = turned[j / kBlock];
    }
    if (weights.turned) {
      row = kBlock;
      tap_step = kBlock * kBlock;
    }
    for (int64_t k = 0; k < kBlock; ++k) {
      for (int64_t j = 0; j < width; j += lanes) {
        transform_kernel_vector(from[j / kBlock] + k * row + j % kBlock, tap_step, to + (i + k) * width + j, step);
      }
    }
  }
}

// ---- products ----

// rows of [tiles, 16 channels] pieces times [channels, width]; results go to rows of kPanel.
struct Product {
  const float *HWY_RESTRICT a;
  int64_t a_piece;  // from one piece of 16 channels to the next
  const float *HWY_RESTRICT b;
  int64_t width;
  float *HWY_RESTRICT c;
  int64_t pieces;
  bool add;  // to what c holds
};

template <int kRows, int kVectors>
HWY_NOINLINE void multiply(const Product &product) {
  const int64_t lanes = float_lanes();
  V sums[kRows][kVectors];
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = hn::Zero(d);
  }
  const float *HWY_RESTRICT a = product.a;
  const float *HWY_RESTRICT b = product.b;
  const int64_t width = product.width, jump = product.a_piece - kBlock;
  for (int64_t piece = 0; piece < product.pieces; ++piece, a += jump) {
    HWY_UNROLL(2)
    for (int64_t i = 0; i < kBlock; ++i, ++a, b += width) {
      V columns[kVectors];
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v)
        columns[v] = hn::LoadU(d, b + v * lanes);
      HWY_UNROLL(16)
      for (int r = 0; r < kRows; ++r) {
        const V value = hn::Set(d, a[r * kBlock]);
        HWY_UNROLL(2)
        for (int v = 0; v < kVectors; ++v)
          sums[r][v] = hn::MulAdd(value, columns[v], sums[r][v]);
      }
    }
  }
  float *HWY_RESTRICT c = product.c;
  const bool add = product.add;
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      float *to = c + r * kPanel + v * lanes;
      hn::Store(add ? hn::Add(hn::Load(d, to), sums[r][v]) : sums[r][v], d, to);
    }
  }
}

template <int kVectors, int... kIndex>
HWY_INLINE void multiply_rows(int64_t rows, const Product &product, std::integer_sequence<int, kIndex...>) {
  static constexpr void (*kMultiply[])(const Product &) = {&multiply<kIndex + 1, kVectors>...};
  kMultiply[rows - 1](product);
}

// `count` tiles x `width` channels.
HWY_INLINE void multiply_position(Product product, int64_t count, int64_t width) {
  constexpr auto kRows = std::make_integer_sequence<int, kTileRows>();
  const int64_t lanes = float_lanes();
  const int64_t strips = (count + kTileRows - 1) / kTileRows;
  const int64_t strip = (count + strips - 1) / strips;
  const Product first = product;
  for (int64_t j = 0; j < width; j += 2 * lanes) {
    for (int64_t i = 0; i < count; i += strip) {
      product.a = first.a + i * kBlock;
      product.b = first.b + j;
      product.c = first.c + i * kPanel + j;
      const int64_t rows = HWY_MIN(strip, count - i);
      width - j >= 2 * lanes ? multiply_rows<2>(rows, product, kRows) : multiply_rows<1>(rows, product, kRows);
    }
  }
}

// ---- results ----

// The epilogue for one vector of channels: `residual` and the result lie at the same offsets. What does not follow is
// done so that it changes nothing, but for the residual.
struct Finish {
  V scale, shift;
  V floor;  // what is below becomes 0
  const float *residual;

  template <bool kResidual>
  HWY_INLINE V of(V sum, int64_t offset) const {
    sum = hn::MulAdd(sum, scale, shift);
    if (kResidual) sum = hn::Add(sum, hn::LoadU(d, residual + offset));
    // max(x, 0) would turn NaN into 0 or not depending on the operands' order.
    return hn::IfThenZeroElse(hn::Lt(sum, floor), sum);
  }
};

HWY_INLINE Finish make_finish(const WinogradEpilogue &epilogue, int64_t channel) {
  const V floor = epilogue.relu ? hn::Zero(d) : hn::Set(d, -std::numeric_limits<float>::infinity());
  Finish finish{hn::Set(d, 1.0f), hn::Zero(d), floor, epilogue.residual};
  if (epilogue.scale != nullptr) finish.scale = hn::LoadU(d, epilogue.scale + channel);
  if (epilogue.bias != nullptr) finish.shift = hn::Mul(hn::LoadU(d, epilogue.bias + channel), finish.scale);
  if (epilogue.shift != nullptr) finish.shift = hn::Add(finish.shift, hn::LoadU(d, epilogue.shift + channel));
  return finish;
}

// Rows of A^T m A that are made at once: so many that what they are made of stays in registers.
constexpr int kResultRows = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// A^T m A of one vector of channels; the first `rows` x `columns` results are stored.
template <bool kResidual>
HWY_INLINE void transform_result_tile(const float *HWY_RESTRICT from, int64_t step, const Finish &finish,
                                      const WinogradImages &g, int64_t rows, int64_t columns, float *y,
                                      int64_t offset) {
  const bool full = rows >= 4 && columns >= 4;
  HWY_UNROLL(2)
  for (int first = 0; first < 4; first += kResultRows) {
    V half[6][4];
    const float *m = from;
    HWY_UNROLL(6)
    for (int64_t j = 0; j < 6; ++j) {
      result_column(hn::Load(d, m), hn::Load(d, m + 6 * step), hn::Load(d, m + 12 * step), hn::Load(d, m + 18 * step),
                    hn::Load(d, m + 24 * step), hn::Load(d, m + 30 * step), half[j]);
      m += step;
#if defined(__GNUC__)
      // Compilers would keep all 36 addresses, in memory.
      asm("" : "+r"(m));
#endif
    }
    HWY_UNROLL(4)
    for (int64_t i = first; i < first + kResultRows; ++i, offset += g.row_stride) {
      V row[4];
      result_column(half[0][i], half[1][i], half[2][i], half[3][i], half[4][i], half[5][i], row);
      if (full) {
        HWY_UNROLL(4)
        for (int64_t j = 0; j < 4; ++j)
          hn::StoreU(finish.of<kResidual>(row[j], offset + j * g.column_stride), d, y + offset + j * g.column_stride);
      } else if (i < rows) {
        HWY_UNROLL(4)
        for (int64_t j = 0; j < 4; ++j) {
          const int64_t at = offset + j * g.column_stride;
          if (j < columns) hn::StoreU(finish.of<kResidual>(row[j], at), d, y + at);
        }
      }
    }
  }
}

// Of one vector of channels, the first of which lies at `place`.
template <bool kResidual>
HWY_INLINE void transform_result_vector(const WinogradShape &s, int64_t begin, int64_t count, const float *from,
                                        int64_t step, const Finish &finish, int64_t place, float *y) {
  const WinogradImages g = s.y;  // no stored vector may change it
  TileWalk walk(s, begin);
  for (int64_t tile = 0; tile < count; ++tile, walk.next()) {
    const int64_t top = 4 * walk.row, left = 4 * walk.column;
    transform_result_tile<kResidual>(from + tile * kPanel, step, finish, g, g.height - top, g.width - left, y,
                                     place + walk.image * g.image_stride + top * g.row_stride + left * g.column_stride);
  }
}

void transform_results(const WinogradShape &s, int64_t begin, int64_t count, int64_t panel, const float *from,
                       int64_t step, const WinogradEpilogue &epilogue, float *y) {
  for (int64_t v = 0; v < panel_width(s, panel); v += float_lanes()) {
    const int64_t channel = panel * kPanel + v;
    const Finish finish = make_finish(epilogue, channel);
    const int64_t place = channel / kBlock * s.y.block_stride + channel % kBlock;
    finish.residual != nullptr ? transform_result_vector<true>(s, begin, count, from + v, step, finish, place, y)
                               : transform_result_vector<false>(s, begin, count, from + v, step, finish, place, y);
  }
}

// ---- the whole ----

int64_t group_tiles(const WinogradShape &s) {
  const int64_t tile_bytes = kPositions * (s.x.channels + kPanel) * static_cast<int64_t>(sizeof(float));
  // Large kernels are read less often, and best only once.
  const int64_t least = HWY_MAX(kGroupTiles, s.y.channels / 4);
  return HWY_MAX(least, kGroupBytes / tile_bytes / kTileRows * kTileRows);
}

// How a range is cut into groups of tiles, and where its scratch lies.
struct Cut {
  int64_t group;
  bool one_group;      // the transformed kernel is used once: a slice of it is enough
  int64_t image_step;  // from one position to the next
  int64_t result_step;
  int64_t kernel_floats;

  Cut(const WinogradShape &s, const WinogradRange &range, bool kernel_is_transformed) {
    const int64_t tiles = range.tile_end - range.tile_begin;
    const int64_t limit = group_tiles(s);
    const int64_t groups = HWY_MAX(int64_t{1}, (tiles + limit - 1) / limit);
    group = (tiles + groups - 1) / groups;
    one_group = groups == 1;
    image_step = spread(s.x.channels * group);
    result_step = spread(kPanel * group);
    const int64_t panels = range.panel_end - range.panel_begin;
    kernel_floats = kernel_is_transformed ? 0 : one_group ? slice_floats(s) : panels * panel_floats(s);
  }
  int64_t floats() const { return kPositions * (image_step + result_step) + kernel_floats; }
};

struct Buffers {
  float *images, *results, *kernel;
};

// One panel of channels of a group whose images are transformed.
void convolve_panel(const WinogradShape &s, const WinogradRange &range, const Cut &cut, const WinogradWeights &weights,
                    int64_t begin, int64_t count, int64_t panel, const Buffers &buffers) {
  const int64_t width = panel_width(s, panel);
  for (int64_t first = 0; first < s.x.channels; first += kDepth) {
    const int64_t depth = slice_depth(s, first);
    const int64_t at = first / kDepth * slice_floats(s);
    const float *slice = nullptr;
    if (weights.transformed != nullptr) {
      slice = weights.transformed + panel * panel_floats(s) + at;
    } else {
      float *place = buffers.kernel;
      if (!cut.one_group) place += (panel - range.panel_begin) * panel_floats(s) + at;
      if (begin == range.tile_begin) transform_slice(s, weights, panel, first, depth, place);
      slice = place;
    }
    for (int64_t position = 0; position < kPositions; ++position) {
      Product product{};
      product.a = buffers.images + position * cut.image_step + first * count;
      product.a_piece = count * kBlock;
      product.b = slice + position * spread(depth * width);
      product.width = width;
      product.c = buffers.results + position * cut.result_step;
      product.pieces = depth / kBlock;
      product.add = first > 0;
      multiply_position(product, count, width);
    }
  }
}

void convolve(const WinogradShape &s, const WinogradRange &range, const WinogradWeights &weights, const float *x,
              const WinogradEpilogue &epilogue, float *y, float *scratch) {
  const Cut cut(s, range, weights.transformed != nullptr);
  const Buffers buffers{scratch, scratch + kPositions * cut.image_step,
                        scratch + kPositions * (cut.image_step + cut.result_step)};
  for (int64_t begin = range.tile_begin; begin < range.tile_end; begin += cut.group) {
    const int64_t count = HWY_MIN(cut.group, range.tile_end - begin);
    transform_images(s, begin, count, 0, s.x.blocks(), x, buffers.images, cut.image_step);
    for (int64_t panel = range.panel_begin; panel < range.panel_end; ++panel) {
      convolve_panel(s, range, cut, weights, begin, count, panel, buffers);
      transform_results(s, begin, count, panel, buffers.results, cut.result_step, epilogue, y);
    }
  }
}

int64_t scratch_floats(const WinogradShape &s, const WinogradRange &range, bool kernel_is_transformed) {
  return Cut(s, range, kernel_is_transformed).floats();
}

void transform_panels(const WinogradShape &s, const WinogradWeights &weights, int64_t panel_begin, int64_t panel_end,
                      float *transformed) {
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    for (int64_t first = 0; first < s.x.channels; first += kDepth) {
      transform_slice(s, weights, panel, first, slice_depth(s, first),
                      transformed + panel * panel_floats(s) + first / kDepth * slice_floats(s));
    }
  }
}

int64_t kernel_floats(const WinogradShape &s) { return s.panels() * panel_floats(s); }

}  // namespace
}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(convolve);
HWY_EXPORT(group_tiles);
HWY_EXPORT(kernel_floats);
HWY_EXPORT(scratch_floats);
HWY_EXPORT(transform_panels);

WinogradImages WinogradImages::blocked(int64_t channels, int64_t height, int64_t width) {
  return {channels, height, width, channels * height * width, 16 * height * width, 16 * width, 16};
}

WinogradImages WinogradImages::row_major(int64_t channels, int64_t height, int64_t width) {
  return {channels, height, width, channels * height * width, 16, channels * width, channels};
}

WinogradKernel WinogradKernel::row_major(int64_t in, int64_t out) { return {in * out, out, 16 * out, 16}; }

WinogradKernel WinogradKernel::blocked(int64_t in) { return {256, 16, 9 * 256, 9 * 16 * in}; }

WinogradShape WinogradShape::transposed() const { return {images, y, x, 2 - pad_top, 2 - pad_left}; }

int64_t winograd_kernel_floats(const WinogradShape &shape) { return HWY_DYNAMIC_DISPATCH(kernel_floats)(shape); }

void winograd_transform_kernel(const WinogradShape &shape, const WinogradWeights &weights, int64_t panel_begin,
                               int64_t panel_end, float *transformed) {
  HWY_DYNAMIC_DISPATCH(transform_panels)(shape, weights, panel_begin, panel_end, transformed);
}

int64_t winograd_group_tiles(const WinogradShape &shape) { return HWY_DYNAMIC_DISPATCH(group_tiles)(shape); }

int64_t winograd_scratch_floats(const WinogradShape &shape, const WinogradRange &range, bool kernel_is_transformed) {
  return HWY_DYNAMIC_DISPATCH(scratch_floats)(shape, range, kernel_is_transformed);
}

void winograd_convolve(const WinogradShape &shape, const WinogradRange &range, const WinogradWeights &weights,
                       const float *x, const WinogradEpilogue &epilogue, float *y, float *scratch) {
  HWY_DYNAMIC_DISPATCH(convolve)(shape, range, weights, x, epilogue, y, scratch);
}

}  // namespace tutti::impl::backend::cpu
#endif
