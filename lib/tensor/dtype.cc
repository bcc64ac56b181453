// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <array>
#include <string>
#include <vector>

namespace tutti::impl::tensor {

namespace {

struct Description {
  DType dtype;
  std::string_view name;
  size_t size_bytes;
  DTypeCategory category;
  std::string_view other_names[2];
};

// By number; the first entry stands for everything that is no type.
constexpr std::array<Description, 15> kDescriptions = {{
    {static_cast<DType>(0), "invalid", 0, DTypeCategory::none, {}},
    {DType::f32, "f32", 4, DTypeCategory::floating, {"float32", "float"}},
    {DType::f64, "f64", 8, DTypeCategory::floating, {"float64", "double"}},
    {DType::i32, "i32", 4, DTypeCategory::signed_integer, {"int32", "int"}},
    {DType::i64, "i64", 8, DTypeCategory::signed_integer, {"int64", "long"}},
    {DType::u8, "u8", 1, DTypeCategory::unsigned_integer, {"uint8", "byte"}},
    {DType::boolean, "boolean", 1, DTypeCategory::boolean, {"bool", "bool8"}},
    {DType::f16, "f16", 2, DTypeCategory::floating, {"float16", "half"}},
    {DType::bf16, "bf16", 2, DTypeCategory::floating, {"bfloat16", "bfloat"}},
    {DType::i8, "i8", 1, DTypeCategory::signed_integer, {"int8", "char"}},
    {DType::i16, "i16", 2, DTypeCategory::signed_integer, {"int16", "short"}},
    {DType::u16, "u16", 2, DTypeCategory::unsigned_integer, {"uint16", "ushort"}},
    {DType::u32, "u32", 4, DTypeCategory::unsigned_integer, {"uint32", "uint"}},
    {DType::u64, "u64", 8, DTypeCategory::unsigned_integer, {"uint64", "ulong"}},
    {DType::bytes, "bytes", 8, DTypeCategory::bytes, {"string", "text"}},
}};

const Description &describe(DType dtype) {
  const auto number = static_cast<size_t>(dtype);
  return kDescriptions[number < kDescriptions.size() ? number : 0];
}

}  // namespace

bool is_valid(DType dtype) { return describe(dtype).size_bytes != 0; }
size_t size_bytes(DType dtype) { return describe(dtype).size_bytes; }
std::string_view name(DType dtype) { return describe(dtype).name; }
DTypeCategory category(DType dtype) { return describe(dtype).category; }

base::Result<DType> parse_dtype(std::string_view text) {
  std::vector<std::string> names;
  for (const Description &type : kDescriptions) {
    if (!is_valid(type.dtype)) continue;
    if (text == type.name || text == type.other_names[0] || text == type.other_names[1]) return type.dtype;
    names.emplace_back(type.name);
  }
  return base::invalid_argument("unknown dtype ", base::quoted(text), base::did_you_mean(text, names),
                                "; known: ", base::join(names, ", "));
}

base::Result<DType> dtype_from_number(int32_t number) {
  const auto dtype = static_cast<DType>(number);
  if (!is_valid(dtype)) return base::invalid_argument("expected a dtype (1 to 14), got ", number);
  return dtype;
}

}  // namespace tutti::impl::tensor
