// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_loss.h"

#include <cfloat>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_loss.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_functions-inl.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

// What one row of logits comes to.
struct RowStatistics {
  float maximum;
  float sum;  // of exp(x - maximum)
};

HWY_INLINE V load_or_lowest(const float *x, AllLanes) { return hn::LoadU(d, x); }
HWY_INLINE V load_or_lowest(const float *x, int64_t count) {
  if (count >= float_lanes()) return hn::LoadU(d, x);
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), load_first(d, x, count), hn::Set(d, -FLT_MAX));
}

HWY_INLINE float row_maximum(const float *x, int64_t n) {
  const auto larger = [](V a, V b) HWY_ATTR { return hn::Max(a, b); };
  const V maximum = fold_vectors(
      n, hn::Set(d, -FLT_MAX),
      [=](V total, int64_t i, auto count) HWY_ATTR { return hn::Max(total, load_or_lowest(x + i, count)); }, larger);
  return hn::GetLane(hn::MaxOfLanes(d, maximum));
}

// exp(x - maximum) for one vector; lanes beyond `count` give 0. NaN stays NaN.
template <typename Count>
HWY_INLINE V shifted_exp(const float *x, Count count, V maximum) {
  const V shifted = hn::Sub(load_or_lowest(x, count), maximum);
  return keep_first(d, hn::IfThenElse(hn::IsNaN(shifted), shifted, hn::Exp(d, shifted)), count);
}

HWY_INLINE RowStatistics row_statistics(const float *x, int64_t n) {
  const float maximum = row_maximum(x, n);
  const V shift = hn::Set(d, maximum);
  const float sum = sum_vectors(
      n, [=](V total, int64_t i, auto count) HWY_ATTR { return hn::Add(total, shifted_exp(x + i, count, shift)); });
  return {maximum, sum};
}

HWY_INLINE float row_sum(const float *x, int64_t n) {
  return sum_vectors(
      n, [=](V total, int64_t i, auto count) HWY_ATTR { return hn::Add(total, load_first(d, x + i, count)); });
}

HWY_INLINE float row_dot(const float *x, const float *y, int64_t n) {
  return sum_vectors(n, [=](V total, int64_t i, auto count) HWY_ATTR {
    return hn::MulAdd(load_first(d, x + i, count), load_first(d, y + i, count), total);
  });
}

// out = function(i, count), which had better have its addresses by value.
template <typename Function>
HWY_INLINE void map_row(int64_t n, float *out, const Function &function) {
  each_vector(n, [=](int64_t i, auto count) HWY_ATTR { store_first(d, function(i, count), out + i, count); });
}

void run_softmax(const RowShape &s, const float *x, float *y) {
  for (int64_t row = 0; row < s.rows; ++row, x += s.classes, y += s.classes) {
    const V maximum = hn::Set(d, row_maximum(x, s.classes));
    const float sum = sum_vectors(s.classes, [=](V total, int64_t i, auto count) HWY_ATTR {
      const V exps = shifted_exp(x + i, count, maximum);
      store_first(d, exps, y + i, count);
      return hn::Add(total, exps);
    });
    const V scale = hn::Set(d, 1.0f / sum);
    map_row(s.classes, y, [=](int64_t i, auto count) HWY_ATTR { return hn::Mul(load_first(d, y + i, count), scale); });
  }
}

