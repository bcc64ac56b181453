// SPDX-License-Identifier: Apache-2.0
//
// Element types. The numbers are part of the C ABI, of checkpoints and of serialised graphs: values are only appended.
// All functions are pure; a number that is no type is legal input and answered as documented.
#ifndef TUTTI_TENSOR_DTYPE_H_
#define TUTTI_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "tensor/element_type.h"
#include "tensor/half.h"

namespace tutti::impl::tensor {

/// What arithmetic a type has.
enum class DTypeCategory : int32_t {
  none = 0,
  floating = 1,
  signed_integer = 2,
  unsigned_integer = 3,
  boolean = 4,
  bytes = 5
};

/// Is the number one of the types above?
bool is_valid(DType dtype);
/// Bytes of an element: 8 for bytes (its offset), 0 for no type.
size_t size_bytes(DType dtype);
/// "f32", "boolean", ...; "invalid" for no type.
std::string_view name(DType dtype);
/// The type of a name; also takes "float32", "int64", "bool", "string" and the like. INVALID_ARGUMENT otherwise.
base::Result<DType> parse_dtype(std::string_view text);
/// INVALID_ARGUMENT unless the number is a type.
base::Result<DType> dtype_from_number(int32_t number);

DTypeCategory category(DType dtype);
inline bool is_floating(DType dtype) { return category(dtype) == DTypeCategory::floating; }
/// Signed or unsigned.
inline bool is_integer(DType dtype) {
  return category(dtype) == DTypeCategory::signed_integer || category(dtype) == DTypeCategory::unsigned_integer;
}

/// The DType of a C++ type: dtype_of<float> == DType::f32. Not defined for other types.
template <typename T>
inline constexpr DType dtype_of = static_cast<DType>(0);
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;
template <>
inline constexpr DType dtype_of<Half> = DType::f16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<int16_t> = DType::i16;
template <>
inline constexpr DType dtype_of<uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<uint32_t> = DType::u32;
template <>
inline constexpr DType dtype_of<uint64_t> = DType::u64;

/// A C++ type that is an element type.
template <typename T>
concept Element = dtype_of<T>
!= static_cast<DType>(0);

/// Calls function(T{}) with the C++ type of a fixed-size dtype; false for bytes and for no type.
///   visit_dtype(dtype, [&]<typename T>(T) { fill(static_cast<T *>(data)); });
template <typename Function>
bool visit_dtype(DType dtype, Function &&function) {
  switch (dtype) {
    case DType::f32:
      function(float{});
      return true;
    case DType::f64:
      function(double{});
      return true;
    case DType::i32:
      function(int32_t{});
      return true;
    case DType::i64:
      function(int64_t{});
      return true;
    case DType::u8:
      function(uint8_t{});
      return true;
    case DType::boolean:
      function(bool{});
      return true;
    case DType::f16:
      function(Half{});
      return true;
    case DType::bf16:
      function(BFloat16{});
      return true;
    case DType::i8:
      function(int8_t{});
      return true;
    case DType::i16:
      function(int16_t{});
      return true;
    case DType::u16:
      function(uint16_t{});
      return true;
    case DType::u32:
      function(uint32_t{});
      return true;
    case DType::u64:
      function(uint64_t{});
      return true;
    case DType::bytes:
      break;
  }
  return false;
}

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_DTYPE_H_
