// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_cast.h"

#include <bit>
#include <limits>

#include "tensor/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_cast.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using V = FloatVec;
constexpr FloatTag d;
constexpr hn::RebindToSigned<FloatTag> di;
constexpr hn::RebindToUnsigned<FloatTag> du;
constexpr hn::Rebind<uint16_t, FloatTag> d16;
constexpr hn::Rebind<uint8_t, FloatTag> d8;
constexpr hn::ScalableTag<int64_t> di64;
constexpr hn::ScalableTag<uint64_t> du64;
using U = hn::Vec<decltype(du)>;
/// Whether vectors of wider and of narrower numbers have the lanes that those of floats are made of.
constexpr bool kHasVectors = HWY_TARGET != HWY_SCALAR;

template <typename I>
HWY_INLINE I saturated(float x) {
  if (x != x) return 0;
  if (x <= static_cast<float>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  // The limit of wide types, rounded up, is the first number beyond them.
  if (x >= static_cast<float>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
  return static_cast<I>(x);
}

HWY_INLINE void store_16(U bits, uint16_t *to) { hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, bits)), d16, to); }

using I32 = hn::Vec<decltype(di)>;
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void store_wide(I32, int64_t *) {}
HWY_INLINE bool load_narrowed(const int64_t *, I32 &) { return false; }
#else
HWY_INLINE void store_wide(I32 whole, int64_t *to) {
  const hn::Half<decltype(di)> half;
  hn::StoreU(hn::PromoteTo(di64, hn::LowerHalf(half, whole)), di64, to);
  hn::StoreU(hn::PromoteTo(di64, hn::UpperHalf(half, whole)), di64, to + hn::Lanes(di64));
}

// False where some of them need more than 32 bits.
HWY_INLINE bool load_narrowed(const int64_t *from, I32 &whole) {
  const auto low = hn::BitCast(du64, hn::LoadU(di64, from));
  const auto high = hn::BitCast(du64, hn::LoadU(di64, from + hn::Lanes(di64)));
  const auto offset = hn::Set(du64, uint64_t{1} << 31);
  const auto beyond = hn::ShiftRight<32>(hn::Or(hn::Add(low, offset), hn::Add(high, offset)));
  whole = hn::ConcatEven(di, hn::BitCast(di, high), hn::BitCast(di, low));
  return hn::AllTrue(du64, hn::Eq(beyond, hn::Zero(du64)));
}
#endif

struct ToBFloat16 {
  using From = float;
  using To = uint16_t;
  HWY_INLINE void vector(const float *from, uint16_t *to) const {
    const U bits = hn::BitCast(du, hn::LoadU(d, from)), high = hn::ShiftRight<16>(bits);
    const U rounded = hn::Add(bits, hn::Add(hn::Set(du, 0x7fffu), hn::And(high, hn::Set(du, 1u))));
    const auto is_nan = hn::Gt(hn::BitCast(di, hn::And(bits, hn::Set(du, 0x7fffffffu))), hn::Set(di, 0x7f800000));
    const U quiet = hn::Or(high, hn::Set(du, 0x40u));
    store_16(hn::IfThenElse(hn::RebindMask(du, is_nan), quiet, hn::ShiftRight<16>(rounded)), to);
  }
  HWY_INLINE uint16_t scalar(float x) const { return tensor::float_to_bfloat16_bits(x); }
};

struct FromBFloat16 {
  using From = uint16_t;
  using To = float;
  HWY_INLINE void vector(const uint16_t *from, float *to) const {
    const U bits = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, from)));
    hn::StoreU(hn::BitCast(d, bits), d, to);
  }
  HWY_INLINE float scalar(uint16_t x) const { return tensor::bfloat16_bits_to_float(x); }
};

struct ToHalf {
  using From = float;
  using To = uint16_t;
  HWY_INLINE void vector(const float *from, uint16_t *to) const {
    const U bits = hn::BitCast(du, hn::LoadU(d, from));
    const U magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const auto size = hn::BitCast(di, magnitude);
    const U odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
    // Adds wrap: what 0x38000000 takes off, and half a unit less one for rounding.
    U result = hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(odd, hn::Set(du, 0xfffu - 0x38000000u))));
    // Below 2^-14 multiples of 2^-24, which are units of 1 / 2.
    const U units = hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f)));
    const auto is_small = hn::RebindMask(du, hn::Lt(size, hn::Set(di, 0x38800000)));
    result = hn::IfThenElse(is_small, hn::Sub(units, hn::Set(du, 0x3f000000u)), result);
    const auto is_above = hn::RebindMask(du, hn::Gt(size, hn::Set(di, 0x477fefff)));
    result = hn::IfThenElse(is_above, hn::Set(du, 0x7c00u), result);
    const U quiet = hn::Or(hn::Set(du, 0x7e00u), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3ffu)));
    result = hn::IfThenElse(hn::RebindMask(du, hn::Gt(size, hn::Set(di, 0x7f800000))), quiet, result);
    store_16(hn::Or(result, hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u))), to);
  }
  HWY_INLINE uint16_t scalar(float x) const { return tensor::float_to_half_bits(x); }
};

