// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_norm.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_norm_tiles-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

// Calls body.run<vectors, whole>() with the number of vectors a strip takes.
template <typename Body>
HWY_INLINE void with_vectors(int64_t columns, const Body &body) {
  const int64_t lanes = float_lanes();
  const int64_t vectors = (columns + lanes - 1) / lanes;
  const bool whole = columns % lanes == 0;
  switch (vectors) {
    case 1:
      return whole ? body.template run<1, true>() : body.template run<1, false>();
    case 2:
      return whole ? body.template run<2, true>() : body.template run<2, false>();
    case 3:
      return whole ? body.template run<3, true>() : body.template run<3, false>();
    default:
      return whole ? body.template run<4, true>() : body.template run<4, false>();
  }
}

template <bool kWhole>
HWY_INLINE V load(const float *from, int64_t v, int64_t columns) {
  const int64_t lanes = float_lanes();
  if (kWhole) return hn::LoadU(d, from + v * lanes);
  return load_first(d, from + v * lanes, HWY_MIN(lanes, columns - v * lanes));
}

template <bool kWhole>
HWY_INLINE void store(V value, float *to, int64_t v, int64_t columns) {
  const int64_t lanes = float_lanes();
  if (kWhole) return hn::StoreU(value, d, to + v * lanes);
  store_first(d, value, to + v * lanes, HWY_MIN(lanes, columns - v * lanes));
}

// What follows walks through strips and vectors by values of their own: a stored vector may change what lies in memory,
// so what is behind a reference would be loaded again for each.

// The shift of the moments: the first row of the channel.
struct Moments {
  int64_t width;
  const float *x;
  Strip strip;
  const float *shift;
  float *sum, *squares;  // of the tile

