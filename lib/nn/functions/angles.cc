// SPDX-License-Identifier: Apache-2.0
//
// Trigonometric and hyperbolic functions that are made of others, and their inverses. Each has the gradient that its
// formula has, whatever the ops inside would make of it.
#include <numbers>

#include "graph/ops/rules.h"
#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

using std::numbers::pi;

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

/// The arc tangent of 0 <= r <= 1. Above tan(pi / 8) it is pi / 4 + atan((r - 1) / (r + 1)); of what is left the
/// polynomial of Cephes' atanf is exact to 2e-8, and of f64 one step of Newton's method in the angle squares that.
ValueId arc_tangent(GraphBuilder &b, ValueId r) {
  constexpr double kFactors[] = {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1};
  const ValueId is_far = b.op("greater", {r, number(b, 0.41421356237309503, r)});
  const ValueId t = b.select(is_far, b.div(b.add_scalar(r, -1), b.add_scalar(r, 1)), r);
  const ValueId z = b.unary("square", t);
  ValueId sum = number(b, kFactors[0], r);
  for (size_t i = 1; i < std::size(kFactors); ++i)
    sum = b.add_scalar(b.mul(sum, z), kFactors[i]);
  ValueId angle = b.add(t, b.mul(t, b.mul(z, sum)));
  if (b.dtype(r) == tensor::DType::f64) {
    const ValueId sine = b.unary("sin", angle), cosine = b.unary("cos", angle);
    angle = b.add(angle, b.div(b.sub(b.mul(t, cosine), sine), b.add(cosine, b.mul(t, sine))));
  }
  return b.add(angle, b.select(is_far, number(b, pi / 4, r), number(b, 0, r)));
}

/// Is x below 0, or the zero with that sign, whose reciprocal is?
ValueId has_sign(GraphBuilder &b, ValueId x) {
  return b.op("less", {b.op("minimum", {x, b.unary("reciprocal", x)}), number(b, 0, x)});
}

/// The angle of (x, y), of equal shapes.
ValueId angle_of(GraphBuilder &b, ValueId y, ValueId x) {
  const ValueId height = b.unary("abs", y), width = b.unary("abs", x);
  const ValueId large = b.op("maximum", {height, width}), small = b.op("minimum", {height, width});
  const ValueId zero = number(b, 0, x), one = number(b, 1, x);
  const ValueId is_infinite = b.op("equal", {small, number(b, kInfinity, x)});
  ValueId ratio = b.div(small, b.select(b.op("equal", {large, zero}), one, large));
  ratio = b.select(is_infinite, one, ratio);
  ValueId angle = arc_tangent(b, ratio);
  angle = b.select(b.op("greater", {height, width}), b.sub(number(b, pi / 2, x), angle), angle);
  angle = b.select(has_sign(b, x), b.sub(number(b, pi, x), angle), angle);
  return b.select(has_sign(b, y), b.neg(angle), angle);
}

/// The gradients for y and x; 0 at the origin. Scaled by the larger one, so that no square overflows.
Values angle_gradients(GraphBuilder &b, ValueId y, ValueId x, ValueId dy) {
  const ValueId zero = number(b, 0, x), one = number(b, 1, x);
  const ValueId large = b.op("maximum", {b.unary("abs", y), b.unary("abs", x)});
  const ValueId safe = b.select(b.op("equal", {large, zero}), one, large);
  const ValueId height = b.div(y, safe), width = b.div(x, safe);
  const ValueId sum = b.add(b.unary("square", height), b.unary("square", width));
  const ValueId square = b.select(b.op("equal", {sum, zero}), one, sum);
  const ValueId upstream = b.div(dy, safe);
  return {b.mul(upstream, b.div(width, square)), b.mul(upstream, b.div(b.neg(height), square))};
}

/// sqrt(1 - x^2), without loss near 1.
ValueId other_side(GraphBuilder &b, ValueId x) {
  return b.unary("sqrt", b.mul(b.add_scalar(b.neg(x), 1), b.add_scalar(x, 1)));
}

/// A part of the arc sine of |x|: up to 1/2 the arc sine itself, above that of sqrt((1 - |x|) / 2), twice which is the
/// arc cosine of |x|. Of arguments up to 1/2 the polynomial of Cephes' asinf is exact to 1e-7, and of f64 one step of
/// Newton's method squares that.
struct ArcSine {
  ValueId is_near_one, angle;
};

