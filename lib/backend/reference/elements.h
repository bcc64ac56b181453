// SPDX-License-Identifier: Apache-2.0
//
// Elements of any dtype as numbers to compute with: double for floats, 64-bit integers for integers and booleans.
// Kernels load a run of elements into a small array, compute, and store; so one loop serves all dtypes.
//
//   double x[kRun];
//   load(dtype, source, first, stride, count, x);          // count <= kRun
//   store(dtype, target, first, count, x);
#ifndef TUTTI_BACKEND_REFERENCE_ELEMENTS_H_
#define TUTTI_BACKEND_REFERENCE_ELEMENTS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"

namespace tutti::impl::backend::reference {

/// Elements that kernels keep on the stack at once.
inline constexpr int64_t kRun = 256;

/// An element as C (double, int64_t or uint64_t). Float to integer is the `cast` op's: towards zero, saturated, NaN 0.
template <typename C, typename T>
C widen(T value);
/// C as an element; the inverse of widen where it fits.
template <typename T, typename C>
T narrow(C value);

/// Elements first, first + stride, ... of `source` as C.
template <typename C>
void load(tensor::DType dtype, const void *source, int64_t first, int64_t stride, int64_t count, C *out);
/// Elements first, first + 1, ... of `target`.
template <typename C>
void store(tensor::DType dtype, void *target, int64_t first, int64_t count, const C *in);

extern template void load(tensor::DType, const void *, int64_t, int64_t, int64_t, double *);
extern template void load(tensor::DType, const void *, int64_t, int64_t, int64_t, int64_t *);
extern template void load(tensor::DType, const void *, int64_t, int64_t, int64_t, uint64_t *);
extern template void store(tensor::DType, void *, int64_t, int64_t, const double *);
extern template void store(tensor::DType, void *, int64_t, int64_t, const int64_t *);
extern template void store(tensor::DType, void *, int64_t, int64_t, const uint64_t *);

/// One element as a double.
inline double load_one(tensor::DType dtype, const void *source, int64_t index = 0) {
  double value;
  load(dtype, source, index, 1, 1, &value);
  return value;
}

/// Calls function(first, count) for runs of at most kRun that make up 0 .. count-1.
template <typename Function>
void for_runs(int64_t count, Function &&function) {
  for (int64_t first = 0; first < count; first += kRun)
    function(first, std::min(kRun, count - first));
}

/// Calls function(C{}) with the type that arithmetic on a dtype is done in.
template <typename Function>
void visit_arithmetic(tensor::DType dtype, Function &&function) {
  if (tensor::is_floating(dtype)) {
    function(double{});
  } else if (dtype == tensor::DType::u64) {
    function(uint64_t{});
  } else {
    function(int64_t{});
  }
}

/// Calls function(T{}) with the storage type of a float dtype.
template <typename Function>
void visit_floating(tensor::DType dtype, Function &&function) {
  switch (dtype) {
    case tensor::DType::f64:
      return function(double{});
    case tensor::DType::f16:
      return function(tensor::Half{});
    case tensor::DType::bf16:
      return function(tensor::BFloat16{});
    default:
      return function(float{});
  }
}

inline double as_double(double value) { return value; }
inline double as_double(float value) { return value; }
inline double as_double(tensor::Half value) { return static_cast<float>(value); }
inline double as_double(tensor::BFloat16 value) { return static_cast<float>(value); }

}  // namespace tutti::impl::backend::reference

#endif  // TUTTI_BACKEND_REFERENCE_ELEMENTS_H_
