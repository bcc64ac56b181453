// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_reduce.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_reduce.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

// Elements that are summed in f32 before the double takes them: 16 vectors for each of four sums.
constexpr int64_t kStretch = 64;

struct Sum {
  static V identity() { return hn::Zero(d); }
  static V step(V a, V b) { return hn::Add(a, b); }
  static float scalar(float a, float b) { return a + b; }
};
struct SumOfSquares {
  static V identity() { return hn::Zero(d); }
  static V step(V sum, V x) { return hn::MulAdd(x, x, sum); }
};
struct Maximum {
  static constexpr bool kIsExact = true;
  static V identity() { return hn::Set(d, -INFINITY); }
  static V step(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }
  static float scalar(float a, float b) { return a > b || std::isnan(a) ? a : b; }
};
struct Minimum {
  static constexpr bool kIsExact = true;
  static V identity() { return hn::Set(d, INFINITY); }
  static V step(V a, V b) { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); }
  static float scalar(float a, float b) { return a < b || std::isnan(a) ? a : b; }
};
struct Product {
  static constexpr bool kIsExact = false;
  static V identity() { return hn::Set(d, 1.0f); }
  static V step(V a, V b) { return hn::Mul(a, b); }
  static float scalar(float a, float b) { return a * b; }
};

HWY_INLINE double sum_of_lanes(V v) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  double sum = 0;
  for (int64_t i = 0; i < float_lanes(); ++i)
    sum += static_cast<double>(lanes[i]);
  return sum;
}

