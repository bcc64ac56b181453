// SPDX-License-Identifier: Apache-2.0
//
// Constraints as models write them: a name, and arguments where it takes some.
//
//   non_negative      max_norm(3)      unit_norm(axes=0 1)      max_norm(limit=0.5, axes=1)
//
// Norms are of the vectors along axes: unless they are given, all but the last, which are the inputs of one unit; of a
// variable with one axis, all of it. What a variable is after each update of it (as in Keras, epsilon = 1e-7):
//
//   max_norm       w * min(norm, limit) / (norm + epsilon)
//   unit_norm      w / (norm + epsilon)
//   non_negative   max(w, 0)
//
// Threads: functions without state.
#ifndef TUTTI_GRAPH_CONSTRAINT_H_
#define TUTTI_GRAPH_CONSTRAINT_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/model.h"

namespace tutti::impl::graph {

/// "none" gives none. INVALID_ARGUMENT with the names that there are, or the arguments that the constraint takes.
base::Result<ConstraintSpec> parse_constraint(std::string_view text);
/// For a variable of so many axes, none of them negative or left out. INVALID_ARGUMENT for axes that it does not have.
base::Result<ConstraintSpec> settle_axes(ConstraintSpec constraint, size_t rank);

/// As models write them, without "none".
const std::vector<std::string> &constraint_names();

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_CONSTRAINT_H_
