// SPDX-License-Identifier: Apache-2.0
//
// What the Winograd kernels share, compiled once per instruction set: the transforms of tiles for F(4x4, 3x3) at the
// points 0, +-a, +-b and infinity, and the walk over tiles. Included by simd_winograd*.cc inside their target region,
// hence the guard that toggles.
//
// For such points, with the six rows ordered 0, a, -a, b, -b, infinity, the transforms in one dimension are
//
//   image   B^T d: (a²b² d0 - (a²+b²) d2 + d4) | (d4 - b² d2) +- a (d3 - b² d1) | (d4 - a² d2) +- b (d3 - a² d1)
//                  | (a²b² d1 - (a²+b²) d3 + d5)
//   kernel  G g:   g0 / a²b² | (g0 +- a g1 + a² g2) / 2a²(a²-b²) | (g0 +- b g1 + b² g2) / 2b²(b²-a²) | g2
//   result  A^T m: sums over the points p of m_p p^i, i = 0 .. 3; infinity adds to i = 3 only
//
// and the gradient of the kernel takes their adjoints: A dy of the results' gradient, G^T s of the sum.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_WINOGRAD_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_WINOGRAD_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_WINOGRAD_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_winograd.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

/// Channels of a block, of a panel; products of a tile.
constexpr int64_t kBlock = 16;
constexpr int64_t kPanel = 32;
constexpr int64_t kPositions = 36;

/// The points: errors are smallest when they lie around 1 and their powers are exact.
constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
constexpr float kA2B2 = kA2 * kB2, kMinusSquares = -(kA2 + kB2);
constexpr float kG0 = static_cast<float>(1.0 / (double{kA2} * double{kB2}));
constexpr float kGa = static_cast<float>(0.5 / (double{kA2} * (double{kA2} - double{kB2})));
constexpr float kGb = static_cast<float>(0.5 / (double{kB2} * (double{kB2} - double{kA2})));

/// Distance between two of `count` rows of `floats` floats so that 36 of them do not fall into the same cache sets.
HWY_INLINE int64_t spread(int64_t floats) {
  const int64_t lines = (floats + 15) / 16;
  return 16 * (lines % 2 == 0 ? lines + 1 : lines);
}

// ---- one dimension ----

/// Two of the six rows of B^T d from what they need of d.
HWY_INLINE void image_ends(FloatVec d0, FloatVec d1, FloatVec d2, FloatVec d3, FloatVec d4, FloatVec d5,
                           FloatVec &first, FloatVec &last) {
  const FloatTag d;
  const auto product = hn::Set(d, kA2B2), sum = hn::Set(d, kMinusSquares);
  first = hn::MulAdd(product, d0, hn::MulAdd(sum, d2, d4));
  last = hn::MulAdd(product, d1, hn::MulAdd(sum, d3, d5));
}

/// The rows of the points +-p, `square` being that of the other pair.
HWY_INLINE void image_pair(float p, float square, FloatVec d1, FloatVec d2, FloatVec d3, FloatVec d4, FloatVec &plus,
                           FloatVec &minus) {
  const FloatTag d;
  const auto factor = hn::Set(d, square), point = hn::Set(d, p);
  const FloatVec even = hn::NegMulAdd(factor, d2, d4);
  const FloatVec odd = hn::NegMulAdd(factor, d1, d3);
  plus = hn::MulAdd(point, odd, even);
  minus = hn::NegMulAdd(point, odd, even);
}

HWY_INLINE void image_row(const FloatVec (&from)[6], float *HWY_RESTRICT to, int64_t step) {
  const FloatTag d;
  FloatVec r0, r1, r2, r3, r4, r5;
  image_ends(from[0], from[1], from[2], from[3], from[4], from[5], r0, r5);
  image_pair(kA, kB2, from[1], from[2], from[3], from[4], r1, r2);
  image_pair(kB, kA2, from[1], from[2], from[3], from[4], r3, r4);
  hn::Store(r0, d, to);
  hn::Store(r1, d, to + step);
  hn::Store(r2, d, to + 2 * step);
  hn::Store(r3, d, to + 3 * step);
  hn::Store(r4, d, to + 4 * step);
  hn::Store(r5, d, to + 5 * step);
}

/// A^T m.
HWY_INLINE void result_column(FloatVec m0, FloatVec m1, FloatVec m2, FloatVec m3, FloatVec m4, FloatVec m5,
                              FloatVec (&y)[4]) {
  const FloatTag d;
  const FloatVec sum_a = hn::Add(m1, m2), sum_b = hn::Add(m3, m4);
  const FloatVec difference_a = hn::Sub(m1, m2), difference_b = hn::Sub(m3, m4);
  y[0] = hn::Add(m0, hn::Add(sum_a, sum_b));
  y[1] = hn::MulAdd(hn::Set(d, kA), difference_a, hn::Mul(hn::Set(d, kB), difference_b));
  y[2] = hn::MulAdd(hn::Set(d, kA2), sum_a, hn::Mul(hn::Set(d, kB2), sum_b));
  y[3] = hn::MulAdd(hn::Set(d, kA3), difference_a, hn::MulAdd(hn::Set(d, kB3), difference_b, m5));
}

