// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/pool.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernel/pool.cc"
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

// The part of a window that lies in the image.
struct Window {
  int64_t top, bottom, left, right;  // [top, bottom) x [left, right)
  int64_t area() const { return (bottom - top) * (right - left); }
};

HWY_INLINE Window window_at(const PoolShape &s, int64_t row, int64_t column) {
  const int64_t top = row * s.stride[0] - s.pad_low[0];
  const int64_t left = column * s.stride[1] - s.pad_low[1];
  return {HWY_MAX(int64_t{0}, top), HWY_MIN(s.in_height, top + s.window[0]), HWY_MAX(int64_t{0}, left),
          HWY_MIN(s.in_width, left + s.window[1])};
}

// Calls body(window, offset of the image in x, offset of the result in y) for each window.
template <typename Body>
HWY_INLINE void for_windows(const PoolShape &s, const Body &body) {
  for (int64_t image = 0; image < s.images; ++image) {
    const int64_t x = image * s.in_height * s.in_width * s.channels;
    int64_t y = image * s.out_height * s.out_width * s.channels;
    for (int64_t row = 0; row < s.out_height; ++row) {
      for (int64_t column = 0; column < s.out_width; ++column, y += s.channels)
        body(window_at(s, row, column), x, y);
    }
  }
}

HWY_INLINE V larger(V best, V value) {
  return hn::IfThenElse(hn::Or(hn::Gt(value, best), hn::IsNaN(value)), value, best);
}

// Windows of 2 x 2 that do not overlap and lie in the image; channels fill whole vectors.
bool is_simple(const PoolShape &s) {
  return s.window[0] == 2 && s.window[1] == 2 && s.stride[0] == 2 && s.stride[1] == 2 && s.pad_low[0] == 0 &&
         s.pad_low[1] == 0 && 2 * s.out_height <= s.in_height && 2 * s.out_width <= s.in_width &&
         s.channels % float_lanes() == 0;
}

void simple_max_pool(const PoolShape &s, const float *HWY_RESTRICT x, float *HWY_RESTRICT y) {
  const int64_t lanes = float_lanes();
  const int64_t line = s.in_width * s.channels;
  for (int64_t image = 0; image < s.images; ++image) {
    for (int64_t row = 0; row < s.out_height; ++row) {
      const float *from = x + (image * s.in_height + 2 * row) * line;
      for (int64_t column = 0; column < s.out_width; ++column, from += 2 * s.channels) {
        for (int64_t c = 0; c < s.channels; c += lanes, y += lanes) {
          V best = hn::LoadU(d, from + c);
          best = larger(best, hn::LoadU(d, from + s.channels + c));
          best = larger(best, hn::LoadU(d, from + line + c));
          best = larger(best, hn::LoadU(d, from + line + s.channels + c));
          hn::StoreU(best, d, y);
        }
      }
    }
  }
}

// Each element of x belongs to one window at most: dx is written once, in order.
template <bool kRelu>
void simple_max_pool_gradient(const PoolShape &s, const float *HWY_RESTRICT dy, const float *HWY_RESTRICT x,
                              const float *HWY_RESTRICT y, float *HWY_RESTRICT dx) {
  const int64_t lanes = float_lanes();
  const int64_t line = s.in_width * s.channels;
  const bool covers = 2 * s.out_height == s.in_height && 2 * s.out_width == s.in_width;
  if (!covers) std::memset(dx, 0, static_cast<size_t>(s.images * s.in_height * line) * sizeof(float));
  const V zero = hn::Zero(d);
  for (int64_t image = 0; image < s.images; ++image) {
    for (int64_t row = 0; row < s.out_height; ++row) {
      int64_t at = (image * s.in_height + 2 * row) * line;
      for (int64_t column = 0; column < s.out_width; ++column, at += 2 * s.channels) {
        for (int64_t c = 0; c < s.channels; c += lanes, y += lanes, dy += lanes) {
          const V best = hn::LoadU(d, y);
          V gradient = hn::LoadU(d, dy);
          if (kRelu) gradient = hn::IfThenElseZero(hn::Gt(best, zero), gradient);
          const int64_t places[4] = {at + c, at + s.channels + c, at + line + c, at + line + s.channels + c};
          auto open = hn::Eq(zero, zero);
          for (int64_t place : places) {
            const V value = hn::LoadU(d, x + place);
            const auto hit = hn::And(open, hn::Or(hn::Eq(value, best), hn::IsNaN(value)));
            hn::StoreU(hn::IfThenElseZero(hit, gradient), d, dx + place);
            open = hn::AndNot(hit, open);
          }
        }
      }
    }
  }
}

void run_max_pool(const PoolShape &s, const float *x, float *y) {
  if (is_simple(s)) return simple_max_pool(s, x, y);
  const int64_t lanes = float_lanes();
  for_windows(s, [&](const Window &w, int64_t x_at, int64_t y_at) HWY_ATTR {
    for (int64_t c = 0; c < s.channels; c += lanes) {
      const int64_t left = HWY_MIN(lanes, s.channels - c);
      V best = hn::Set(d, -INFINITY);
      for (int64_t i = w.top; i < w.bottom; ++i) {
        for (int64_t j = w.left; j < w.right; ++j) {
          best = larger(best, load_first(d, x + x_at + (i * s.in_width + j) * s.channels + c, left));
        }
      }
      store_first(d, best, y + y_at + c, left);
    }
  });
}