  template <int kVectors, bool kWhole>
  HWY_INLINE void run() const {
    constexpr int kUnroll = kVectors == 1 ? 4 : kVectors == 2 ? 2 : 1;
    V s1[kUnroll][kVectors], s2[kUnroll][kVectors], k[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      k[v] = load<kWhole>(shift, v, strip.columns);
      s1[0][v] = hn::LoadU(d, sum + v * float_lanes());
      s2[0][v] = hn::LoadU(d, squares + v * float_lanes());
      for (int u = 1; u < kUnroll; ++u)
        s1[u][v] = s2[u][v] = hn::Zero(d);
    }
    const float *row = x + strip.at;
    int64_t r = 0;
    for (; r + kUnroll <= strip.rows; r += kUnroll, row += kUnroll * width) {
      for (int u = 0; u < kUnroll; ++u) {
        for (int v = 0; v < kVectors; ++v) {
          const V value = hn::Sub(load<kWhole>(row + u * width, v, strip.columns), k[v]);
          s1[u][v] = hn::Add(s1[u][v], value);
          s2[u][v] = hn::MulAdd(value, value, s2[u][v]);
        }
      }
    }
    for (; r < strip.rows; ++r, row += width) {
      for (int v = 0; v < kVectors; ++v) {
        const V value = hn::Sub(load<kWhole>(row, v, strip.columns), k[v]);
        s1[0][v] = hn::Add(s1[0][v], value);
        s2[0][v] = hn::MulAdd(value, value, s2[0][v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      for (int u = 1; u < kUnroll; ++u) {
        s1[0][v] = hn::Add(s1[0][v], s1[u][v]);
        s2[0][v] = hn::Add(s2[0][v], s2[u][v]);
      }
      hn::StoreU(s1[0][v], d, sum + v * float_lanes());
      hn::StoreU(s2[0][v], d, squares + v * float_lanes());
    }
  }
};

HWY_INLINE const float *first_row(const ChannelShape &s, const float *x, int64_t channel) {
  return x + channel / s.width * s.block_stride + channel % s.width;
}

struct RowMoments {
  static constexpr int kRows = 4;
  const float *x, *shift;
  int64_t width;
  float *first, *second;  // sums of the tile, from channel 0 on

  HWY_INLINE void fetch(int64_t at) const { __builtin_prefetch(x + at); }
  template <int kTogether>
  HWY_INLINE void run(int64_t at, int64_t channel) const {
    const V k = hn::LoadU(d, shift + channel);
    V s1 = hn::Load(d, first + channel), s2 = hn::Load(d, second + channel);
    TUTTI_UNROLL
    for (int r = 0; r < kTogether; ++r) {
      const V value = hn::Sub(hn::LoadU(d, x + at + r * width), k);
      s1 = hn::Add(s1, value);
      s2 = hn::MulAdd(value, value, s2);
    }
    hn::Store(s1, d, first + channel);
    hn::Store(s2, d, second + channel);
  }
};

void run_moments(const ChannelShape &s, const float *x, double *sum, double *squares) {
  const int64_t channels = s.channels();
  for (int64_t c = 0; c < channels; ++c)
    sum[c] = squares[c] = 0;
  if (s.count() == 0) return;
  for_norm_tiles(s, [&](const NormTile &tile) HWY_ATTR {
    NormTileSums sums(tile);
    if (walks_rows(tile)) {
      const float *shift = first_row(s, x, tile.channel) - tile.channel;
      for_vectors(s, tile, RowMoments{x, shift, s.width, sums.first(0), sums.second(0)});
      return sums.add_to(sum, squares);
    }
    for_strips(tile, [&](const Strip &strip) HWY_ATTR {
      with_vectors(strip.columns, Moments{s.width, x, strip, first_row(s, x, strip.channel), sums.first(strip.channel),
                                          sums.second(strip.channel)});
    });
    sums.add_to(sum, squares);
  });
  const auto count = static_cast<double>(s.count());
  for (int64_t c = 0; c < channels; ++c) {
    const double shift = *first_row(s, x, c);
    squares[c] += 2 * shift * sum[c] + shift * shift * count;
    sum[c] += shift * count;
  }
}

template <bool kRelu>
HWY_INLINE V relu_of(V value) {
  return kRelu ? hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value) : value;
}

template <bool kRelu, bool kOther>
struct Apply {
  int64_t width;
  Strip strip;
  const float *x, *a, *b, *other;
  float *y;

  template <int kVectors, bool kWhole>
  HWY_INLINE void run() const {
    V factor[kVectors], shift[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      factor[v] = load<kWhole>(a + strip.channel, v, strip.columns);
      shift[v] = load<kWhole>(b + strip.channel, v, strip.columns);
    }
    int64_t at = strip.at;
    for (int64_t r = 0; r < strip.rows; ++r, at += width) {
      for (int v = 0; v < kVectors; ++v) {
        V value = hn::MulAdd(load<kWhole>(x + at, v, strip.columns), factor[v], shift[v]);
        if (kOther) value = hn::Add(value, load<kWhole>(other + at, v, strip.columns));
        store<kWhole>(relu_of<kRelu>(value), y + at, v, strip.columns);
      }
    }
  }
};

template <bool kRelu, bool kOther>
struct RowApply {
  static constexpr int kRows = 2;
  const float *x, *a, *b, *other;
  float *y;
  int64_t width;

  HWY_INLINE void fetch(int64_t at) const { __builtin_prefetch(x + at); }
  template <int kTogether>
  HWY_INLINE void run(int64_t at, int64_t channel) const {
    const V factor = hn::LoadU(d, a + channel), shift = hn::LoadU(d, b + channel);
    TUTTI_UNROLL
    for (int r = 0; r < kTogether; ++r, at += width) {
      V value = hn::MulAdd(hn::LoadU(d, x + at), factor, shift);
      if (kOther) value = hn::Add(value, hn::LoadU(d, other + at));
      hn::StoreU(relu_of<kRelu>(value), d, y + at);
    }
  }
};

template <bool kRelu, bool kOther>
HWY_NOINLINE void run_apply_as(const ChannelShape &s, const float *x, const float *a, const float *b,
                               const float *other, float *y) {
  for_norm_tiles(s, [&](const NormTile &tile) HWY_ATTR {
    if (walks_rows(tile)) return for_vectors(s, tile, RowApply<kRelu, kOther>{x, a, b, other, y, s.width});
    for_strips(tile, [&](const Strip &strip) HWY_ATTR {
      with_vectors(strip.columns, Apply<kRelu, kOther>{s.width, strip, x, a, b, other, y});
    });
  });
}

void run_apply(const ChannelShape &s, const float *x, const float *a, const float *b, const float *other, bool relu,
               float *y) {
  if (other != nullptr) {
    return relu ? run_apply_as<true, true>(s, x, a, b, other, y) : run_apply_as<false, true>(s, x, a, b, other, y);
  }
  return relu ? run_apply_as<true, false>(s, x, a, b, other, y) : run_apply_as<false, false>(s, x, a, b, other, y);
}

template <bool kMasked>
HWY_INLINE V masked(V dy, V x, V a, V b) {
  if (!kMasked) return dy;
  return hn::IfThenElseZero(hn::Gt(hn::MulAdd(x, a, b), hn::Zero(d)), dy);
}

template <bool kMasked>
struct GradientMoments {
  int64_t width;
  Strip strip;
  const float *dy, *x, *mean;
  ChannelMask mask;
  float *sum_dy, *sum_dy_xc;  // of the tile

  template <int kVectors, bool kWhole>
  HWY_INLINE void run() const {
    V s1[kVectors], s2[kVectors], center[kVectors], a[kVectors], b[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      a[v] = b[v] = hn::Zero(d);
      s1[v] = hn::LoadU(d, sum_dy + v * float_lanes());
      s2[v] = hn::LoadU(d, sum_dy_xc + v * float_lanes());
      center[v] = load<kWhole>(mean + strip.channel, v, strip.columns);
      if (kMasked) {
        a[v] = load<kWhole>(mask.a + strip.channel, v, strip.columns);
        b[v] = load<kWhole>(mask.b + strip.channel, v, strip.columns);
      }
    }
    int64_t at = strip.at;
    for (int64_t r = 0; r < strip.rows; ++r, at += width) {
      for (int v = 0; v < kVectors; ++v) {
        const V value = load<kWhole>(x + at, v, strip.columns);
        const V gradient = masked<kMasked>(load<kWhole>(dy + at, v, strip.columns), value, a[v], b[v]);
        s1[v] = hn::Add(s1[v], gradient);
        s2[v] = hn::MulAdd(gradient, hn::Sub(value, center[v]), s2[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(s1[v], d, sum_dy + v * float_lanes());
      hn::StoreU(s2[v], d, sum_dy_xc + v * float_lanes());
    }
  }
};

// The mask of a vector of channels.
template <bool kMasked>
struct VectorMask {
  V a, b;

  HWY_INLINE VectorMask(const ChannelMask &mask, int64_t channel) : a(hn::Zero(d)), b(hn::Zero(d)) {
    if (!kMasked) return;
    a = hn::LoadU(d, mask.a + channel);
    b = hn::LoadU(d, mask.b + channel);
  }
  HWY_INLINE V of(V dy, V x) const { return masked<kMasked>(dy, x, a, b); }
};

template <bool kMasked>
struct RowGradientMoments {
  static constexpr int kRows = 2;
  const float *dy, *x, *mean;
  ChannelMask mask;
  int64_t width;
  float *first, *second;  // sums of the tile, from channel 0 on

  HWY_INLINE void fetch(int64_t at) const {
    __builtin_prefetch(x + at);
    __builtin_prefetch(dy + at);
  }
  template <int kTogether>
  HWY_INLINE void run(int64_t at, int64_t channel) const {
    const VectorMask<kMasked> vector_mask(mask, channel);
    const V center = hn::LoadU(d, mean + channel);
    V s1 = hn::Load(d, first + channel), s2 = hn::Load(d, second + channel);
    TUTTI_UNROLL
    for (int r = 0; r < kTogether; ++r, at += width) {
      const V value = hn::LoadU(d, x + at), gradient = vector_mask.of(hn::LoadU(d, dy + at), value);
      s1 = hn::Add(s1, gradient);
      s2 = hn::MulAdd(gradient, hn::Sub(value, center), s2);
    }
    hn::Store(s1, d, first + channel);
    hn::Store(s2, d, second + channel);
  }
};

template <bool kMasked>
HWY_NOINLINE void run_gradient_moments_as(const ChannelShape &s, const float *dy, const float *x, const float *mean,
                                          const ChannelMask &mask, double *sum_dy, double *sum_dy_xc) {
  for_norm_tiles(s, [&](const NormTile &tile) HWY_ATTR {
    NormTileSums sums(tile);
    if (walks_rows(tile)) {
      for_vectors(s, tile, RowGradientMoments<kMasked>{dy, x, mean, mask, s.width, sums.first(0), sums.second(0)});
      return sums.add_to(sum_dy, sum_dy_xc);
    }
    for_strips(tile, [&](const Strip &strip) HWY_ATTR {
      with_vectors(strip.columns, GradientMoments<kMasked>{s.width, strip, dy, x, mean, mask, sums.first(strip.channel),
                                                           sums.second(strip.channel)});
    });
    sums.add_to(sum_dy, sum_dy_xc);
  });
}

void run_gradient_moments(const ChannelShape &s, const float *dy, const float *x, const float *mean,
                          const ChannelMask &mask, double *sum_dy, double *sum_dy_xc) {
  for (int64_t c = 0; c < s.channels(); ++c)
    sum_dy[c] = sum_dy_xc[c] = 0;
  mask.a != nullptr ? run_gradient_moments_as<true>(s, dy, x, mean, mask, sum_dy, sum_dy_xc)
                    : run_gradient_moments_as<false>(s, dy, x, mean, mask, sum_dy, sum_dy_xc);
}

template <bool kMasked>
struct GradientApply {
  int64_t width;
  Strip strip;
  const float *dy, *x, *mean, *a, *slope, *shift;
  ChannelMask mask;
  float *dx;

  template <int kVectors, bool kWhole>
  HWY_INLINE void run() const {
    V center[kVectors], factor[kVectors], c1[kVectors], c0[kVectors], ma[kVectors], mb[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      center[v] = load<kWhole>(mean + strip.channel, v, strip.columns);
      factor[v] = load<kWhole>(a + strip.channel, v, strip.columns);
      c1[v] = load<kWhole>(slope + strip.channel, v, strip.columns);
      c0[v] = load<kWhole>(shift + strip.channel, v, strip.columns);
      ma[v] = mb[v] = hn::Zero(d);
      if (kMasked) {
        ma[v] = load<kWhole>(mask.a + strip.channel, v, strip.columns);
        mb[v] = load<kWhole>(mask.b + strip.channel, v, strip.columns);
      }
    }
    int64_t at = strip.at;
    for (int64_t r = 0; r < strip.rows; ++r, at += width) {
      for (int v = 0; v < kVectors; ++v) {
        const V value = load<kWhole>(x + at, v, strip.columns);
        const V gradient = masked<kMasked>(load<kWhole>(dy + at, v, strip.columns), value, ma[v], mb[v]);
        const V rest = hn::MulAdd(hn::Sub(value, center[v]), c1[v], c0[v]);
        store<kWhole>(hn::MulAdd(gradient, factor[v], rest), dx + at, v, strip.columns);
      }
    }
  }
};

template <bool kMasked>
struct RowGradientApply {
  static constexpr int kRows = 2;
  const float *dy, *x, *mean, *a, *slope, *shift;
  ChannelMask mask;
  float *dx;
  int64_t width;

  HWY_INLINE void fetch(int64_t at) const {
    __builtin_prefetch(x + at);
    __builtin_prefetch(dy + at);
  }
  template <int kTogether>
  HWY_INLINE void run(int64_t at, int64_t channel) const {
    const VectorMask<kMasked> vector_mask(mask, channel);
    const V center = hn::LoadU(d, mean + channel), factor = hn::LoadU(d, a + channel);
    const V c1 = hn::LoadU(d, slope + channel), c0 = hn::LoadU(d, shift + channel);
    TUTTI_UNROLL
    for (int r = 0; r < kTogether; ++r, at += width) {
      const V value = hn::LoadU(d, x + at), gradient = vector_mask.of(hn::LoadU(d, dy + at), value);
      const V rest = hn::MulAdd(hn::Sub(value, center), c1, c0);
      hn::StoreU(hn::MulAdd(gradient, factor, rest), d, dx + at);
    }
  }
};

template <bool kMasked>
HWY_NOINLINE void run_gradient_apply_as(const ChannelShape &s, const float *dy, const float *x, const float *mean,
                                        const float *a, const float *slope, const float *shift, const ChannelMask &mask,
                                        float *dx) {
  for_norm_tiles(s, [&](const NormTile &tile) HWY_ATTR {
    if (walks_rows(tile))
      return for_vectors(s, tile, RowGradientApply<kMasked>{dy, x, mean, a, slope, shift, mask, dx, s.width});
    for_strips(tile, [&](const Strip &strip) HWY_ATTR {
      with_vectors(strip.columns, GradientApply<kMasked>{s.width, strip, dy, x, mean, a, slope, shift, mask, dx});
    });
  });
}

void run_gradient_apply(const ChannelShape &s, const float *dy, const float *x, const float *mean, const float *a,
                        const float *slope, const float *shift, const ChannelMask &mask, float *dx) {
  mask.a != nullptr ? run_gradient_apply_as<true>(s, dy, x, mean, a, slope, shift, mask, dx)
                    : run_gradient_apply_as<false>(s, dy, x, mean, a, slope, shift, mask, dx);
}

// ---- layer and RMS normalisation ----

/// With the mean where rows are centred.
template <bool kCentred>
HWY_INLINE float mean_square(const float *x, int64_t width, float mean) {
  const V center = hn::Set(d, mean);
  const float sum = sum_vectors(width, [=](V total, int64_t i, auto count) HWY_ATTR {
    const V value = load_first(d, x + i, count);
    const V centred = kCentred ? keep_first(d, hn::Sub(value, center), count) : value;
    return hn::MulAdd(centred, centred, total);
  });
  return sum / static_cast<float>(width);
}

template <bool kCentred>
void normalize_rows(const LayerNormRows &r, const float *offset, float epsilon, float *y, float *mean, float *rstd) {
  const int64_t width = r.width;
  const float *x = r.x, *const scale = r.scale;
  for (int64_t row = 0; row < r.rows; ++row, x += width, y += width) {
    float average = 0;
    if (kCentred) {
      average = sum_vectors(width, [=](V total, int64_t i, auto count)
                                       HWY_ATTR { return hn::Add(total, load_first(d, x + i, count)); }) /
                static_cast<float>(width);
      mean[row] = average;
    }
    rstd[row] = 1.0f / std::sqrt(mean_square<kCentred>(x, width, average) + epsilon);
    const V center = hn::Set(d, average), factor = hn::Set(d, rstd[row]);
    each_vector(width, [=](int64_t i, auto count) HWY_ATTR {
      const V value = load_first(d, x + i, count), weight = load_first(d, scale + i, count);
      const V normal = hn::Mul(kCentred ? hn::Sub(value, center) : value, factor);
      const V result =
          kCentred ? hn::MulAdd(normal, weight, load_first(d, offset + i, count)) : hn::Mul(normal, weight);
      store_first(d, result, y + i, count);
    });
  }
}

/// A row of dy and x, and what normalised it.
template <bool kCentred>
struct NormalRow {
  const float *dy, *x, *scale;
  V center, factor;

  template <typename Count>
  HWY_INLINE V normal(int64_t i, Count count) const {
    const V value = load_first(d, x + i, count);
    return hn::Mul(kCentred ? hn::Sub(value, center) : value, factor);
  }
  template <typename Count>
  HWY_INLINE V scaled(int64_t i, Count count) const {
    return hn::Mul(load_first(d, dy + i, count), load_first(d, scale + i, count));
  }
};

/// Adds the row's to the gradients of scale and offset.
template <bool kCentred>
HWY_INLINE void add_parameters(const NormalRow<kCentred> row, int64_t width, float *dscale, float *doffset) {
  each_vector(width, [=](int64_t i, auto count) HWY_ATTR {
    const V gradient = load_first(d, row.dy + i, count);
    const V normal = row.normal(i, count);
    store_first(d, hn::MulAdd(gradient, normal, load_first(d, dscale + i, count)), dscale + i, count);
    if (kCentred) store_first(d, hn::Add(gradient, load_first(d, doffset + i, count)), doffset + i, count);
  });
}

template <bool kCentred>
void normalize_rows_gradient(const LayerNormRows &r, const float *dy, const float *mean, const float *rstd, float *dx,
                             float *dscale, float *doffset) {
  const int64_t width = r.width;
  const float *x = r.x;
  for (int64_t i = 0; i < width; ++i) {
    dscale[i] = 0.0f;
    if (kCentred) doffset[i] = 0.0f;
  }
  for (int64_t row = 0; row < r.rows; ++row, dy += width, x += width, dx += width) {
    const NormalRow<kCentred> one{dy, x, r.scale, hn::Set(d, kCentred ? mean[row] : 0.0f), hn::Set(d, rstd[row])};
    add_parameters(one, width, dscale, doffset);
    float s1 = 0;
    if (kCentred) {
      s1 = sum_vectors(width,
                       [=](V total, int64_t i, auto count) HWY_ATTR { return hn::Add(total, one.scaled(i, count)); });
    }
    const float s2 = sum_vectors(width, [=](V total, int64_t i, auto count) HWY_ATTR {
      return hn::MulAdd(one.scaled(i, count), one.normal(i, count), total);
    });
    const V m1 = hn::Set(d, s1 / static_cast<float>(width)), m2 = hn::Set(d, s2 / static_cast<float>(width));
    each_vector(width, [=](int64_t i, auto count) HWY_ATTR {
      const V rest = hn::Sub(hn::Sub(one.scaled(i, count), m1), hn::Mul(one.normal(i, count), m2));
      store_first(d, hn::Mul(one.factor, rest), dx + i, count);
    });
  }
}

void run_layer_norm(const LayerNormRows &rows, const float *offset, float epsilon, float *y, float *mean, float *rstd) {
  normalize_rows<true>(rows, offset, epsilon, y, mean, rstd);
}

void run_layer_norm_gradient(const LayerNormRows &rows, const float *dy, const float *mean, const float *rstd,
                             float *dx, float *dscale, float *doffset) {
  normalize_rows_gradient<true>(rows, dy, mean, rstd, dx, dscale, doffset);
}

void run_rms_norm(const LayerNormRows &rows, float epsilon, float *y, float *rstd) {
  normalize_rows<false>(rows, nullptr, epsilon, y, nullptr, rstd);
}

void run_rms_norm_gradient(const LayerNormRows &rows, const float *dy, const float *rstd, float *dx, float *dscale) {
  normalize_rows_gradient<false>(rows, dy, nullptr, rstd, dx, dscale, nullptr);
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_moments);
HWY_EXPORT(run_apply);
HWY_EXPORT(run_gradient_moments);
HWY_EXPORT(run_gradient_apply);
HWY_EXPORT(run_layer_norm);
HWY_EXPORT(run_layer_norm_gradient);
HWY_EXPORT(run_rms_norm);
HWY_EXPORT(run_rms_norm_gradient);

void channel_moments(const ChannelShape &shape, const float *x, double *sum, double *sum_squares) {
  HWY_DYNAMIC_DISPATCH(run_moments)(shape, x, sum, sum_squares);
}

void channel_apply(const ChannelShape &shape, const float *x, const float *a, const float *b, const float *other,
                   bool relu, float *y) {
  HWY_DYNAMIC_DISPATCH(run_apply)(shape, x, a, b, other, relu, y);
}

void channel_gradient_moments(const ChannelShape &shape, const float *dy, const float *x, const float *mean,
                              const ChannelMask &mask, double *sum_dy, double *sum_dy_xc) {
  HWY_DYNAMIC_DISPATCH(run_gradient_moments)(shape, dy, x, mean, mask, sum_dy, sum_dy_xc);
}

void channel_gradient_apply(const ChannelShape &shape, const float *dy, const float *x, const float *mean,
                            const float *a, const float *slope, const float *shift, const ChannelMask &mask,
                            float *dx) {
  HWY_DYNAMIC_DISPATCH(run_gradient_apply)(shape, dy, x, mean, a, slope, shift, mask, dx);
}

void layer_norm(const LayerNormRows &rows, const float *offset, float epsilon, float *y, float *mean, float *rstd) {
  HWY_DYNAMIC_DISPATCH(run_layer_norm)(rows, offset, epsilon, y, mean, rstd);
}

void layer_norm_gradient(const LayerNormRows &rows, const float *dy, const float *mean, const float *rstd, float *dx,
                         float *dscale, float *doffset) {
  HWY_DYNAMIC_DISPATCH(run_layer_norm_gradient)(rows, dy, mean, rstd, dx, dscale, doffset);
}

void rms_norm(const LayerNormRows &rows, float epsilon, float *y, float *rstd) {
  HWY_DYNAMIC_DISPATCH(run_rms_norm)(rows, epsilon, y, rstd);
}

void rms_norm_gradient(const LayerNormRows &rows, const float *dy, const float *rstd, float *dx, float *dscale) {
  HWY_DYNAMIC_DISPATCH(run_rms_norm_gradient)(rows, dy, rstd, dx, dscale);
}

}  // namespace tutti::impl::backend::cpu
#endif