// Rows of a vector at most: the logarithms of a vector of sums at once.
void run_log_softmax_narrow(const RowShape &s, const float *x, float *y) {
  const int64_t lanes = float_lanes();
  HWY_ALIGN float maxima[HWY_MAX_BYTES / sizeof(float)] = {}, sums[HWY_MAX_BYTES / sizeof(float)] = {};
  HWY_ALIGN float log_sums[HWY_MAX_BYTES / sizeof(float)];
  for (int64_t first = 0; first < s.rows; first += lanes) {
    const int64_t rows = HWY_MIN(lanes, s.rows - first);
    for (int64_t row = 0; row < rows; ++row) {
      const V logits = load_or_lowest(x + row * s.classes, s.classes);
      const V maximum = hn::MaxOfLanes(d, logits);
      const V shifted = hn::Sub(logits, maximum);
      const V exps = exponential_below_zero(hn::Max(shifted, hn::Set(d, -88.0f)), hn::Zero(d));
      maxima[row] = hn::GetLane(maximum);
      const V terms = keep_first(d, hn::IfThenElse(hn::IsNaN(shifted), shifted, exps), s.classes);
      sums[row] = hn::GetLane(hn::SumOfLanes(d, terms));
    }
    const V sum = hn::Load(d, sums);
    const V log = hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), hn::Set(d, -INFINITY), hn::Log(d, sum));
    hn::Store(hn::IfThenElse(hn::IsNaN(sum), sum, log), d, log_sums);
    for (int64_t row = 0; row < rows; ++row, x += s.classes, y += s.classes) {
      const V shifted = hn::Sub(load_first(d, x, s.classes), hn::Set(d, maxima[row]));
      store_first(d, hn::Sub(shifted, hn::Set(d, log_sums[row])), y, s.classes);
    }
  }
}

void run_log_softmax(const RowShape &s, const float *x, float *y) {
  if (s.classes <= float_lanes()) return run_log_softmax_narrow(s, x, y);
  for (int64_t row = 0; row < s.rows; ++row, x += s.classes, y += s.classes) {
    const RowStatistics statistics = row_statistics(x, s.classes);
    const V maximum = hn::Set(d, statistics.maximum);
    const V log_sum = hn::Set(d, std::log(statistics.sum));
    map_row(s.classes, y, [=](int64_t i, auto count) HWY_ATTR {
      return hn::Sub(hn::Sub(load_first(d, x + i, count), maximum), log_sum);
    });
  }
}

void run_softmax_gradient(const RowShape &s, const float *dy, const float *y, float *dx) {
  for (int64_t row = 0; row < s.rows; ++row, dy += s.classes, y += s.classes, dx += s.classes) {
    const V dot = hn::Set(d, row_dot(dy, y, s.classes));
    map_row(s.classes, dx, [=](int64_t i, auto count) HWY_ATTR {
      return hn::Mul(load_first(d, y + i, count), hn::Sub(load_first(d, dy + i, count), dot));
    });
  }
}

void run_log_softmax_gradient(const RowShape &s, const float *dy, const float *y, float *dx) {
  for (int64_t row = 0; row < s.rows; ++row, dy += s.classes, y += s.classes, dx += s.classes) {
    const V sum = hn::Set(d, row_sum(dy, s.classes));
    map_row(s.classes, dx, [=](int64_t i, auto count) HWY_ATTR {
      return hn::NegMulAdd(hn::Exp(d, load_first(d, y + i, count)), sum, load_first(d, dy + i, count));
    });
  }
}

// The sum of x - origin.
HWY_INLINE float row_sum_from(float origin, const float *x, int64_t n) {
  const V from = hn::Set(d, origin);
  return sum_vectors(n, [=](V total, int64_t i, auto count) HWY_ATTR {
    return hn::Add(total, keep_first(d, hn::Sub(load_first(d, x + i, count), from), count));
  });
}

// Loss of a row: log(sum) - sum over classes of target * (x - maximum), with the target spread by `smoothing`. Exact
// where logits are large and near each other, too: their differences are.
HWY_INLINE float sparse_loss(const float *x, int64_t n, int64_t label, float smoothing,
                             const RowStatistics &statistics) {
  const float log_sum = std::log(statistics.sum);
  const float hard = log_sum - (x[label] - statistics.maximum);
  if (smoothing == 0.0f) return hard;
  const float mean = row_sum_from(statistics.maximum, x, n) / static_cast<float>(n);
  return (1.0f - smoothing) * hard + smoothing * (log_sum - mean);
}

