// SPDX-License-Identifier: Apache-2.0
//
// Initializers as models write them: a name, and arguments where it takes some.
//
//   glorot_uniform      orthogonal(0.5)      variance_scaling(scale=2, mode=fan_in, distribution=uniform)
//
// Threads: functions without state.
#ifndef TUTTI_GRAPH_INITIALIZER_H_
#define TUTTI_GRAPH_INITIALIZER_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/model.h"

namespace tutti::impl::graph {

/// An attribute that any InitializerSpec may have: the index of a row that begins with zeros, whatever the others do.
inline constexpr std::string_view kZeroRow = "zero_row";
/// Initializers that models do not write as text: given_values with the attribute of that name, a tensor; and what is
/// computed of the initial value of another variable, the attribute of_variable: column_norms, the norms of its
/// vectors along all axes but the last; left_singular_vector (of as many elements as its last axis) and
/// right_singular_vector (of as many as the others have together), which belong to the largest singular value.
inline constexpr std::string_view kGivenValues = "given_values", kColumnNorms = "column_norms",
                                  kLeftVector = "left_singular_vector", kRightVector = "right_singular_vector",
                                  kOfVariable = "of_variable";
/// Is it computed of another variable?
bool is_derived(std::string_view spec_name);

/// INVALID_ARGUMENT with the names that there are, or the arguments that the initializer takes.
base::Result<InitializerSpec> parse_initializer(std::string_view text);

/// Is it what an InitializerSpec may be called?
bool is_initializer(std::string_view spec_name);
/// As models write them.
const std::vector<std::string> &initializer_names();

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_INITIALIZER_H_
