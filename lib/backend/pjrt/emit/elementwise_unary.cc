// SPDX-License-Identifier: Apache-2.0
//
// Ops of one operand, element by element; those of f16 and bf16 are computed in f32.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "backend/pjrt/emit/op_emitters.h"
#include "backend/pjrt/emit/special_functions.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;

namespace {

/// `parameter` is the op's one attribute (alpha, approximate), 0 for the others.
using UnaryFunction = Value (*)(ProgramText &text, const Value &x, double parameter);

/// An operation of StableHLO by its name.
template <const char *Name>
Value direct_unary(ProgramText &text, const Value &x, double) {
  return text.unary(Name, x);
}

Value same(ProgramText &, const Value &x, double) { return x; }

Value sigmoid(ProgramText &text, const Value &x, double) { return text.unary("logistic", x); }

Value sign(ProgramText &text, const Value &x, double) {
  const Value zero = text.like(x, 0), one = text.like(x, 1);
  const Value is_negative = text.compare("LT", x, zero), is_positive = text.compare("GT", x, zero);
  const Value below = tensor::category(x.dtype) == tensor::DTypeCategory::unsigned_integer
                          ? zero
                          : text.select(is_negative, text.like(x, -1), zero);
  return text.select(is_positive, one, below);
}

Value absolute(ProgramText &text, const Value &x, double) {
  return tensor::category(x.dtype) == tensor::DTypeCategory::unsigned_integer ? x : text.unary("abs", x);
}

Value elu(ProgramText &text, const Value &x, double alpha) {
  const Value below = text.mul(text.unary("exponential_minus_one", x), alpha);
  return text.select(text.compare("GT", x, 0), x, below);
}

Value leaky_relu(ProgramText &text, const Value &x, double alpha) {
  return text.select(text.compare("LT", x, 0), text.mul(x, alpha), x);
}

Value relu(ProgramText &text, const Value &x, double) {
  return text.select(text.compare("LT", x, 0), text.like(x, 0), x);
}

Value gelu(ProgramText &text, const Value &x, double is_approximate) {
  if (is_approximate == 0) return text.mul(x, normal_distribution(text, x));
  const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Value cube = text.mul(text.mul(x, x), x);
  const Value inner = text.mul(text.add(x, text.mul(cube, 0.044715)), factor);
  return text.mul(text.mul(x, 0.5), text.add(hyperbolic_tangent(text, inner), 1));
}

Value reciprocal(ProgramText &text, const Value &x, double) { return text.div(text.like(x, 1), x); }
Value rsqrt(ProgramText &text, const Value &x, double) { return text.div(text.like(x, 1), text.unary("sqrt", x)); }
Value silu(ProgramText &text, const Value &x, double) { return text.mul(x, sigmoid(text, x, 0)); }
Value square(ProgramText &text, const Value &x, double) { return text.mul(x, x); }
Value tanh(ProgramText &text, const Value &x, double) { return hyperbolic_tangent(text, x); }
Value erf(ProgramText &text, const Value &x, double) { return error_function(text, x); }

// Angles as those of points, for StableHLO of this age has atan2 alone: of (1, x), and of points on the unit circle.
Value arc_tangent(ProgramText &text, const Value &x, double) { return text.binary("atan2", x, text.like(x, 1)); }

/// sqrt(1 − x²), without loss near 1; not a number beyond.
Value other_side(ProgramText &text, const Value &x) {
  const Value below = text.sub(text.like(x, 1), x), above = text.add(x, 1);
  return text.unary("sqrt", text.mul(below, above));
}

Value arc_sine(ProgramText &text, const Value &x, double) { return text.binary("atan2", x, other_side(text, x)); }
Value arc_cosine(ProgramText &text, const Value &x, double) { return text.binary("atan2", other_side(text, x), x); }

Value tangent(ProgramText &text, const Value &x, double) {
  return text.div(text.unary("sine", x), text.unary("cosine", x));
}

Value softplus(ProgramText &text, const Value &x, double) {
  const Value falling = text.unary("exponential", text.unary("negate", text.unary("abs", x)));
  const Value above = text.binary("maximum", x, text.like(x, 0));
  return text.add(above, text.unary("log_plus_one", falling));
}

constexpr char kCeil[] = "ceil", kCosine[] = "cosine", kExponential[] = "exponential",
               kExponentialMinusOne[] = "exponential_minus_one", kFloor[] = "floor", kLog[] = "log",
               kLogPlusOne[] = "log_plus_one", kNegate[] = "negate", kRound[] = "round_nearest_even", kSine[] = "sine",
               kSqrt[] = "sqrt";

struct UnaryOp {
  std::string_view name;
  UnaryFunction function;
};

constexpr UnaryOp kUnaryOps[] = {
    {"abs", absolute},
    {"arc_cosine", arc_cosine},
    {"arc_sine", arc_sine},
    {"arc_tangent", arc_tangent},
    {"ceil", direct_unary<kCeil>},
    {"cos", direct_unary<kCosine>},
    {"elu", elu},
    {"erf", erf},
    {"exp", direct_unary<kExponential>},
    {"expm1", direct_unary<kExponentialMinusOne>},
    {"floor", direct_unary<kFloor>},
    {"gelu", gelu},
    {"identity", same},
    {"leaky_relu", leaky_relu},
    {"log", direct_unary<kLog>},
    {"log1p", direct_unary<kLogPlusOne>},
    {"neg", direct_unary<kNegate>},
    {"reciprocal", reciprocal},
    {"relu", relu},
    {"round", direct_unary<kRound>},
    {"rsqrt", rsqrt},
    {"sigmoid", sigmoid},
    {"sign", sign},
    {"silu", silu},
    {"sin", direct_unary<kSine>},
    {"softplus", softplus},
    {"sqrt", direct_unary<kSqrt>},
    {"square", square},
    {"stop_gradient", same},
    {"tangent", tangent},
    {"tanh", tanh},
};

Result<double> read_parameter(const graph::Node &node) {
  if (node.op == "elu") {
    TUTTI_ASSIGN(const auto attributes, graph::ops::EluAttributes::from(node));
    return attributes.alpha;
  }
  if (node.op == "leaky_relu") {
    TUTTI_ASSIGN(const auto attributes, graph::ops::LeakyReluAttributes::from(node));
    return attributes.alpha;
  }
  if (node.op == "gelu") {
    TUTTI_ASSIGN(const auto attributes, graph::ops::GeluAttributes::from(node));
    return attributes.approximate ? 1.0 : 0.0;
  }
  return 0.0;
}

}  // namespace

Status emit_unary(NodeEmitter &node) {
  const UnaryOp *const op =
      std::ranges::find(kUnaryOps, std::string_view(node.node().op), [](const UnaryOp &one) { return one.name; });
  TUTTI_ASSIGN(const double parameter, read_parameter(node.node()));
  // What is moved only is not widened: the bits of what is not a number stay.
  const Value x = op->function == same ? node.input(0) : node.wide_input(0);
  node.set_output(0, op->function(node.text(), x, parameter));
  return Status();
}

Status emit_is_finite(NodeEmitter &node) {
  node.set_output(0,
                  node.text().op("is_finite", {node.wide_input(0)}, "", tensor::DType::boolean, node.output(0).dims));
  return Status();
}

Status emit_logical_not(NodeEmitter &node) {
  node.set_output(0, node.text().unary("not", node.input(0)));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
