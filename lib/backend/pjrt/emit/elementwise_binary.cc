// SPDX-License-Identifier: Apache-2.0
//
// Ops of two operands with broadcasting, and select. Those of f16 and bf16 are computed in f32.
#include <algorithm>
#include <iterator>
#include <numbers>

#include "backend/pjrt/emit/op_emitters.h"
#include "backend/pjrt/emit/special_functions.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;

namespace {

using BinaryFunction = Value (*)(ProgramText &text, const Value &a, const Value &b);

template <const char *Name>
Value direct(ProgramText &text, const Value &a, const Value &b) {
  return text.binary(Name, a, b);
}

/// Integers divided by 0 give 0, whatever the device makes of it.
Value guarded(ProgramText &text, std::string_view op, const Value &a, const Value &b) {
  if (tensor::is_floating(a.dtype)) return text.binary(op, a, b);
  const Value is_zero = text.compare("EQ", b, 0);
  const Value result = text.binary(op, a, text.select(is_zero, text.like(b, 1), b));
  return text.select(is_zero, text.like(a, 0), result);
}

/// Whether a remainder is not 0 and has another sign than what was divided by.
Value has_other_sign(ProgramText &text, const Value &rest, const Value &b) {
  const Value differs = text.compare("NE", text.compare("LT", rest, 0), text.compare("LT", b, 0));
  return text.binary("and", text.compare("NE", rest, 0), differs);
}

Value mod(ProgramText &text, const Value &a, const Value &b) {
  const Value rest = guarded(text, "remainder", a, b);
  return text.select(has_other_sign(text, rest, b), text.add(rest, b), rest);
}

Value floor_divide(ProgramText &text, const Value &a, const Value &b) {
  if (tensor::is_floating(a.dtype)) {  // a quotient that is rounded up to a whole number would not be floored
    const Value exact = text.div(text.convert(a, tensor::DType::f64), text.convert(b, tensor::DType::f64));
    return text.unary("floor", exact);
  }
  const Value quotient = guarded(text, "divide", a, b);
  const Value rest = guarded(text, "remainder", a, b);
  return text.select(has_other_sign(text, rest, b), text.sub(quotient, text.like(a, 1)), quotient);
}

/// Not-a-number wins, that of a before that of b.
template <const char *Direction>
Value extreme(ProgramText &text, const Value &a, const Value &b) {
  const Value of_numbers = text.select(text.compare(Direction, a, b), a, b);
  if (!tensor::is_floating(a.dtype)) return of_numbers;
  return text.select(text.is_nan(a), a, text.select(text.is_nan(b), b, of_numbers));
}

Value relu_gradient(ProgramText &text, const Value &dy, const Value &y) {
  return text.select(text.compare("GT", y, 0), dy, text.like(dy, 0));
}

Value sigmoid_gradient(ProgramText &text, const Value &dy, const Value &y) {
  return text.mul(text.mul(dy, y), text.sub(text.like(y, 1), y));
}

Value tanh_gradient(ProgramText &text, const Value &dy, const Value &y) {
  return text.mul(dy, text.sub(text.like(y, 1), text.mul(y, y)));
}

constexpr char kAdd[] = "add", kSubtract[] = "subtract", kMultiply[] = "multiply", kDivide[] = "divide",
               kPower[] = "power", kAngle[] = "atan2", kGreaterEqual[] = "GE", kLessEqual[] = "LE";

struct BinaryOp {
  std::string_view name;
  BinaryFunction function;
};

constexpr BinaryOp kBinaryOps[] = {
    {"add", direct<kAdd>},
    {"arc_tangent2", direct<kAngle>},
    {"div", direct<kDivide>},
    {"floor_divide", floor_divide},
    {"maximum", extreme<kGreaterEqual>},
    {"minimum", extreme<kLessEqual>},
    {"mod", mod},
    {"mul", direct<kMultiply>},
    {"pow", direct<kPower>},
    {"relu_gradient", relu_gradient},
    {"sigmoid_gradient", sigmoid_gradient},
    {"sub", direct<kSubtract>},
    {"tanh_gradient", tanh_gradient},
};

struct Direction {
  std::string_view op, direction;
};

constexpr Direction kDirections[] = {{"equal", "EQ"},        {"greater", "GT"},    {"greater_equal", "GE"},
                                     {"less", "LT"},         {"less_equal", "LE"}, {"not_equal", "NE"},
                                     {"logical_and", "and"}, {"logical_or", "or"}, {"logical_xor", "xor"}};

std::string_view direction_of(std::string_view op) {
  return std::ranges::find(kDirections, op, [](const Direction &one) { return one.op; })->direction;
}

struct Operands {
  Value a, b;
};

Operands operands_of(NodeEmitter &node) {
  const Dims &dims = node.output(0).dims;
  return {node.text().broadcast_to(node.wide_input(0), dims), node.text().broadcast_to(node.wide_input(1), dims)};
}

Value gelu_slope(ProgramText &text, const Value &x) {
  const double normal = std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;  // 1 / sqrt(2 pi)
  const Value density = text.mul(text.unary("exponential", text.mul(text.mul(x, x), -0.5)), normal);
  return text.add(normal_distribution(text, x), text.mul(x, density));
}

Value approximate_gelu_slope(ProgramText &text, const Value &x) {
  const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  const Value cube = text.mul(text.mul(x, x), x);
  const Value t = hyperbolic_tangent(text, text.mul(text.add(x, text.mul(cube, cubic)), factor));
  // Where 1 − t² is 0, x is large enough; squares of more overflow.
  const Value near = text.binary("maximum", text.binary("minimum", x, text.like(x, 64)), text.like(x, -64));
  const Value slope = text.mul(text.add(text.mul(text.mul(near, near), 3 * cubic), 1), factor);
  const Value rest = text.sub(text.like(t, 1), text.mul(t, t));
  const Value outer = text.mul(text.add(t, 1), 0.5);
  return text.add(outer, text.mul(text.mul(text.mul(near, 0.5), rest), slope));
}

}  // namespace

Status emit_binary(NodeEmitter &node) {
  const BinaryOp *const op =
      std::ranges::find(kBinaryOps, std::string_view(node.node().op), [](const BinaryOp &one) { return one.name; });
  const auto [a, b] = operands_of(node);
  node.set_output(0, op->function(node.text(), a, b));
  return Status();
}

Status emit_comparison(NodeEmitter &node) {
  const auto [a, b] = operands_of(node);
  node.set_output(0, node.text().compare(direction_of(node.node().op), a, b));
  return Status();
}

Status emit_logical(NodeEmitter &node) {
  const auto [a, b] = operands_of(node);
  node.set_output(0, node.text().binary(direction_of(node.node().op), a, b));
  return Status();
}

Status emit_gelu_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GeluGradientAttributes::from(node.node()));
  const auto [dy, x] = operands_of(node);
  ProgramText &text = node.text();
  node.set_output(0, text.mul(dy, attributes.approximate ? approximate_gelu_slope(text, x) : gelu_slope(text, x)));
  return Status();
}

Status emit_select(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Dims &dims = node.output(0).dims;
  const Value condition = text.broadcast_to(node.input(0), dims);
  node.set_output(
      0, text.select(condition, text.broadcast_to(node.input(1), dims), text.broadcast_to(node.input(2), dims)));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