/// A dy.
HWY_INLINE void result_adjoint(FloatVec y0, FloatVec y1, FloatVec y2, FloatVec y3, FloatVec (&m)[6]) {
  const FloatTag d;
  const FloatVec even_a = hn::MulAdd(hn::Set(d, kA2), y2, y0), even_b = hn::MulAdd(hn::Set(d, kB2), y2, y0);
  const FloatVec odd_a = hn::MulAdd(hn::Set(d, kA3), y3, hn::Mul(hn::Set(d, kA), y1));
  const FloatVec odd_b = hn::MulAdd(hn::Set(d, kB3), y3, hn::Mul(hn::Set(d, kB), y1));
  m[0] = y0;
  m[1] = hn::Add(even_a, odd_a);
  m[2] = hn::Sub(even_a, odd_a);
  m[3] = hn::Add(even_b, odd_b);
  m[4] = hn::Sub(even_b, odd_b);
  m[5] = y3;
}

/// G g.
HWY_INLINE void kernel_column(FloatVec g0, FloatVec g1, FloatVec g2, FloatVec (&u)[6]) {
  const FloatTag d;
  const FloatVec even_a = hn::MulAdd(hn::Set(d, kGa * kA2), g2, hn::Mul(hn::Set(d, kGa), g0));
  const FloatVec even_b = hn::MulAdd(hn::Set(d, kGb * kB2), g2, hn::Mul(hn::Set(d, kGb), g0));
  const FloatVec odd_a = hn::Mul(hn::Set(d, kGa * kA), g1), odd_b = hn::Mul(hn::Set(d, kGb * kB), g1);
  u[0] = hn::Mul(hn::Set(d, kG0), g0);
  u[1] = hn::Add(even_a, odd_a);
  u[2] = hn::Sub(even_a, odd_a);
  u[3] = hn::Add(even_b, odd_b);
  u[4] = hn::Sub(even_b, odd_b);
  u[5] = g2;
}

/// G^T s.
HWY_INLINE void kernel_adjoint(FloatVec s0, FloatVec s1, FloatVec s2, FloatVec s3, FloatVec s4, FloatVec s5,
                               FloatVec (&g)[3]) {
  const FloatTag d;
  const FloatVec sum_a = hn::Add(s1, s2), sum_b = hn::Add(s3, s4);
  const FloatVec difference_a = hn::Sub(s1, s2), difference_b = hn::Sub(s3, s4);
  g[0] = hn::MulAdd(hn::Set(d, kG0), s0, hn::MulAdd(hn::Set(d, kGa), sum_a, hn::Mul(hn::Set(d, kGb), sum_b)));
  g[1] = hn::MulAdd(hn::Set(d, kGa * kA), difference_a, hn::Mul(hn::Set(d, kGb * kB), difference_b));
  g[2] = hn::MulAdd(hn::Set(d, kGa * kA2), sum_a, hn::MulAdd(hn::Set(d, kGb * kB2), sum_b, s5));
}

// ---- tiles ----

/// B^T d B of one vector of channels: 6 elements from `first` of each row on become 36 vectors, `step` apart. Pairs of
/// rows are done one after the other so that what is between the two dimensions stays in registers.
template <typename Column>
HWY_INLINE void transform_image_tile(const float *const (&rows)[6], int64_t first, Column column,
                                     float *HWY_RESTRICT to, int64_t step) {
  const FloatTag d;
  const auto at = [&](int64_t i, int64_t j) HWY_ATTR { return hn::LoadU(d, rows[i] + first + j * column); };
  FloatVec upper[6], lower[6];
  HWY_UNROLL(6)
  for (int j = 0; j < 6; ++j)
    image_ends(at(0, j), at(1, j), at(2, j), at(3, j), at(4, j), at(5, j), upper[j], lower[j]);
  image_row(upper, to, step);
  image_row(lower, to + 30 * step, step);
  HWY_UNROLL(6)
  for (int j = 0; j < 6; ++j)
    image_pair(kA, kB2, at(1, j), at(2, j), at(3, j), at(4, j), upper[j], lower[j]);
  image_row(upper, to + 6 * step, step);
  image_row(lower, to + 12 * step, step);
  HWY_UNROLL(6)
  for (int j = 0; j < 6; ++j)
    image_pair(kB, kA2, at(1, j), at(2, j), at(3, j), at(4, j), upper[j], lower[j]);
  image_row(upper, to + 18 * step, step);
  image_row(lower, to + 24 * step, step);
}

