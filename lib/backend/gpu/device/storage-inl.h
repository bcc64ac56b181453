// SPDX-License-Identifier: Apache-2.0
//
// Float elements by storage type, read and written as packs of neighbours: 16 bytes where the data allows. Included by
// .cu files only.
//
//   return visit_floats(dtype, is_wide(dtype, length, {x, y}), [&](auto storage) {
//     using S = decltype(storage);                       // Storage<T, V>
//     return gpu_launch(work<typename S::type, S::kWidth>, ...);
//   });
#ifndef TUTTI_BACKEND_GPU_DEVICE_STORAGE_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_STORAGE_INL_H_

#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <typename T>
struct ArithmeticOf {
  using type = float;
};
template <>
struct ArithmeticOf<double> {
  using type = double;
};
/// What is computed with for elements of type T: float, of doubles double.
template <typename T>
using Computed = typename ArithmeticOf<T>::type;

__device__ inline float widen(float x) { return x; }
__device__ inline double widen(double x) { return x; }
__device__ inline float widen(Float16 x) { return gpu_half_to_float(x.bits); }
__device__ inline float widen(BFloat16 x) { return bfloat16_to_float(x.bits); }

__device__ inline void narrow(float x, float &out) { out = x; }
__device__ inline void narrow(double x, double &out) { out = x; }
__device__ inline void narrow(float x, Float16 &out) { out.bits = gpu_float_to_half(x); }
__device__ inline void narrow(float x, BFloat16 &out) { out.bits = float_to_bfloat16(x); }

// ---- packs ----

/// Elements index .. index + V - 1 as they lie in memory; index is a multiple of V.
template <int V, typename T>
__device__ inline Pack<T, V> pack_at(const T *source, int64_t index) {
  return *reinterpret_cast<const Pack<T, V> *>(source + index);
}
template <int V, typename T>
__device__ inline void widen_pack(const Pack<T, V> &pack, Computed<T> (&out)[V]) {
  for (int i = 0; i < V; ++i)
    out[i] = widen(pack.items[i]);
}

/// Elements index .. index + V - 1; index is a multiple of V.
template <int V, typename T>
__device__ inline void load_pack(const T *source, int64_t index, Computed<T> (&out)[V]) {
  widen_pack(pack_at<V>(source, index), out);
}

/// 16 bytes that may be elements of any type.
using WholePack __attribute__((may_alias)) = unsigned __int128;

/// Two neighbours of 16 bits.
template <typename T>
__device__ inline uint32_t narrow_pair(float low, float high) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    uint32_t bits;
    if (gpu_floats_to_bfloat16(low, high, &bits)) return bits;
  }
  T pair[2];
  narrow(low, pair[0]);
  narrow(high, pair[1]);
  return pair[0].bits | uint32_t{pair[1].bits} << 16;
}

/// Bytes 8 * i to 8 * i + 7 of a pack.
template <typename T, int V>
__device__ inline uint64_t narrow_half(const Computed<T> (&in)[V], int i) {
  constexpr int kElements = 8 / static_cast<int>(sizeof(T));
  if constexpr (kElements == 4) {
    const Computed<T> *const four = in + 4 * i;
    return narrow_pair<T>(four[0], four[1]) | uint64_t{narrow_pair<T>(four[2], four[3])} << 32;
  } else {
    uint64_t half;
    memcpy(&half, in + kElements * i, sizeof(half));
    return half;
  }
}

/// 16 bytes are stored as one number: in a loop over rows, compilers store the elements of a Pack one by one.
template <int V, typename T>
__device__ inline void store_pack(T *target, int64_t index, const Computed<T> (&in)[V]) {
  if constexpr (sizeof(T) * V == sizeof(WholePack)) {
    // Put together in registers: a pack that is read as a number would lie in memory meanwhile.
    *reinterpret_cast<WholePack *>(target + index) = narrow_half<T>(in, 0) | WholePack{narrow_half<T>(in, 1)} << 64;
  } else {
    Pack<T, V> pack;
    for (int i = 0; i < V; ++i)
      narrow(in[i], pack.items[i]);
    *reinterpret_cast<Pack<T, V> *>(target + index) = pack;
  }
}