void run_max_pool_gradient(const PoolShape &s, const float *dy, const float *x, const float *y, bool relu, float *dx) {
  if (is_simple(s)) {
    return relu ? simple_max_pool_gradient<true>(s, dy, x, y, dx) : simple_max_pool_gradient<false>(s, dy, x, y, dx);
  }
  std::memset(dx, 0, static_cast<size_t>(s.images * s.in_height * s.in_width * s.channels) * sizeof(float));
  const int64_t lanes = float_lanes();
  const V zero = hn::Zero(d);
  for_windows(s, [&](const Window &w, int64_t x_at, int64_t y_at) HWY_ATTR {
    for (int64_t c = 0; c < s.channels; c += lanes) {
      const int64_t left = HWY_MIN(lanes, s.channels - c);
      const V best = load_first(d, y + y_at + c, left);
      V gradient = load_first(d, dy + y_at + c, left);
      if (relu) gradient = hn::IfThenElseZero(hn::Gt(best, zero), gradient);
      auto open = hn::Eq(zero, zero);
      for (int64_t i = w.top; i < w.bottom; ++i) {
        for (int64_t j = w.left; j < w.right; ++j) {
          const int64_t place = x_at + (i * s.in_width + j) * s.channels + c;
          const V value = load_first(d, x + place, left);
          const auto hit = hn::And(open, hn::Or(hn::Eq(value, best), hn::IsNaN(value)));
          open = hn::AndNot(hit, open);
          const V sum = hn::Add(load_first(d, dx + place, left), hn::IfThenElseZero(hit, gradient));
          store_first(d, sum, dx + place, left);
        }
      }
    }
  });
}

HWY_INLINE float share(const PoolShape &s, const Window &w) {
  const int64_t count = s.count_padding ? s.window[0] * s.window[1] : HWY_MAX(int64_t{1}, w.area());
  return 1.0f / static_cast<float>(count);
}

void run_average_pool(const PoolShape &s, const float *x, float *y) {
  const int64_t lanes = float_lanes();
  for_windows(s, [&](const Window &w, int64_t x_at, int64_t y_at) HWY_ATTR {
    const V factor = hn::Set(d, share(s, w));
    for (int64_t c = 0; c < s.channels; c += lanes) {
      const int64_t left = HWY_MIN(lanes, s.channels - c);
      V sum = hn::Zero(d);
      for (int64_t i = w.top; i < w.bottom; ++i) {
        for (int64_t j = w.left; j < w.right; ++j) {
          sum = hn::Add(sum, load_first(d, x + x_at + (i * s.in_width + j) * s.channels + c, left));
        }
      }
      store_first(d, hn::Mul(sum, factor), y + y_at + c, left);
    }
  });
}

void run_average_pool_gradient(const PoolShape &s, const float *dy, float *dx) {
  std::memset(dx, 0, static_cast<size_t>(s.images * s.in_height * s.in_width * s.channels) * sizeof(float));
  const int64_t lanes = float_lanes();
  for_windows(s, [&](const Window &w, int64_t x_at, int64_t y_at) HWY_ATTR {
    const V factor = hn::Set(d, share(s, w));
    for (int64_t c = 0; c < s.channels; c += lanes) {
      const int64_t left = HWY_MIN(lanes, s.channels - c);
      const V gradient = hn::Mul(load_first(d, dy + y_at + c, left), factor);
      for (int64_t i = w.top; i < w.bottom; ++i) {
        for (int64_t j = w.left; j < w.right; ++j) {
          float *to = dx + x_at + (i * s.in_width + j) * s.channels + c;
          store_first(d, hn::Add(load_first(d, to, left), gradient), to, left);
        }
      }
    }
  });
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_max_pool);
HWY_EXPORT(run_max_pool_gradient);
HWY_EXPORT(run_average_pool);
HWY_EXPORT(run_average_pool_gradient);

void max_pool(const PoolShape &shape, const float *x, float *y) { HWY_DYNAMIC_DISPATCH(run_max_pool)(shape, x, y); }

void max_pool_gradient(const PoolShape &shape, const float *dy, const float *x, const float *y, bool relu, float *dx) {
  HWY_DYNAMIC_DISPATCH(run_max_pool_gradient)(shape, dy, x, y, relu, dx);
}

void average_pool(const PoolShape &shape, const float *x, float *y) {
  HWY_DYNAMIC_DISPATCH(run_average_pool)(shape, x, y);
}

void average_pool_gradient(const PoolShape &shape, const float *dy, float *dx) {
  HWY_DYNAMIC_DISPATCH(run_average_pool_gradient)(shape, dy, dx);
}

}  // namespace tutti::impl::backend::cpu
#endif
