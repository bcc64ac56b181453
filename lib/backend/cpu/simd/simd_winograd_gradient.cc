// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cpu/simd/simd_winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_winograd_gradient.cc"
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

// Channels of x, of one block, whose sums stay in registers with two vectors of channels of y each.
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 8 : 6;
// Blocks of x whose sums with one panel are worked on together and stay in the second-level cache.
constexpr int64_t kSquareBlocks = 4;
// A group's transformed images.
constexpr int64_t kGroupBytes = 1536 * 1024;
constexpr int64_t kGroupTiles = 32;

// ---- the gradient of the results ----

// A dy A^T of one vector of channels: 4 x 4 elements at `from` become 36 vectors, `step` apart. Returns their sum.
template <typename Column>
HWY_INLINE V transform_gradient_tile(const float *HWY_RESTRICT from, int64_t row, Column column, float *HWY_RESTRICT to,
                                     int64_t step) {
  V half[4][6];
  V total = hn::Zero(d);
  HWY_UNROLL(4)
  for (int64_t j = 0; j < 4; ++j) {
    const V y0 = hn::LoadU(d, from + j * column), y1 = hn::LoadU(d, from + row + j * column);
    const V y2 = hn::LoadU(d, from + 2 * row + j * column), y3 = hn::LoadU(d, from + 3 * row + j * column);
    total = hn::Add(total, hn::Add(hn::Add(y0, y1), hn::Add(y2, y3)));
    result_adjoint(y0, y1, y2, y3, half[j]);
  }
  HWY_UNROLL(6)
  for (int64_t i = 0; i < 6; ++i) {
    V m[6];
    result_adjoint(half[0][i], half[1][i], half[2][i], half[3][i], m);
    HWY_UNROLL(6)
    for (int64_t j = 0; j < 6; ++j)
      hn::Store(m[j], d, to + (6 * i + j) * step);
  }
  return total;
}

// Transforms `count` tiles of dy as transform_images does those of x, and adds them up to `dbias` if that is not null.
void transform_gradients(const WinogradShape &s, int64_t begin, int64_t count, int64_t block_begin, int64_t block_end,
                         const float *dy, float *HWY_RESTRICT to, int64_t step, float *dbias) {
  HWY_ALIGN float padded[16 * kBlock], zeros[kBlock] = {};
  const WinogradImages g = s.y;
  const int64_t lanes = float_lanes();
  for (int64_t block = block_begin; block < block_end; ++block) {
    HWY_ALIGN float sums[kBlock] = {};
    TileWalk walk(s, begin), ahead = walk;
    for (int64_t tile = 0; tile < count; ++tile, walk.next(), to += kBlock) {
      ahead.next();
      if (tile + 1 < count) {
        fetch_square(dy + ahead.image * g.image_stride + block * g.block_stride, g, 4 * ahead.row, 4 * ahead.column, 4,
                     4);
      }
      const float *image = dy + walk.image * g.image_stride + block * g.block_stride;
      const int64_t top = 4 * walk.row, left = 4 * walk.column;
      const bool inside = top + 4 <= g.height && left + 4 <= g.width;
      if (!inside) copy_tile(image, g, top, left, 4, zeros, padded);
      const float *from = inside ? image + top * g.row_stride + left * g.column_stride : padded;
      const int64_t row = inside ? g.row_stride : 4 * kBlock, column = inside ? g.column_stride : kBlock;
      with_column(column, [&](auto distance) HWY_ATTR {
        for (int64_t v = 0; v < kBlock; v += lanes) {
          const V total = transform_gradient_tile(from + v, row, distance, to + v, step);
          hn::Store(hn::Add(hn::Load(d, sums + v), total), d, sums + v);
        }
      });
    }
    if (dbias == nullptr) continue;
    for (int64_t v = 0; v < kBlock; v += lanes) {
      float *place = dbias + block * kBlock + v;
      hn::StoreU(hn::Add(hn::LoadU(d, place), hn::Load(d, sums + v)), d, place);
    }
  }
}

// ---- products ----

// [tiles, rows of 16 channels of x] times [tiles, 16 channels of y], summed over the tiles.
struct Product {
  const float *HWY_RESTRICT a;
  const float *HWY_RESTRICT b;
  int64_t b_vector;  // from one vector of channels to the next
  float *HWY_RESTRICT c;
  int64_t tiles;
  bool add;  // to what c holds
};