/// A pack that is kept for later, in words: compilers give each element of a Pack a register of its own, which two of
/// 16 bits share here.
template <typename T, int V>
struct HeldPack {
  uint32_t words[(sizeof(T) * V + 3) / 4];
};

template <int V, typename T>
__device__ inline HeldPack<T, V> held_pack_at(const T *source, int64_t index) {
  const Pack<T, V> pack = pack_at<V>(source, index);
  HeldPack<T, V> held;
  memcpy(held.words, &pack, sizeof(pack));
  return held;
}

template <int V, typename T>
__device__ inline void widen_held(const HeldPack<T, V> &held, Computed<T> (&out)[V]) {
  Pack<T, V> pack;
  memcpy(&pack, held.words, sizeof(pack));
  widen_pack<V>(pack, out);
}

/// An array whose dtype is known at run time only: parameters and targets beside the elements.
struct AnyArray {
  const void *data;
  DType dtype;
  int32_t is_wide;  ///< may be read 16 bytes at a time
};

inline AnyArray any_array(const void *data, DType dtype) {
  return {data, dtype, reinterpret_cast<uintptr_t>(data) % 16 == 0 ? 1 : 0};
}

template <int V, typename C, typename T>
__device__ inline void load_parts(const T *source, int64_t index, C (&out)[V]) {
  constexpr int kPart = V * sizeof(T) > 16 ? static_cast<int>(16 / sizeof(T)) : V;
  for (int part = 0; part < V; part += kPart) {
    Computed<T> x[kPart];
    load_pack<kPart>(source, index + part, x);
    for (int i = 0; i < kPart; ++i)
      out[part + i] = static_cast<C>(x[i]);
  }
}

template <int V, typename C, typename T>
__device__ inline void load_from(const AnyArray &array, int64_t index, C (&out)[V]) {
  const T *const source = static_cast<const T *>(array.data);
  if (V > 1 && array.is_wide) return load_parts<V>(source, index, out);
  for (int i = 0; i < V; ++i)
    out[i] = static_cast<C>(widen(source[index + i]));
}

/// Elements index .. index + V - 1 of an array of floats as C; index is a multiple of V.
template <int V, typename C>
__device__ inline void load_any(const AnyArray &array, int64_t index, C (&out)[V]) {
  switch (array.dtype) {
    case DType::f64:
      return load_from<V, C, double>(array, index, out);
    case DType::f16:
      return load_from<V, C, Float16>(array, index, out);
    case DType::bf16:
      return load_from<V, C, BFloat16>(array, index, out);
    default:
      return load_from<V, C, float>(array, index, out);
  }
}

/// One element of any dtype.
template <typename C>
__device__ inline C load_any(const AnyArray &array, int64_t index) {
  return load_element<C>(array.dtype, array.data, index);
}

// ---- the choice of a storage type ----

template <typename T, int V>
struct Storage {
  using type = T;
  static constexpr int kWidth = V;
};

/// Elements of a pack of 16 bytes.
inline int64_t pack_width(DType dtype) { return dtype == DType::f64 ? 2 : dtype == DType::f32 ? 4 : 8; }

/// May rows of this length be read in packs of 16 bytes?
inline bool is_wide(DType dtype, int64_t length, std::initializer_list<const void *> arrays) {
  uintptr_t all = 0;
  for (const void *const array : arrays)
    all |= reinterpret_cast<uintptr_t>(array);
  return all % 16 == 0 && length % pack_width(dtype) == 0;
}

/// Calls function(Storage<T, V>()) for a float dtype.
template <typename Function>
gpuError_t visit_floats(DType dtype, bool is_wide, Function function) {
  switch (dtype) {
    case DType::f32:
      return is_wide ? function(Storage<float, 4>()) : function(Storage<float, 1>());
    case DType::f64:
      return is_wide ? function(Storage<double, 2>()) : function(Storage<double, 1>());
    case DType::f16:
      return is_wide ? function(Storage<Float16, 8>()) : function(Storage<Float16, 1>());
    case DType::bf16:
      return is_wide ? function(Storage<BFloat16, 8>()) : function(Storage<BFloat16, 1>());
    default:
      return gpuErrorInvalidValue;
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_STORAGE_INL_H_
