// SPDX-License-Identifier: Apache-2.0
//
// Tensors as people want to read them.
#ifndef TUTTI_TOOL_CONSOLE_TENSOR_VALUES_H_
#define TUTTI_TOOL_CONSOLE_TENSOR_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti::tool {

/// "f32", "bytes", ...
const char *dtype_name(int32_t dtype);
/// "[28, 28]", "[]" for a scalar.
std::string shape_text(const Tensor &tensor);
bool is_bytes(const Tensor &tensor);
bool is_floating(int32_t dtype);
/// Of an element; 0 for bytes, which have a length each.
int64_t dtype_bytes(int32_t dtype);
/// All elements as numbers, in row-major order; 64-bit integers are rounded. Not for bytes.
void read_numbers(const Tensor &tensor, std::vector<double> &numbers);
/// Element `index` of a tensor of bytes; lent while the tensor lives.
std::string_view bytes_at(const Tensor &tensor, int64_t index);

/// A tensor of bytes, a copy of the texts.
Tensor make_texts(const std::vector<int64_t> &dims, const std::vector<std::string_view> &texts);

/// "JPEG" or "PNG" by how the bytes begin, else "".
const char *image_kind(std::string_view bytes);
/// One element by its row-major index: `0.5`, `-3`, `"a text"`.
std::string value_text(const Tensor &tensor, int64_t index);
/// The one number of a tensor, with as many digits as tell it from all others of its type.
std::string exact_text(const Tensor &tensor);
/// The same of a number of a floating type.
std::string exact_number(double number, int32_t dtype);
/// The first elements: `0.5 1 -3 ...`, `"a text"`, `JPEG of 12.3 kB`.
std::string preview(const Tensor &tensor);
/// A text in quotes, cut where it is long; of bytes that are no text, how many they are.
std::string quoted(std::string_view bytes);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONSOLE_TENSOR_VALUES_H_