ArcSine arc_sine(GraphBuilder &b, ValueId x) {
  constexpr double kFactors[] = {4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1};
  const ValueId size = b.unary("abs", x), is_near_one = b.op("greater", {size, number(b, 0.5, x)});
  const ValueId square = b.select(is_near_one, b.scale(b.add_scalar(b.neg(size), 1), 0.5), b.unary("square", size));
  const ValueId sine = b.select(is_near_one, b.unary("sqrt", square), size);
  ValueId sum = number(b, kFactors[0], x);
  for (size_t i = 1; i < std::size(kFactors); ++i)
    sum = b.add_scalar(b.mul(sum, square), kFactors[i]);
  ValueId angle = b.add(sine, b.mul(sine, b.mul(square, sum)));
  if (b.dtype(x) == tensor::DType::f64)
    angle = b.add(angle, b.div(b.sub(sine, b.unary("sin", angle)), b.unary("cos", angle)));
  return {is_near_one, angle};
}

ValueId asin_of(GraphBuilder &b, ValueId x) {
  const ArcSine part = arc_sine(b, x);
  const ValueId rest = b.add_scalar(b.scale(part.angle, -2), pi / 2);
  const ValueId whole = b.select(part.is_near_one, rest, part.angle);
  return b.select(b.op("less", {x, number(b, 0, x)}), b.neg(whole), whole);
}

ValueId acos_of(GraphBuilder &b, ValueId x) {
  const ArcSine part = arc_sine(b, x);
  const ValueId is_below = b.op("less", {x, number(b, 0, x)}), twice = b.scale(part.angle, 2);
  const ValueId near_one = b.select(is_below, b.add_scalar(b.neg(twice), pi), twice);
  const ValueId signed_angle = b.select(is_below, b.neg(part.angle), part.angle);
  return b.select(part.is_near_one, near_one, b.add_scalar(b.neg(signed_angle), pi / 2));
}

/// An angle of x with a derivative, computed in at least f32.
ValueId angle_function(Expansion &e, const std::function<ValueId(ValueId)> &f,
                       const std::function<ValueId(ValueId x)> &derivative) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const ValueId made = with_derivative(b, b.cast(x, graph::ops::statistics_dtype(b.dtype(x))), f,
                                       [&](ValueId wide, ValueId) { return derivative(wide); });
  return made == kNoValue ? kNoValue : b.cast(made, b.dtype(x));
}

}  // namespace

ValueId expand_function_tan(Expansion &e) {
  GraphBuilder &b = e.builder();
  return with_derivative(
      b, e.input(0), [&](ValueId x) { return b.div(b.unary("sin", x), b.unary("cos", x)); },
      [&](ValueId, ValueId y) { return b.add_scalar(b.unary("square", y), 1); });
}

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

ValueId expand_function_atan(Expansion &e) {
  GraphBuilder &b = e.builder();
  const auto f = [&](ValueId x) {
    const ValueId size = b.unary("abs", x), one = number(b, 1, x);
    const ValueId is_large = b.op("greater", {size, one});
    const ValueId angle = arc_tangent(b, b.select(is_large, b.unary("reciprocal", size), size));
    const ValueId whole = b.select(is_large, b.sub(number(b, pi / 2, x), angle), angle);
    return b.select(b.op("less", {x, number(b, 0, x)}), b.neg(whole), whole);
  };
  return angle_function(e, f, [&](ValueId x) { return b.unary("reciprocal", b.add_scalar(b.unary("square", x), 1)); });
}

ValueId expand_function_asin(Expansion &e) {
  GraphBuilder &b = e.builder();
  return angle_function(
      e, [&](ValueId x) { return asin_of(b, x); }, [&](ValueId x) { return b.unary("reciprocal", other_side(b, x)); });
}

ValueId expand_function_acos(Expansion &e) {
  GraphBuilder &b = e.builder();
  return angle_function(
      e, [&](ValueId x) { return acos_of(b, x); },
      [&](ValueId x) { return b.neg(b.unary("reciprocal", other_side(b, x))); });
}

ValueId expand_function_atan2(Expansion &e) {
  GraphBuilder &b = e.builder();
  const tensor::DType own = b.dtype(e.input(0)), wide = graph::ops::statistics_dtype(own);
  const auto dims = graph::ops::broadcast_dims(b.dims(e.input(0)), b.dims(e.input(1)));
  if (!dims) {
    return e.fail(base::concat(graph::to_string(b.dims(e.input(0))), " and ", graph::to_string(b.dims(e.input(1))),
                               " do not broadcast"));
  }
  const ValueId y = b.broadcast_to(b.cast(e.input(0), wide), *dims),
                x = b.broadcast_to(b.cast(e.input(1), wide), *dims);
  const Values made = b.custom_gradient(
      {y, x}, [](GraphBuilder &g, const Values &p) { return Values{angle_of(g, p[0], p[1])}; },
      [](GraphBuilder &g, const Values &p) { return angle_gradients(g, p[0], p[1], p[3]); });
  return b.ok() ? b.cast(made.front(), own) : kNoValue;
}

}  // namespace tutti::impl::nn