struct FromHalf {
  using From = uint16_t;
  using To = float;
  HWY_INLINE void vector(const uint16_t *from, float *to) const {
    const U bits = hn::PromoteTo(du, hn::LoadU(d16, from));
    const U magnitude = hn::And(bits, hn::Set(du, 0x7fffu)), shifted = hn::ShiftLeft<13>(magnitude);
    const auto size = hn::BitCast(di, magnitude);
    U result = hn::Add(shifted, hn::Set(du, 0x38000000u));
    const auto is_special = hn::RebindMask(du, hn::Gt(size, hn::Set(di, 0x7bff)));
    result = hn::IfThenElse(is_special, hn::Or(shifted, hn::Set(du, 0x7f800000u)), result);
    const V fraction = hn::Mul(hn::ConvertTo(d, size), hn::Set(d, 0x1.0p-24f));
    const auto is_small = hn::RebindMask(du, hn::Lt(size, hn::Set(di, 0x400)));
    result = hn::IfThenElse(is_small, hn::BitCast(du, fraction), result);
    const U sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
    hn::StoreU(hn::BitCast(d, hn::Or(result, sign)), d, to);
  }
  HWY_INLINE float scalar(uint16_t x) const { return tensor::half_bits_to_float(x); }
};

struct ToI64 {
  using From = float;
  using To = int64_t;
  HWY_INLINE void vector(const float *from, int64_t *to) const {
    const V x = hn::LoadU(d, from);
    // By way of 32 bits, where they are enough; number by number otherwise.
    if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 0x1.0p31f))))) {
      store_wide(hn::ConvertTo(di, x), to);
      return;
    }
    for (int64_t i = 0; i < float_lanes(); ++i)
      to[i] = scalar(from[i]);
  }
  HWY_INLINE int64_t scalar(float x) const { return saturated<int64_t>(x); }
};

struct FromI64 {
  using From = int64_t;
  using To = float;
  HWY_INLINE void vector(const int64_t *from, float *to) const {
    I32 whole = hn::Zero(di);
    if (HWY_LIKELY(load_narrowed(from, whole))) return hn::StoreU(hn::ConvertTo(d, whole), d, to);
    for (int64_t i = 0; i < float_lanes(); ++i)
      to[i] = scalar(from[i]);
  }
  HWY_INLINE float scalar(int64_t x) const { return static_cast<float>(x); }
};

struct ToI32 {
  using From = float;
  using To = int32_t;
  HWY_INLINE void vector(const float *from, int32_t *to) const {
    const V x = hn::LoadU(d, from);
    auto whole = hn::ConvertTo(di, hn::IfThenElse(hn::IsNaN(x), hn::Zero(d), x));
    const auto is_above = hn::RebindMask(di, hn::Ge(x, hn::Set(d, 0x1.0p31f)));
    whole = hn::IfThenElse(is_above, hn::Set(di, std::numeric_limits<int32_t>::max()), whole);
    const auto is_below = hn::RebindMask(di, hn::Le(x, hn::Set(d, -0x1.0p31f)));
    hn::StoreU(hn::IfThenElse(is_below, hn::Set(di, std::numeric_limits<int32_t>::min()), whole), di, to);
  }
  HWY_INLINE int32_t scalar(float x) const { return saturated<int32_t>(x); }
};

struct FromI32 {
  using From = int32_t;
  using To = float;
  HWY_INLINE void vector(const int32_t *from, float *to) const {
    hn::StoreU(hn::ConvertTo(d, hn::LoadU(di, from)), d, to);
  }
  HWY_INLINE float scalar(int32_t x) const { return static_cast<float>(x); }
};

struct ToU8 {
  using From = float;
  using To = uint8_t;
  HWY_INLINE void vector(const float *from, uint8_t *to) const {
    const V x = hn::LoadU(d, from);
    const V near = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Min(x, hn::Set(d, 255.0f)));
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(di, near)), d8, to);
  }
  HWY_INLINE uint8_t scalar(float x) const { return saturated<uint8_t>(x); }
};

struct FromU8 {
  using From = uint8_t;
  using To = float;
  HWY_INLINE void vector(const uint8_t *from, float *to) const {
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, from))), d, to);
  }
  HWY_INLINE float scalar(uint8_t x) const { return x; }
};

template <typename Cast>
void run_cast(const Cast cast, const void *x, void *y, int64_t n) {
  const auto *const from = static_cast<const typename Cast::From *>(x);
  auto *const to = static_cast<typename Cast::To *>(y);
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  if constexpr (kHasVectors) {
    for (; i + lanes <= n; i += lanes)
      cast.vector(from + i, to + i);
  }
  for (; i < n; ++i)
    to[i] = cast.scalar(from[i]);
}

void run_casts(tensor::DType from, tensor::DType to, const void *x, void *y, int64_t n) {
  using tensor::DType;
  const bool is_to = from == DType::f32;
  switch (is_to ? to : from) {
    case DType::bf16:
      return is_to ? run_cast(ToBFloat16(), x, y, n) : run_cast(FromBFloat16(), x, y, n);
    case DType::f16:
      return is_to ? run_cast(ToHalf(), x, y, n) : run_cast(FromHalf(), x, y, n);
    case DType::i64:
      return is_to ? run_cast(ToI64(), x, y, n) : run_cast(FromI64(), x, y, n);
    case DType::i32:
      return is_to ? run_cast(ToI32(), x, y, n) : run_cast(FromI32(), x, y, n);
    default:  // u8 and, to f32, boolean
      return is_to ? run_cast(ToU8(), x, y, n) : run_cast(FromU8(), x, y, n);
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_casts);

bool has_fast_cast(tensor::DType from, tensor::DType to) {
  using tensor::DType;
  const auto is_listed = [](DType one) {
    return one == DType::f16 || one == DType::bf16 || one == DType::i64 || one == DType::i32 || one == DType::u8;
  };
  return from == DType::f32 ? is_listed(to) : to == DType::f32 && (is_listed(from) || from == DType::boolean);
}

void cast_numbers(tensor::DType from, tensor::DType to, const void *x, void *y, int64_t count) {
  HWY_DYNAMIC_DISPATCH(run_casts)(from, to, x, y, count);
}

}  // namespace tutti::impl::backend::cpu
#endif