template <int kCount, int kVectors>
HWY_NOINLINE void accumulate(const Product &product) {
  const int64_t lanes = float_lanes();
  V sums[kCount][kVectors];
  HWY_UNROLL(16)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = hn::Zero(d);
  }
  const float *HWY_RESTRICT a = product.a;
  const float *HWY_RESTRICT b = product.b;
  const int64_t b_vector = product.b_vector;
  HWY_UNROLL(2)
  for (int64_t tile = 0; tile < product.tiles; ++tile, a += kBlock, b += kBlock) {
    V columns[kVectors];
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v)
      columns[v] = hn::LoadU(d, b + v * b_vector);
    HWY_UNROLL(16)
    for (int r = 0; r < kCount; ++r) {
      const V value = hn::Set(d, a[r]);
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = hn::MulAdd(value, columns[v], sums[r][v]);
    }
  }
  float *HWY_RESTRICT c = product.c;
  const bool add = product.add;
  HWY_UNROLL(16)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      float *to = c + r * kPanel + v * lanes;
      hn::Store(add ? hn::Add(hn::Load(d, to), sums[r][v]) : sums[r][v], d, to);
    }
  }
}

// All 16 rows of a block.
template <int kVectors>
HWY_INLINE void accumulate_block(Product product) {
  for (int64_t r = 0; r + kRows <= kBlock; r += kRows, product.a += kRows, product.c += kRows * kPanel)
    accumulate<kRows, kVectors>(product);
  if constexpr (kBlock % kRows != 0) accumulate<kBlock % kRows, kVectors>(product);
}

// A block of x times a panel of y: c has rows of kPanel.
HWY_INLINE void accumulate_panel(Product product, int64_t width) {
  const int64_t lanes = float_lanes(), block_step = product.tiles * kBlock;
  if (lanes == kBlock) {
    product.b_vector = block_step;
    return width == kPanel ? accumulate_block<2>(product) : accumulate_block<1>(product);
  }
  product.b_vector = lanes;
  const Product first = product;
  for (int64_t j = 0; j < width; j += 2 * lanes) {
    product.b = first.b + j / kBlock * block_step + j % kBlock;
    product.c = first.c + j;
    accumulate_block<2>(product);
  }
}

// ---- the kernel's gradient ----

// G^T s G of one vector of channels, from 36 vectors `step` apart to 9 that are `tap_step` apart.
HWY_INLINE void transform_sum(const float *HWY_RESTRICT from, int64_t step, float *HWY_RESTRICT to, int64_t tap_step) {
  V half[6][3];
  HWY_UNROLL(6)
  for (int64_t j = 0; j < 6; ++j) {
    const float *s = from + j * step;
    kernel_adjoint(hn::Load(d, s), hn::Load(d, s + 6 * step), hn::Load(d, s + 12 * step), hn::Load(d, s + 18 * step),
                   hn::Load(d, s + 24 * step), hn::Load(d, s + 30 * step), half[j]);
  }
  HWY_UNROLL(3)
  for (int64_t i = 0; i < 3; ++i) {
    V row[3];
    kernel_adjoint(half[0][i], half[1][i], half[2][i], half[3][i], half[4][i], half[5][i], row);
    HWY_UNROLL(3)
    for (int64_t j = 0; j < 3; ++j)
      hn::StoreU(row[j], d, to + (3 * i + j) * tap_step);
  }
}

// How a range is cut into groups of tiles, and where its scratch lies.
struct Cut {
  int64_t group;
  bool one_group;      // sums are transformed at once: place for one square of them is enough
  int64_t image_step;  // from one position to the next
  int64_t gradient_step;
  int64_t sum_floats;

  Cut(const WinogradShape &s, const WinogradGradientRange &range) {
    const int64_t blocks = range.block_end - range.block_begin, panels = range.panel_end - range.panel_begin;
    const int64_t in = blocks * kBlock, out = HWY_MIN(panels * kPanel, s.y.channels - range.panel_begin * kPanel);
    // Of the whole shape, so that the order of sums does not depend on the range.
    const int64_t tile_bytes = kPositions * (s.x.channels + s.y.channels) * static_cast<int64_t>(sizeof(float));
    const int64_t limit = HWY_MAX(kGroupTiles, kGroupBytes / HWY_MAX(tile_bytes, int64_t{1}));
    const int64_t groups = HWY_MAX(int64_t{1}, (s.tiles() + limit - 1) / limit);
    group = HWY_MAX(int64_t{1}, (s.tiles() + groups - 1) / groups);
    one_group = groups == 1;
    image_step = spread(in * group);
    gradient_step = spread(out * group);
    const int64_t square = kPositions * spread(HWY_MIN(kSquareBlocks, blocks) * kBlock * kPanel);
    sum_floats = one_group ? square : panels * ((blocks + kSquareBlocks - 1) / kSquareBlocks) * square;
  }
  int64_t floats() const { return kPositions * (image_step + gradient_step) + sum_floats; }
};

