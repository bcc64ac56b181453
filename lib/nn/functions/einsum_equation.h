// SPDX-License-Identifier: Apache-2.0
//
// The equation of einsum: which axis of each operand has which label. A label is a letter, or stands for an axis of
// '...', those counted from the last one.
#ifndef TUTTI_NN_FUNCTIONS_EINSUM_EQUATION_H_
#define TUTTI_NN_FUNCTIONS_EINSUM_EQUATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tutti::impl::nn {

using Label = int32_t;
using Labels = std::vector<Label>;

/// The first label of an axis of '...'; letters are below.
inline constexpr Label kEllipsis = 1000;

struct EinsumEquation {
  std::vector<Labels> operands;  ///< one for each, one label for each axis
  Labels result;
};

/// An error that says what is wrong with the text, or does not fit the ranks of the operands.
base::Result<EinsumEquation> parse_equation(std::string_view text, const std::vector<size_t> &ranks);

/// "i", "..." for messages.
std::string to_text(Label label);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_FUNCTIONS_EINSUM_EQUATION_H_