int64_t run_sparse(const RowShape &s, const float *logits, const Labels &labels, float smoothing, float *loss) {
  int64_t bad = -1;
  for (int64_t row = 0; row < s.rows; ++row) {
    const int64_t label = labels[row];
    if (label < 0 || label >= s.classes) {
      if (bad < 0) bad = row;
      loss[row] = NAN;
      continue;
    }
    const float *x = logits + row * s.classes;
    loss[row] = sparse_loss(x, s.classes, label, smoothing, row_statistics(x, s.classes));
  }
  return bad;
}

// The usual case of few classes: a row is one vector, its exponentials are computed once.
int64_t run_sparse_gradient_narrow(const RowShape &s, const float *dloss, const float *logits, const Labels &labels,
                                   float *loss, float *dlogits) {
  int64_t bad = -1;
  for (int64_t row = 0; row < s.rows; ++row, logits += s.classes, dlogits += s.classes) {
    const int64_t label = labels[row];
    if (label < 0 || label >= s.classes) {
      if (bad < 0) bad = row;
      if (loss != nullptr) loss[row] = NAN;
      continue;
    }
    const V x = load_or_lowest(logits, s.classes);
    const V maximum = hn::MaxOfLanes(d, x);
    const V shifted = hn::Sub(x, maximum);
    const V exps = keep_first(d, hn::IfThenElse(hn::IsNaN(shifted), shifted, hn::Exp(d, shifted)), s.classes);
    const V sum = hn::SumOfLanes(d, exps);
    const float outer = dloss == nullptr ? 1.0f : dloss[row];
    store_first(d, hn::Mul(exps, hn::Div(hn::Set(d, outer), sum)), dlogits, s.classes);
    dlogits[label] -= outer;
    if (loss != nullptr) loss[row] = std::log(hn::GetLane(sum)) - (logits[label] - hn::GetLane(maximum));
  }
  return bad;
}

int64_t run_sparse_gradient(const RowShape &s, const float *dloss, const float *logits, const Labels &labels,
                            float smoothing, float *loss, float *dlogits) {
  if (s.classes <= float_lanes() && smoothing == 0.0f) {
    return run_sparse_gradient_narrow(s, dloss, logits, labels, loss, dlogits);
  }
  int64_t bad = -1;
  for (int64_t row = 0; row < s.rows; ++row, logits += s.classes, dlogits += s.classes) {
    const int64_t label = labels[row];
    if (label < 0 || label >= s.classes) {
      if (bad < 0) bad = row;
      if (loss != nullptr) loss[row] = NAN;
      continue;
    }
    const RowStatistics statistics = row_statistics(logits, s.classes);
    if (loss != nullptr) loss[row] = sparse_loss(logits, s.classes, label, smoothing, statistics);
    const float outer = dloss == nullptr ? 1.0f : dloss[row];
    const V maximum = hn::Set(d, statistics.maximum);
    const V scale = hn::Set(d, outer / statistics.sum);
    const V spread = hn::Set(d, outer * smoothing / static_cast<float>(s.classes));
    map_row(s.classes, dlogits, [=](int64_t i, auto count) HWY_ATTR {
      return hn::MulSub(shifted_exp(logits + i, count, maximum), scale, spread);
    });
    dlogits[label] -= outer * (1.0f - smoothing);
  }
  return bad;
}

void run_scale_rows(const RowShape &s, const float *factors, float *x) {
  for (int64_t row = 0; row < s.rows; ++row, x += s.classes) {
    const V factor = hn::Set(d, factors[row]);
    map_row(s.classes, x, [=](int64_t i, auto count) HWY_ATTR { return hn::Mul(load_first(d, x + i, count), factor); });
  }
}

void run_cross_entropy(const RowShape &s, const float *logits, const float *targets, float smoothing, float *loss) {
  const V keep = hn::Set(d, 1.0f - smoothing), base = hn::Set(d, smoothing / static_cast<float>(s.classes));
  for (int64_t row = 0; row < s.rows; ++row, logits += s.classes, targets += s.classes) {
    const RowStatistics statistics = row_statistics(logits, s.classes);
    const V log_sum = hn::Set(d, std::log(statistics.sum)), maximum = hn::Set(d, statistics.maximum);
    loss[row] = sum_vectors(s.classes, [=](V total, int64_t i, auto count) HWY_ATTR {
      const V target = hn::MulAdd(load_first(d, targets + i, count), keep, base);
      const V term = hn::Mul(target, hn::Sub(log_sum, hn::Sub(load_first(d, logits + i, count), maximum)));
      // Nothing of what is no target, also where its logit is infinite.
      return hn::Add(total, keep_first(d, hn::IfThenElseZero(hn::Ne(target, hn::Zero(d)), term), count));
    });
  }
}