// Sums of some blocks of x with one panel of y: [36][16 · blocks][kPanel].
struct Square {
  int64_t block, blocks, panel, width;
  int64_t step() const { return spread(blocks * kBlock * kPanel); }
};

void write_square(const Square &square, const float *sums, const WinogradKernel &g, float *dkernel) {
  const int64_t lanes = float_lanes();
  for (int64_t block = 0; block < square.blocks; ++block) {
    for (int64_t j = 0; j < square.width; j += kBlock) {
      const float *from = sums + block * kBlock * kPanel + j;
      float *to = dkernel + (square.block + block) * g.in_block_stride +
                  (square.panel * kPanel + j) / kBlock * g.out_block_stride;
      for (int64_t i = 0; i < kBlock; ++i, from += kPanel, to += g.in_stride) {
        for (int64_t v = 0; v < kBlock; v += lanes)
          transform_sum(from + v, square.step(), to + v, g.tap_stride);
      }
    }
  }
}

// One group's part; `images` and `gradients` are those of the square.
void add_square(const Cut &cut, const Square &square, const float *images, const float *gradients, int64_t count,
                bool add, float *sums) {
  const int64_t block_step = count * kBlock;
  for (int64_t position = 0; position < kPositions; ++position) {
    for (int64_t block = 0; block < square.blocks; ++block) {
      Product product{};
      product.a = images + position * cut.image_step + block * block_step;
      product.b = gradients + position * cut.gradient_step;
      product.c = sums + position * square.step() + block * kBlock * kPanel;
      product.tiles = count;
      product.add = add;
      accumulate_panel(product, square.width);
    }
  }
}

void kernel_gradient(const WinogradShape &s, const WinogradGradientRange &range, const float *x, const float *dy,
                     const WinogradKernel &place, float *dkernel, float *dbias, float *scratch) {
  const Cut cut(s, range);
  float *images = scratch, *gradients = images + kPositions * cut.image_step;
  float *all_sums = gradients + kPositions * cut.gradient_step;
  const int64_t first_out = range.panel_begin * kPanel, end_out = HWY_MIN(range.panel_end * kPanel, s.y.channels);
  if (range.block_begin != 0) dbias = nullptr;
  if (dbias != nullptr) std::fill(dbias + first_out, dbias + end_out, 0.0f);
  const int64_t tiles = s.tiles();
  // Without tiles there is one empty group: the sums are zero.
  for (int64_t begin = 0; begin < tiles || begin == 0; begin += cut.group) {
    const int64_t count = HWY_MIN(cut.group, tiles - begin);
    transform_images(s, begin, count, range.block_begin, range.block_end, x, images, cut.image_step);
    transform_gradients(s, begin, count, first_out / kBlock, end_out / kBlock, dy, gradients, cut.gradient_step, dbias);
    float *sums = all_sums;
    for (int64_t panel = range.panel_begin; panel < range.panel_end; ++panel) {
      for (int64_t block = range.block_begin; block < range.block_end; block += kSquareBlocks) {
        const Square square{block, HWY_MIN(kSquareBlocks, range.block_end - block), panel,
                            HWY_MIN(kPanel, s.y.channels - panel * kPanel)};
        add_square(cut, square, images + (block - range.block_begin) * count * kBlock,
                   gradients + (panel - range.panel_begin) * kPanel * count, count, begin > 0, sums);
        if (begin + count >= tiles) write_square(square, sums, place, dkernel);
        if (!cut.one_group) sums += kPositions * square.step();
      }
    }
  }
}

int64_t gradient_scratch_floats(const WinogradShape &s, const WinogradGradientRange &range) {
  return Cut(s, range).floats();
}

}  // namespace
}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(kernel_gradient);
HWY_EXPORT(gradient_scratch_floats);

int64_t winograd_gradient_scratch_floats(const WinogradShape &shape, const WinogradGradientRange &range) {
  return HWY_DYNAMIC_DISPATCH(gradient_scratch_floats)(shape, range);
}

void winograd_kernel_gradient(const WinogradShape &shape, const WinogradGradientRange &range, const float *x,
                              const float *dy, const WinogradKernel &place, float *dkernel, float *dbias,
                              float *scratch) {
  HWY_DYNAMIC_DISPATCH(kernel_gradient)(shape, range, x, dy, place, dkernel, dbias, scratch);
}

}  // namespace tutti::impl::backend::cpu
#endif
