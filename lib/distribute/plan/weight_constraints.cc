// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/weight_constraints.h"

#include "distribute/plan/shared_factors.h"
#include "graph/update_rule.h"

namespace tutti::impl::distribute {

using graph::Dim;
using graph::Dims;
using graph::GraphBuilder;
using graph::ValueId;
using graph::VariableSpec;
using tensor::DType;

namespace {

/// As in Keras.
constexpr double kEpsilon = 1e-7;

/// 1 where the slice has the variable, else 0.
Dim share_of(const VariableSpec &variable) { return Dim::symbol(rows_symbol(variable.name)); }

/// Of the variable or its slice, with an axis at least.
Dims whole_dims(const VariableSpec &variable, bool is_slice) {
  if (!has_constrained_rows(variable))
    return {is_slice ? Dim::symbol("slice." + variable.name) : Dim(variable.dims.empty() ? 1 : variable.dims[0])};
  Dims dims = graph::to_dims(variable.dims);
  if (is_slice) dims[0] = share_of(variable) * dims[0];
  return dims;
}

/// What each of the vectors along the axes is multiplied by; those axes are kept, with length 1.
ValueId factor_of(GraphBuilder &b, const graph::ConstraintSpec &constraint, ValueId weight) {
  const std::vector<int64_t> axes = constraint.axes.empty() ? std::vector<int64_t>{0} : constraint.axes;
  const ValueId norm = b.unary("sqrt", b.reduce_sum(b.unary("square", weight), axes, true));
  const ValueId wanted = constraint.kind == "unit_norm"
                             ? b.constant(1, b.dtype(norm))
                             : b.op("minimum", {norm, b.constant(constraint.limit, b.dtype(norm))});
  return b.div(wanted, b.add_scalar(norm, kEpsilon));
}

}  // namespace

bool has_constrained_rows(const VariableSpec &variable) {
  return variable.constraint.has_norms() && variable.dims.size() >= 2;
}

Dims undivided_dims(const graph::Model &model, const VariableSpec &variable) {
  const auto matrix = graph::matrix_of(model, variable);
  if (!matrix) return whole_dims(variable, true);
  Dims dims = graph::to_dims(*matrix);
  dims[0] = share_of(variable) * dims[0];
  return dims;
}

ValueId constrained_weight(GraphBuilder &b, const VariableSpec &variable, ValueId weight, bool is_slice) {
  if (!variable.constraint.is_on() || !b.ok()) return weight;
  const DType dtype = b.dtype(weight);
  if (!variable.constraint.has_norms()) return b.op("maximum", {weight, b.constant(0, dtype)});
  // Squares of halves are f32.
  const ValueId wide = tensor::size_bytes(dtype) < 4 ? b.cast(weight, DType::f32) : weight;
  const ValueId shaped = b.reshape(wide, whole_dims(variable, is_slice));
  const ValueId kept = b.mul(shaped, factor_of(b, variable.constraint, shaped));
  return b.reshape(b.cast(kept, dtype), b.dims(weight));
}

}  // namespace tutti::impl::distribute