void run_cross_entropy_gradient(const RowShape &s, const float *dloss, const float *logits, const float *targets,
                                float smoothing, float *dlogits) {
  const V keep = hn::Set(d, 1.0f - smoothing);
  const V base = hn::Set(d, smoothing / static_cast<float>(s.classes));
  for (int64_t row = 0; row < s.rows; ++row, logits += s.classes, targets += s.classes, dlogits += s.classes) {
    const RowStatistics statistics = row_statistics(logits, s.classes);
    const float target_sum = row_sum(targets, s.classes) * (1.0f - smoothing) + smoothing;
    const V maximum = hn::Set(d, statistics.maximum);
    const V scale = hn::Set(d, target_sum / statistics.sum);
    const V outer = hn::Set(d, dloss[row]);
    map_row(s.classes, dlogits, [=](int64_t i, auto count) HWY_ATTR {
      const V target = hn::MulAdd(load_first(d, targets + i, count), keep, base);
      return hn::Mul(outer, hn::MulSub(shifted_exp(logits + i, count, maximum), scale, target));
    });
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_softmax);
HWY_EXPORT(run_log_softmax);
HWY_EXPORT(run_softmax_gradient);
HWY_EXPORT(run_log_softmax_gradient);
HWY_EXPORT(run_sparse);
HWY_EXPORT(run_sparse_gradient);
HWY_EXPORT(run_scale_rows);
HWY_EXPORT(run_cross_entropy);
HWY_EXPORT(run_cross_entropy_gradient);

void softmax(const RowShape &s, const float *x, float *y) { HWY_DYNAMIC_DISPATCH(run_softmax)(s, x, y); }

void log_softmax(const RowShape &s, const float *x, float *y) { HWY_DYNAMIC_DISPATCH(run_log_softmax)(s, x, y); }

void softmax_gradient(const RowShape &s, const float *dy, const float *y, float *dx) {
  HWY_DYNAMIC_DISPATCH(run_softmax_gradient)(s, dy, y, dx);
}

void log_softmax_gradient(const RowShape &s, const float *dy, const float *y, float *dx) {
  HWY_DYNAMIC_DISPATCH(run_log_softmax_gradient)(s, dy, y, dx);
}

int64_t sparse_cross_entropy(const RowShape &s, const float *logits, const Labels &labels, float smoothing,
                             float *loss) {
  return HWY_DYNAMIC_DISPATCH(run_sparse)(s, logits, labels, smoothing, loss);
}

int64_t sparse_cross_entropy_gradient(const RowShape &s, const float *dloss, const float *logits, const Labels &labels,
                                      float smoothing, float *loss, float *dlogits) {
  return HWY_DYNAMIC_DISPATCH(run_sparse_gradient)(s, dloss, logits, labels, smoothing, loss, dlogits);
}

void scale_rows(const RowShape &s, const float *factors, float *x) {
  HWY_DYNAMIC_DISPATCH(run_scale_rows)(s, factors, x);
}

void cross_entropy(const RowShape &s, const float *logits, const float *targets, float smoothing, float *loss) {
  HWY_DYNAMIC_DISPATCH(run_cross_entropy)(s, logits, targets, smoothing, loss);
}

void cross_entropy_gradient(const RowShape &s, const float *dloss, const float *logits, const float *targets,
                            float smoothing, float *dlogits) {
  HWY_DYNAMIC_DISPATCH(run_cross_entropy_gradient)(s, dloss, logits, targets, smoothing, dlogits);
}

}  // namespace tutti::impl::backend::cpu
#endif
