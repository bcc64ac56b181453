// SPDX-License-Identifier: Apache-2.0
//
// Numbers of attributes as elements, made on the host: kernels that only place an element need not know its type.
//
// Threads: pure functions.
#ifndef TUTTI_BACKEND_GPU_KERNEL_ELEMENT_BITS_H_
#define TUTTI_BACKEND_GPU_KERNEL_ELEMENT_BITS_H_

#include <cstdint>

#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

/// The bits of `value` as an element: integers by way of 64-bit integers, which wrap.
uint64_t converted_bits(tensor::DType dtype, double value);

/// The same with integers saturated.
uint64_t saturated_bits(tensor::DType dtype, double value);

/// A quiet NaN, or 0 where the type has none.
uint64_t missing_bits(tensor::DType dtype);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNEL_ELEMENT_BITS_H_
