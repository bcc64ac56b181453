// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the element types, alone, so that code for other processors can name them too. dtype.h has what they
// mean.
#ifndef TUTTI_TENSOR_ELEMENT_TYPE_H_
#define TUTTI_TENSOR_ELEMENT_TYPE_H_

#include <cstdint>

namespace tutti::impl::tensor {

enum class DType : int32_t {
  f32 = 1,
  f64 = 2,
  i32 = 3,
  i64 = 4,
  u8 = 5,
  boolean = 6,  // one byte, 0 or 1
  f16 = 7,
  bf16 = 8,
  i8 = 9,
  i16 = 10,
  u16 = 11,
  u32 = 12,
  u64 = 13,
  bytes = 14,  // strings of any length: int64 offsets + data, see bytes_tensor.h
};

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_ELEMENT_TYPE_H_
