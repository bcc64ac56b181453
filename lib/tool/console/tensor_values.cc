// SPDX-License-Identifier: Apache-2.0
#include "tool/console/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tool/console/table.h"

namespace tutti::tool {

namespace {

constexpr int64_t kPreviewed = 8;
constexpr size_t kTextLength = 40;

const char *const kNames[] = {"?",    "f32", "f64", "i32", "i64", "u8",  "bool", "f16",
                              "bf16", "i8",  "i16", "u16", "u32", "u64", "bytes"};

/// IEEE 754 binary16.
double half_number(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

/// The upper half of a binary32.
double brain_number(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <typename T>
void read_typed(const Tensor &tensor, std::vector<double> &numbers) {
  const T *values = tensor.data<T>();
  std::transform(values, values + numbers.size(), numbers.begin(), [](T value) { return static_cast<double>(value); });
}

void read_halves(const Tensor &tensor, std::vector<double> &numbers, double (*convert)(uint16_t)) {
  const auto *values = tensor.data<uint16_t>();
  std::transform(values, values + numbers.size(), numbers.begin(), convert);
}

bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 32 && c != '\t' && c != '\n' && c != '\r';
  });
}

}  // namespace

const char *dtype_name(int32_t dtype) {
  return dtype > 0 && dtype < static_cast<int32_t>(std::size(kNames)) ? kNames[dtype] : kNames[0];
}

std::string shape_text(const Tensor &tensor) {
  std::string text;
  for (int64_t axis = 0; axis < tensor.rank(); ++axis)
    text += (axis > 0 ? ", " : "") + std::to_string(tensor.dim(axis));
  return "[" + text + "]";
}

bool is_bytes(const Tensor &tensor) { return tensor.dtype() == TUTTI_DTYPE_BYTES; }

bool is_floating(int32_t dtype) {
  return dtype == TUTTI_DTYPE_F32 || dtype == TUTTI_DTYPE_F64 || dtype == TUTTI_DTYPE_F16 || dtype == TUTTI_DTYPE_BF16;
}

int64_t dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case TUTTI_DTYPE_F64:
    case TUTTI_DTYPE_I64:
    case TUTTI_DTYPE_U64:
      return 8;
    case TUTTI_DTYPE_F32:
    case TUTTI_DTYPE_I32:
    case TUTTI_DTYPE_U32:
      return 4;
    case TUTTI_DTYPE_F16:
    case TUTTI_DTYPE_BF16:
    case TUTTI_DTYPE_I16:
    case TUTTI_DTYPE_U16:
      return 2;
    default:
      return dtype == TUTTI_DTYPE_BYTES ? 0 : 1;
  }
}

void read_numbers(const Tensor &tensor, std::vector<double> &numbers) {
  numbers.resize(static_cast<size_t>(tensor.element_count()));
  switch (tensor.dtype()) {
    case TUTTI_DTYPE_F32:
      return read_typed<float>(tensor, numbers);
    case TUTTI_DTYPE_F64:
      return read_typed<double>(tensor, numbers);
    case TUTTI_DTYPE_I32:
      return read_typed<int32_t>(tensor, numbers);
    case TUTTI_DTYPE_I64:
      return read_typed<int64_t>(tensor, numbers);
    case TUTTI_DTYPE_U8:
      return read_typed<uint8_t>(tensor, numbers);
    case TUTTI_DTYPE_BOOL:
      return read_typed<uint8_t>(tensor, numbers);
    case TUTTI_DTYPE_I8:
      return read_typed<int8_t>(tensor, numbers);
    case TUTTI_DTYPE_I16:
      return read_typed<int16_t>(tensor, numbers);
    case TUTTI_DTYPE_U16:
      return read_typed<uint16_t>(tensor, numbers);
    case TUTTI_DTYPE_U32:
      return read_typed<uint32_t>(tensor, numbers);
    case TUTTI_DTYPE_U64:
      return read_typed<uint64_t>(tensor, numbers);
    case TUTTI_DTYPE_F16:
      return read_halves(tensor, numbers, half_number);
    case TUTTI_DTYPE_BF16:
      return read_halves(tensor, numbers, brain_number);
    default:
      numbers.clear();
  }
}

std::string_view bytes_at(const Tensor &tensor, int64_t index) {
  return {static_cast<const char *>(tutti_tensor_get_element_data(tensor, index)),
          static_cast<size_t>(tutti_tensor_get_element_size(tensor, index))};
}

Tensor make_texts(const std::vector<int64_t> &dims, const std::vector<std::string_view> &texts) {
  // Where each text begins, counted from these numbers on, and where the last one ends.
  std::vector<int64_t> begins{static_cast<int64_t>((texts.size() + 1) * sizeof(int64_t))};
  for (const std::string_view text : texts)
    begins.push_back(begins.back() + static_cast<int64_t>(text.size()));
  std::string data;
  data.reserve(static_cast<size_t>(begins.back()));
  data.append(reinterpret_cast<const char *>(begins.data()), begins.size() * sizeof(int64_t));
  for (const std::string_view text : texts)
    data += text;
  return Tensor(TUTTI_DTYPE_BYTES, dims, data.data(), static_cast<int64_t>(data.size()));
}

const char *image_kind(std::string_view bytes) {
  if (bytes.substr(0, 3) == "\xFF\xD8\xFF") return "JPEG";
  return bytes.substr(0, 8) == "\x89PNG\r\n\x1A\n" ? "PNG" : "";
}

std::string quoted(std::string_view bytes) {
  const std::string size = readable_bytes(static_cast<double>(bytes.size()));
  if (*image_kind(bytes) != '\0') return std::string(image_kind(bytes)) + " of " + size;
  if (!is_text(bytes.substr(0, 1000))) return size + " of binary data";
  if (bytes.size() <= kTextLength) return '"' + std::string(bytes) + '"';
  size_t end = kTextLength;
  while (end > 0 && (bytes[end] & 0xC0) == 0x80)
    --end;
  return '"' + std::string(bytes.substr(0, end)) + "...\" of " + size;
}

std::string value_text(const Tensor &tensor, int64_t index) {
  const auto at = static_cast<size_t>(index);
  if (is_bytes(tensor)) return tool::quoted(bytes_at(tensor, index));
  if (tensor.dtype() == TUTTI_DTYPE_I64) return std::to_string(tensor.data<int64_t>()[at]);
  if (tensor.dtype() == TUTTI_DTYPE_U64) return std::to_string(tensor.data<uint64_t>()[at]);
  std::vector<double> numbers;
  read_numbers(tensor, numbers);
  return is_floating(tensor.dtype()) ? readable(numbers[at]) : std::to_string(static_cast<int64_t>(numbers[at]));
}

std::string exact_text(const Tensor &tensor) {
  if (!is_floating(tensor.dtype())) return value_text(tensor, 0);
  std::vector<double> numbers;
  read_numbers(tensor, numbers);
  return exact_number(numbers[0], tensor.dtype());
}

std::string exact_number(double number, int32_t dtype) {
  char text[40];
  std::snprintf(text, sizeof text, dtype == TUTTI_DTYPE_F64 ? "%.17g" : "%.9g", number);
  return text;
}

std::string preview(const Tensor &tensor) {
  std::string text;
  const int64_t count = std::min(tensor.element_count(), kPreviewed);
  for (int64_t i = 0; i < count; ++i)
    text += (i > 0 ? " " : "") + value_text(tensor, i);
  return tensor.element_count() > count ? text + " ..." : text;
}

}  // namespace tutti::tool
