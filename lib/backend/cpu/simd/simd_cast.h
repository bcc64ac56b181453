// SPDX-License-Identifier: Apache-2.0
//
// Conversions between element types, many at a time: what the op `cast` says. To integers towards zero and saturated,
// NaN gives 0; to 16-bit floats to the nearest, ties to even (tensor/half.h).
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_CAST_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_CAST_H_

#include <cstdint>

#include "tensor/dtype.h"

namespace tutti::impl::backend::cpu {

/// Whether cast_numbers() knows a pair: f32 to f16, bf16, i64, i32 and u8, and these and booleans to f32.
bool has_fast_cast(tensor::DType from, tensor::DType to);

/// `count` numbers, which do not overlap. Only for pairs of has_fast_cast().
void cast_numbers(tensor::DType from, tensor::DType to, const void *x, void *y, int64_t count);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_CAST_H_