// Of n terms; add(sum, i, count) adds those of a vector.
template <typename Add>
HWY_INLINE double sum_terms(int64_t n, const Add &add) {
  const int64_t lanes = float_lanes();
  double total = 0;
  int64_t i = 0;
  while (i + 4 * lanes <= n) {
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const int64_t end = HWY_MIN(n - 4 * lanes, i + kStretch * lanes);
    for (; i <= end; i += 4 * lanes) {
      s0 = add(s0, i, AllLanes());
      s1 = add(s1, i + lanes, AllLanes());
      s2 = add(s2, i + 2 * lanes, AllLanes());
      s3 = add(s3, i + 3 * lanes, AllLanes());
    }
    total += sum_of_lanes(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  V rest = hn::Zero(d);
  for (; i < n; i += lanes)
    rest = add(rest, i, HWY_MIN(lanes, n - i));
  return total + sum_of_lanes(rest);
}

double sum_row(const float *HWY_RESTRICT x, int64_t n) {
  const auto add = [=](V sum, int64_t i, auto count) HWY_ATTR { return hn::Add(sum, load_first(d, x + i, count)); };
  return sum_terms(n, add);
}

double run_sum_of_squares(const float *HWY_RESTRICT x, int64_t n, float factor) {
  const V factors = hn::Set(d, factor);
  const auto add = [=](V sum, int64_t i, auto count) HWY_ATTR {
    // Zeros behind the last element are none when the factor is infinite.
    const V scaled = keep_first(d, hn::Mul(load_first(d, x + i, count), factors), count);
    return hn::MulAdd(scaled, scaled, sum);
  };
  return sum_terms(n, add);
}

template <typename Kind>
float fold_row(const float *HWY_RESTRICT x, int64_t n) {
  const int64_t lanes = float_lanes();
  int64_t i = n / lanes * lanes;
  const auto step = [=](V total, int64_t at, auto count)
                        HWY_ATTR { return Kind::step(total, load_first(d, x + at, count)); };
  V folded = Kind::identity();
  if constexpr (Kind::kIsExact) {
    folded = fold_vectors(i, folded, step, [](V a, V b) HWY_ATTR { return Kind::step(a, b); });
  } else {
    // Of numbers near 1 short products are rounded more to one side than long ones.
    for (int64_t at = 0; at < i; at += lanes)
      folded = step(folded, at, AllLanes());
  }
  HWY_ALIGN float values[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(folded, d, values);
  float result = values[0];
  for (int64_t lane = 1; lane < lanes; ++lane)
    result = Kind::scalar(result, values[lane]);
  for (; i < n; ++i)
    result = Kind::scalar(result, x[i]);
  return result;
}

// A strip of kVectors vectors of columns, down `rows` rows.
template <typename Kind, int kVectors>
HWY_INLINE void fold_strip(const float *HWY_RESTRICT x, int64_t rows, int64_t stride, int64_t columns,
                           float *HWY_RESTRICT out) {
  const int64_t lanes = float_lanes();
  V folded[kVectors];
  for (int v = 0; v < kVectors; ++v)
    folded[v] = Kind::identity();
  for (int64_t r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t left = HWY_MIN(lanes, columns - v * lanes);
      const float *from = x + r * stride + v * lanes;
      folded[v] = Kind::step(folded[v], left == lanes ? hn::LoadU(d, from) : load_first(d, from, left));
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    store_first(d, folded[v], out + v * lanes, HWY_MAX(int64_t{0}, HWY_MIN(lanes, columns - v * lanes)));
  }
}

template <typename Kind>
HWY_INLINE void fold_columns(const float *x, int64_t rows, int64_t columns, float *out) {
  const int64_t lanes = float_lanes();
  int64_t j = 0;
  for (; j + 4 * lanes <= columns; j += 4 * lanes)
    fold_strip<Kind, 4>(x + j, rows, columns, 4 * lanes, out + j);
  for (; j < columns; j += lanes)
    fold_strip<Kind, 1>(x + j, rows, columns, HWY_MIN(lanes, columns - j), out + j);
}

constexpr int64_t kStrip = 512;

// Sums of columns, kStrip columns at a time, in stretches of rows whose f32 sums are added up in double.
template <typename Kind>
void sum_columns(const float *x, int64_t rows, int64_t columns, float scale, float *out) {
  constexpr int64_t kRows = 128;
  float partial[kStrip];
  double total[kStrip];
  for (int64_t j0 = 0; j0 < columns; j0 += kStrip) {
    const int64_t width = HWY_MIN(kStrip, columns - j0);
    const int64_t lanes = float_lanes();
    for (int64_t j = 0; j < width; ++j)
      total[j] = 0;
    for (int64_t r = 0; r < rows; r += kRows) {
      const int64_t count = HWY_MIN(kRows, rows - r);
      const float *from = x + r * columns + j0;
      int64_t j = 0;
      for (; j + 4 * lanes <= width; j += 4 * lanes) {
        fold_strip<Kind, 4>(from + j, count, columns, 4 * lanes, partial + j);
      }
      for (; j < width; j += lanes) {
        fold_strip<Kind, 1>(from + j, count, columns, HWY_MIN(lanes, width - j), partial + j);
      }
      for (j = 0; j < width; ++j)
        total[j] += static_cast<double>(partial[j]);
    }
    for (int64_t j = 0; j < width; ++j)
      out[j0 + j] = static_cast<float>(total[j] * static_cast<double>(scale));
  }
}

void reduce_sums(const ReduceShape &s, const float *x, float *out, float scale) {
  for (int64_t o = 0; o < s.outer; ++o) {
    if (s.inner == 1) {
      out[o] = static_cast<float>(sum_row(x + o * s.middle, s.middle) * static_cast<double>(scale));
    } else {
      sum_columns<Sum>(x + o * s.middle * s.inner, s.middle, s.inner, scale, out + o * s.inner);
    }
  }
}

void reduce_squares(const ReduceShape &s, const float *x, float *out, float scale) {
  for (int64_t o = 0; o < s.outer; ++o) {
    if (s.inner == 1) {
      out[o] = static_cast<float>(run_sum_of_squares(x + o * s.middle, s.middle, 1.0f) * static_cast<double>(scale));
    } else {
      sum_columns<SumOfSquares>(x + o * s.middle * s.inner, s.middle, s.inner, scale, out + o * s.inner);
    }
  }
}

template <typename Kind>
void reduce_other(const ReduceShape &s, const float *x, float *out) {
  for (int64_t o = 0; o < s.outer; ++o) {
    if (s.inner == 1) {
      out[o] = fold_row<Kind>(x + o * s.middle, s.middle);
    } else {
      fold_columns<Kind>(x + o * s.middle * s.inner, s.middle, s.inner, out + o * s.inner);
    }
  }
}

void run_reduce(ReduceKind kind, const ReduceShape &shape, const float *x, float *out, float scale) {
  switch (kind) {
    case ReduceKind::sum:
      return reduce_sums(shape, x, out, scale);
    case ReduceKind::maximum:
      return reduce_other<Maximum>(shape, x, out);
    case ReduceKind::minimum:
      return reduce_other<Minimum>(shape, x, out);
    case ReduceKind::product:
      return reduce_other<Product>(shape, x, out);
    case ReduceKind::squares:
      return reduce_squares(shape, x, out, scale);
  }
}

bool run_all_finite(const float *x, int64_t n) {
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (!hn::AllTrue(d, hn::IsFinite(hn::LoadU(d, x + i)))) return false;
  }
  for (; i < n; ++i) {
    if (!std::isfinite(x[i])) return false;
  }
  return true;
}

int64_t run_first_above(const float *x, int64_t n, float limit) {
  const int64_t lanes = float_lanes();
  const V most = hn::Set(d, limit);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const int64_t at = hn::FindFirstTrue(d, hn::Not(hn::Le(hn::LoadU(d, x + i), most)));
    if (at >= 0) return i + at;
  }
  while (i < n && x[i] <= limit)
    ++i;
  return i;
}

void run_add_to(const float *HWY_RESTRICT x, float *HWY_RESTRICT out, int64_t n) {
  each_vector(n, [=](int64_t i, auto count) HWY_ATTR {
    store_first(d, hn::Add(load_first(d, out + i, count), load_first(d, x + i, count)), out + i, count);
  });
}

void run_raise_to(const float *HWY_RESTRICT x, float *HWY_RESTRICT out, int64_t n) {
  each_vector(n, [=](int64_t i, auto count) HWY_ATTR {
    const V old = load_first(d, out + i, count), given = load_first(d, x + i, count);
    const V larger = hn::IfThenElse(hn::Or(hn::Gt(given, old), hn::IsNaN(given)), given, old);
    store_first(d, hn::IfThenElse(hn::IsNaN(old), old, larger), out + i, count);
  });
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_reduce);
HWY_EXPORT(run_sum_of_squares);
HWY_EXPORT(run_all_finite);
HWY_EXPORT(run_first_above);
HWY_EXPORT(run_add_to);
HWY_EXPORT(run_raise_to);

void reduce(ReduceKind kind, const ReduceShape &shape, const float *x, float *out, float scale) {
  HWY_DYNAMIC_DISPATCH(run_reduce)(kind, shape, x, out, scale);
}

double sum_of_squares(const float *x, int64_t n, float factor) {
  return HWY_DYNAMIC_DISPATCH(run_sum_of_squares)(x, n, factor);
}

bool all_finite(const float *x, int64_t n) { return HWY_DYNAMIC_DISPATCH(run_all_finite)(x, n); }

int64_t first_above(const float *x, int64_t n, float limit) {
  return HWY_DYNAMIC_DISPATCH(run_first_above)(x, n, limit);
}

void add_to(const float *x, float *out, int64_t n) { HWY_DYNAMIC_DISPATCH(run_add_to)(x, out, n); }

void raise_to(const float *x, float *out, int64_t n) { HWY_DYNAMIC_DISPATCH(run_raise_to)(x, out, n); }

}  // namespace tutti::impl::backend::cpu
#endif
