// SPDX-License-Identifier: Apache-2.0
//
// Constraints of variables (graph/constraint.h) as the last part of their updates. A constraint of norms needs all of a
// variable: then one contributor updates it, and the others have no rows of it.
//
// Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PLAN_WEIGHT_CONSTRAINTS_H_
#define TUTTI_DISTRIBUTE_PLAN_WEIGHT_CONSTRAINTS_H_

#include "graph/builder.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// Dims of what a finish graph's slice has of a variable with a constraint of norms, or that its update takes as a
/// stack of matrices: those of the variable, or of the matrix or stack that its update takes it as, with the first
/// times rows_symbol(variable), which is 1, or 0 where another contributor updates it. Of fewer axes than two: a flat
/// slice.
graph::Dims undivided_dims(const graph::Model &model, const graph::VariableSpec &variable);
/// Does undivided_dims() use that symbol for its constraint?
bool has_constrained_rows(const graph::VariableSpec &variable);

/// A new weight that keeps to the variable's constraint, in the shape that it comes in: that of the variable, or of a
/// slice of it.
graph::ValueId constrained_weight(graph::GraphBuilder &builder, const graph::VariableSpec &variable,
                                  graph::ValueId weight, bool is_slice);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_WEIGHT_CONSTRAINTS_H_
