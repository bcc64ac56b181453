// SPDX-License-Identifier: Apache-2.0
//
// Hyperbolic functions that are made of others, with the gradients that their formulas have, whatever the ops inside
// would make of them; tangent and angles, which are ops.
#include "graph/ops/rules.h"
#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

/// 2 sinh(x / 2), which keeps all digits near 0: the two terms have different signs.
ValueId twice_half_sinh(GraphBuilder &b, ValueId x) {
  return b.sub(b.unary("expm1", b.scale(x, 0.5)), b.unary("expm1", b.scale(x, -0.5)));
}

/// 2 sinh(x / 2) cosh(x / 2): it overflows where the result does only.
ValueId sinh_of(GraphBuilder &b, ValueId x) {
  const ValueId up = b.unary("expm1", b.scale(x, 0.5)), down = b.unary("expm1", b.scale(x, -0.5));
  return b.mul(b.sub(up, down), b.add_scalar(b.scale(b.add(up, down), 0.5), 1));
}

/// 1 + 2 sinh(x / 2)^2.
ValueId cosh_of(GraphBuilder &b, ValueId x) {
  return b.add_scalar(b.scale(b.unary("square", twice_half_sinh(b, x)), 0.5), 1);
}

/// An op of angles, computed in at least f32.
ValueId angle_of(Expansion &e, std::string_view op) {
  GraphBuilder &b = e.builder();
  const tensor::DType own = b.dtype(e.input(0));
  Values wide;
  for (const ValueId input : e.inputs())
    wide.push_back(b.cast(input, graph::ops::statistics_dtype(own)));
  const ValueId made = b.op(op, wide);
  return made == kNoValue ? kNoValue : b.cast(made, own);
}

}  // namespace

ValueId expand_function_tan(Expansion &e) { return e.builder().unary("tangent", e.input(0)); }

ValueId expand_function_sinh(Expansion &e) {
  GraphBuilder &b = e.builder();
  return with_derivative(
      b, e.input(0), [&](ValueId x) { return sinh_of(b, x); }, [&](ValueId x, ValueId) { return cosh_of(b, x); });
}

ValueId expand_function_cosh(Expansion &e) {
  GraphBuilder &b = e.builder();
  return with_derivative(
      b, e.input(0), [&](ValueId x) { return cosh_of(b, x); }, [&](ValueId x, ValueId) { return sinh_of(b, x); });
}

ValueId expand_function_atan(Expansion &e) { return angle_of(e, "arc_tangent"); }

ValueId expand_function_asin(Expansion &e) { return angle_of(e, "arc_sine"); }

ValueId expand_function_acos(Expansion &e) { return angle_of(e, "arc_cosine"); }

ValueId expand_function_atan2(Expansion &e) { return angle_of(e, "arc_tangent2"); }

}  // namespace tutti::impl::nn
