// SPDX-License-Identifier: Apache-2.0
//
// Field: one component as a user writes it for a format that does not say itself what it holds.
//
//   "label: i64"              one number, which must be there
//   "age: f32 = -1"           -1 where it is missing
//   "box: f32[4]"             four numbers
//   "words: bytes[?]"         any number of texts; none where it is missing
//   "points: f32[?, 3]"       any number of rows of three
//
// Threads: pure functions.
#ifndef TUTTI_DATA_FORMAT_FIELD_H_
#define TUTTI_DATA_FORMAT_FIELD_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/element/element.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

struct Field {
  ComponentSpec component;
  /// What stands for a missing value; fills the whole shape.
  std::optional<std::string> default_text;
  /// The default as a tensor, if the shape is known; a field whose first dimension is not has none or an empty one.
  tensor::Tensor default_value;

  /// Is the first dimension unknown?
  bool is_variable() const;
  /// Elements of the shape, without an unknown first dimension.
  int64_t inner_elements() const;
};

/// INVALID_ARGUMENT quoting the text and telling what was expected. Only the first dimension may be unknown ("?").
base::Result<Field> parse_field(std::string_view text);

/// Gives the components of these names the roles label and weight. INVALID_ARGUMENT for a name that is none.
base::Status set_roles(ElementSpec &spec, const std::vector<std::string> &labels,
                       const std::vector<std::string> &weights);

/// Writes the number that a text says as an element of `dtype` (not bytes) to `target`. Decimal, for floats also nan
/// and inf; for booleans 0, 1, true, false; white space around it is allowed. False when it is none or does not fit.
bool write_number(std::string_view text, tensor::DType dtype, void *target);
/// Writes an integer; false when it does not fit, or the type is no integer or boolean.
bool write_integer(int64_t value, tensor::DType dtype, void *target);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_FIELD_H_
