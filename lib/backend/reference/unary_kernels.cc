// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops of one operand, and cast.
#include <algorithm>
#include <cmath>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;

namespace {

/// `parameter` is the op's one attribute (alpha, approximate), 0 for the others.
using FloatFunction = double (*)(double x, double parameter);
using IntegerFunction = int64_t (*)(int64_t x);

double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double gelu(double x, double is_approximate) {
  if (is_approximate == 0) return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
  const double inner = M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

int64_t negate(int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }

struct UnaryOp {
  std::string_view name;
  FloatFunction floating;
  IntegerFunction integer;  // null where the op takes floats only
};

constexpr UnaryOp kUnaryOps[] = {
    {"abs", [](double x, double) { return std::fabs(x); }, [](int64_t x) { return x < 0 ? negate(x) : x; }},
    {"arc_cosine", [](double x, double) { return std::acos(x); }, nullptr},
    {"arc_sine", [](double x, double) { return std::asin(x); }, nullptr},
    {"arc_tangent", [](double x, double) { return std::atan(x); }, nullptr},
    {"ceil", [](double x, double) { return std::ceil(x); }, nullptr},
    {"cos", [](double x, double) { return std::cos(x); }, nullptr},
    {"elu", [](double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }, nullptr},
    {"erf", [](double x, double) { return std::erf(x); }, nullptr},
    {"exp", [](double x, double) { return std::exp(x); }, nullptr},
    {"expm1", [](double x, double) { return std::expm1(x); }, nullptr},
    {"floor", [](double x, double) { return std::floor(x); }, nullptr},
    {"gelu", gelu, nullptr},
    {"identity", [](double x, double) { return x; }, [](int64_t x) { return x; }},
    {"leaky_relu", [](double x, double alpha) { return x < 0 ? alpha * x : x; }, nullptr},
    {"log", [](double x, double) { return std::log(x); }, nullptr},
    {"log1p", [](double x, double) { return std::log1p(x); }, nullptr},
    {"neg", [](double x, double) { return -x; }, negate},
    {"reciprocal", [](double x, double) { return 1 / x; }, nullptr},
    {"relu", [](double x, double) { return x < 0 ? 0 : x; }, [](int64_t x) { return std::max<int64_t>(x, 0); }},
    {"round", [](double x, double) { return std::nearbyint(x); }, nullptr},
    {"rsqrt", [](double x, double) { return 1 / std::sqrt(x); }, nullptr},
    {"sigmoid", [](double x, double) { return sigmoid(x); }, nullptr},
    {"sign", [](double x, double) { return static_cast<double>((x > 0) - (x < 0)); },
     [](int64_t x) { return static_cast<int64_t>((x > 0) - (x < 0)); }},
    {"silu", [](double x, double) { return x * sigmoid(x); }, nullptr},
    {"sin", [](double x, double) { return std::sin(x); }, nullptr},
    {"softplus", [](double x, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }, nullptr},
    {"sqrt", [](double x, double) { return std::sqrt(x); }, nullptr},
    {"square", [](double x, double) { return x * x; },
     [](int64_t x) { return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)); }},
    {"stop_gradient", [](double x, double) { return x; }, [](int64_t x) { return x; }},
    {"tangent", [](double x, double) { return std::tan(x); }, nullptr},
    {"tanh", [](double x, double) { return std::tanh(x); }, nullptr},
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

Result<Kernel> make_unary(KernelRequest &request) {
  const UnaryOp *const op = std::find_if(std::begin(kUnaryOps), std::end(kUnaryOps),
                                         [&](const UnaryOp &one) { return one.name == request.node.op; });
  TUTTI_ASSIGN(const double parameter, read_parameter(request.node));
  const tensor::DType dtype = request.input(0).dtype;
  const int64_t count = request.output(0).elements;
  if (tensor::is_floating(dtype)) {
    return Kernel([=, function = op->floating](const Frame &frame) {
      for_runs(count, [&](int64_t first, int64_t length) {
        double x[kRun];
        load(dtype, frame.input(0), first, 1, length, x);
        for (int64_t i = 0; i < length; ++i)
          x[i] = function(x[i], parameter);
        store(dtype, frame.output(0), first, length, x);
      });
      return Status();
    });
  }
  if (op->integer == nullptr) return base::unimplemented("op '", op->name, "' on ", dtype);
  return Kernel([=, function = op->integer](const Frame &frame) {
    for_runs(count, [&](int64_t first, int64_t length) {
      int64_t x[kRun];
      load(dtype, frame.input(0), first, 1, length, x);
      for (int64_t i = 0; i < length; ++i)
        x[i] = function(x[i]);
      store(dtype, frame.output(0), first, length, x);
    });
    return Status();
  });
}

Result<Kernel> make_cast(KernelRequest &request) {
  const tensor::DType from = request.input(0).dtype, to = request.output(0).dtype;
  const int64_t count = request.output(0).elements;
  return Kernel([=](const Frame &frame) {
    visit_arithmetic(from, [&]<typename C>(C) {
      for_runs(count, [&](int64_t first, int64_t length) {
        C x[kRun];
        load(from, frame.input(0), first, 1, length, x);
        store(to, frame.output(0), first, length, x);
      });
    });
    return Status();
  });
}

Result<Kernel> make_logical_not(KernelRequest &request) {
  const int64_t count = request.output(0).elements;
  return Kernel([=](const Frame &frame) {
    for (int64_t i = 0; i < count; ++i)
      frame.output_as<bool>(0)[i] = !frame.input_as<bool>(0)[i];
    return Status();
  });
}

Result<Kernel> make_is_finite(KernelRequest &request) {
  const tensor::DType dtype = request.input(0).dtype;
  const int64_t count = request.output(0).elements;
  return Kernel([=](const Frame &frame) {
    for_runs(count, [&](int64_t first, int64_t length) {
      double x[kRun];
      load(dtype, frame.input(0), first, 1, length, x);
      for (int64_t i = 0; i < length; ++i)
        frame.output_as<bool>(0)[first + i] = std::isfinite(x[i]);
    });
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