/// Tiles in the order in which they are numbered: image, row, column.
struct TileWalk {
  int64_t image, row, column;
  int64_t down, across;

  TileWalk(const WinogradShape &shape, int64_t tile)
      : image(tile / (shape.tiles_down() * shape.tiles_across())),
        row(tile / shape.tiles_across() % shape.tiles_down()),
        column(tile % shape.tiles_across()),
        down(shape.tiles_down()),
        across(shape.tiles_across()) {}

  void next() {
    if (++column < across) return;
    column = 0;
    if (++row < down) return;
    row = 0;
    ++image;
  }
};

/// A square of size x size elements of an image from (top, left) on, as a tile of one block; outside lie `zeros`.
HWY_INLINE void copy_tile(const float *HWY_RESTRICT image, const WinogradImages &s, int64_t top, int64_t left,
                          int64_t size, const float *zeros, float *HWY_RESTRICT to) {
  const FloatTag d;
  const WinogradImages g = s;
  for (int64_t i = 0; i < size; ++i) {
    const bool down = top + i >= 0 && top + i < g.height;
    for (int64_t j = 0; j < size; ++j, to += kBlock) {
      const bool inside = down && left + j >= 0 && left + j < g.width;
      const float *from = inside ? image + (top + i) * g.row_stride + (left + j) * g.column_stride : zeros;
      for (int64_t v = 0; v < kBlock; v += float_lanes())
        hn::Store(hn::LoadU(d, from + v), d, to + v);
    }
  }
}

/// Calls function(column) with the distance of neighbours in a row, as a constant where images are in blocks.
template <typename Function>
HWY_INLINE void with_column(int64_t column, const Function &function) {
  if (column == kBlock) return function(std::integral_constant<int64_t, kBlock>());
  function(column);
}

/// Brings a square of an image nearer, from (top, left) on.
HWY_INLINE void fetch_square(const float *image, const WinogradImages &g, int64_t top, int64_t left, int64_t height,
                             int64_t width) {
  const float *from = image + top * g.row_stride + left * g.column_stride;
  for (int64_t i = 0; i < height; ++i) {
    for (int64_t j = 0; j < width; ++j)
      __builtin_prefetch(from + i * g.row_stride + j * g.column_stride);
  }
}

/// Six rows of six elements, `column` apart.
struct TileRows {
  const float *rows[6];
  int64_t column;
};

/// Those of an image from (top, left) on: where they lie, or copied to `padded` if some are outside. In an image in
/// blocks a whole row outside is `zeros`.
HWY_INLINE TileRows rows_of_tile(const float *image, const WinogradImages &g, int64_t top, int64_t left,
                                 const float *zeros, float *padded) {
  TileRows tile{{}, g.column_stride};
  const bool down = top >= 0 && top + 6 <= g.height, across = left >= 0 && left + 6 <= g.width;
  if (across && (down || g.column_stride == kBlock)) {
    const float *first = image + top * g.row_stride + left * g.column_stride;
    for (int64_t i = 0; i < 6; ++i)
      tile.rows[i] = top + i >= 0 && top + i < g.height ? first + i * g.row_stride : zeros;
    return tile;
  }
  copy_tile(image, g, top, left, 6, zeros, padded);
  for (int64_t i = 0; i < 6; ++i)
    tile.rows[i] = padded + i * 6 * kBlock;
  tile.column = kBlock;
  return tile;
}

/// Transforms `count` tiles of x from tile `begin` on, blocks [block_begin, block_end):
/// to[position * step + ((block - block_begin) * count + tile - begin) * 16 + channel].
inline void transform_images(const WinogradShape &s, int64_t begin, int64_t count, int64_t block_begin,
                             int64_t block_end, const float *x, float *HWY_RESTRICT to, int64_t step) {
  HWY_ALIGN float padded[36 * kBlock], zeros[6 * kBlock] = {};
  const WinogradImages g = s.x;
  const int64_t lanes = float_lanes(), pad_top = s.pad_top, pad_left = s.pad_left;
  for (int64_t block = block_begin; block < block_end; ++block) {
    const float *images = x + block * g.block_stride;
    TileWalk walk(s, begin), ahead = walk;
    for (int64_t i = 0; i < count; ++i, walk.next(), to += kBlock) {
      ahead.next();
      if (i + 1 < count) {  // the first two columns of the next tile are this one's last
        fetch_square(images + ahead.image * g.image_stride, g, 4 * ahead.row - pad_top, 4 * ahead.column - pad_left + 2,
                     6, 4);
      }
      const TileRows tile = rows_of_tile(images + walk.image * g.image_stride, g, 4 * walk.row - pad_top,
                                         4 * walk.column - pad_left, zeros, padded);
      with_column(tile.column, [&](auto column) HWY_ATTR {
        for (int64_t v = 0; v < kBlock; v += lanes)
          transform_image_tile(tile.rows, v, column, to + v, step);
      });
    }
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
