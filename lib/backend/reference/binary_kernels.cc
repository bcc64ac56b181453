// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops of two operands with broadcasting, comparisons, select, and the gradients of activations.
#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "backend/reference/strided.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// Integer arithmetic that wraps; floats as they are.
template <typename C, typename Function>
C wrapped(C a, C b, Function function) {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(function(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return function(a, b);
  }
}

struct Add {
  template <typename C>
  static C apply(C a, C b) {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Sub {
  template <typename C>
  static C apply(C a, C b) {
    return wrapped(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Mul {
  template <typename C>
  static C apply(C a, C b) {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Div {
  template <typename C>
  static C apply(C a, C b) {
    if constexpr (std::is_integral_v<C>) {
      return 0;  // div takes floats only
    } else {
      return a / b;
    }
  }
};
struct Pow {
  template <typename C>
  static C apply(C a, C b) {
    return static_cast<C>(std::pow(a, b));
  }
};
struct ArcTangent2 {
  template <typename C>
  static C apply(C y, C x) {
    return static_cast<C>(std::atan2(y, x));
  }
};
struct Maximum {
  template <typename C>
  static C apply(C a, C b) {
    if (a != a) return a;
    return b != b || b > a ? b : a;
  }
};
struct Minimum {
  template <typename C>
  static C apply(C a, C b) {
    if (a != a) return a;
    return b != b || b < a ? b : a;
  }
};
struct FloorDivide {
  template <typename C>
  static C apply(C a, C b) {
    if constexpr (!std::is_integral_v<C>) {
      return std::floor(a / b);
    } else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<C>) {
        if (b == -1) return static_cast<C>(-static_cast<uint64_t>(a));
      }
      const C quotient = a / b;
      return quotient - static_cast<C>(a % b != 0 && (a < 0) != (b < 0));
    }
  }
};
struct Mod {
  template <typename C>
  static C apply(C a, C b) {
    if constexpr (!std::is_integral_v<C>) {
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    } else {
      if (b == 0 || b == static_cast<C>(-1)) return b == 0 || std::is_signed_v<C> ? 0 : a % b;
      const C rest = a % b;
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<C>(rest + b) : rest;
    }
  }
};
struct ReluGradient {
  template <typename C>
  static C apply(C dy, C y) {
    return y > 0 ? dy : 0;
  }
};
struct SigmoidGradient {
  template <typename C>
  static C apply(C dy, C y) {
    return dy * y * (1 - y);
  }
};
struct TanhGradient {
  template <typename C>
  static C apply(C dy, C y) {
    return dy * (1 - y * y);
  }
};
struct GeluGradient {
  template <typename C>
  static C apply(C dy, C x) {
    const double v = static_cast<double>(x), density = std::exp(-0.5 * v * v) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
    return static_cast<C>(static_cast<double>(dy) * (0.5 * (1 + std::erf(v * M_SQRT1_2)) + v * density));
  }
};
struct ApproximateGeluGradient {
  template <typename C>
  static C apply(C dy, C x) {
    const double v = static_cast<double>(x), factor = M_2_SQRTPI * M_SQRT1_2;
    const double t = std::tanh(factor * (v + 0.044715 * v * v * v));
    // Where 1 - t * t is 0, v is large enough; squares of more overflow.
    const double near = std::clamp(v, -64.0, 64.0), slope = factor * (1 + 3 * 0.044715 * near * near);
    return static_cast<C>(static_cast<double>(dy) * (0.5 * (1 + t) + 0.5 * near * (1 - t * t) * slope));
  }
};
struct Equal {
  template <typename C>
  static bool apply(C a, C b) {
    return a == b;
  }
};
struct NotEqual {
  template <typename C>
  static bool apply(C a, C b) {
    return a != b;
  }
};
struct Less {
  template <typename C>
  static bool apply(C a, C b) {
    return a < b;
  }
};
struct LessEqual {
  template <typename C>
  static bool apply(C a, C b) {
    return a <= b;
  }
};
struct Greater {
  template <typename C>
  static bool apply(C a, C b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename C>
  static bool apply(C a, C b) {
    return a >= b;
  }
};
struct LogicalAnd {
  template <typename C>
  static bool apply(C a, C b) {
    return a != 0 && b != 0;
  }
};
struct LogicalOr {
  template <typename C>
  static bool apply(C a, C b) {
    return a != 0 || b != 0;
  }
};
struct LogicalXor {
  template <typename C>
  static bool apply(C a, C b) {
    return (a != 0) != (b != 0);
  }
};

/// Operands of a broadcasting op: 0 = result, then the inputs.
StridedWalk make_walk(const KernelRequest &request) {
  StridedWalk walk(request.output(0).dims);
  walk.add_dense();
  for (size_t i = 0; i < request.input_count(); ++i)
    walk.add(broadcast_strides(request.input(i).dims, request.output(0).dims));
  walk.finish();
  return walk;
}

template <typename Op, typename C>
void apply_runs(const StridedWalk &walk, DType dtype, DType result, const Frame &frame) {
  walk.run([&](const int64_t *offsets, int64_t count) {
    for_runs(count, [&](int64_t first, int64_t length) {
      C a[kRun], b[kRun];
      load(dtype, frame.input(0), offsets[1] + first * walk.step(1), walk.step(1), length, a);
      load(dtype, frame.input(1), offsets[2] + first * walk.step(2), walk.step(2), length, b);
      for (int64_t i = 0; i < length; ++i)
        a[i] = static_cast<C>(Op::template apply<C>(a[i], b[i]));
      store(result, frame.output(0), offsets[0] + first, length, a);
    });
  });
}

template <typename Op>
Result<Kernel> make(KernelRequest &request) {
  const DType dtype = request.input(0).dtype, result = request.output(0).dtype;
  return Kernel([walk = make_walk(request), dtype, result](const Frame &frame) {
    visit_arithmetic(dtype, [&]<typename C>(C) { apply_runs<Op, C>(walk, dtype, result, frame); });
    return Status();
  });
}

struct BinaryOp {
  std::string_view name;
  KernelFactory factory;
};

constexpr BinaryOp kBinaryOps[] = {
    {"add", make<Add>},
    {"arc_tangent2", make<ArcTangent2>},
    {"div", make<Div>},
    {"equal", make<Equal>},
    {"floor_divide", make<FloorDivide>},
    {"greater", make<Greater>},
    {"greater_equal", make<GreaterEqual>},
    {"less", make<Less>},
    {"less_equal", make<LessEqual>},
    {"logical_and", make<LogicalAnd>},
    {"logical_or", make<LogicalOr>},
    {"logical_xor", make<LogicalXor>},
    {"maximum", make<Maximum>},
    {"minimum", make<Minimum>},
    {"mod", make<Mod>},
    {"mul", make<Mul>},
    {"not_equal", make<NotEqual>},
    {"pow", make<Pow>},
    {"relu_gradient", make<ReluGradient>},
    {"sigmoid_gradient", make<SigmoidGradient>},
    {"sub", make<Sub>},
    {"tanh_gradient", make<TanhGradient>},
};

}  // namespace

Result<Kernel> make_binary(KernelRequest &request) {
  const BinaryOp *const op = std::find_if(std::begin(kBinaryOps), std::end(kBinaryOps),
                                          [&](const BinaryOp &one) { return one.name == request.node.op; });
  return op->factory(request);
}

Result<Kernel> make_gelu_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GeluGradientAttributes::from(request.node));
  return attributes.approximate ? make<ApproximateGeluGradient>(request) : make<GeluGradient>(request);
}

Result<Kernel> make_select(KernelRequest &request) {
  const DType dtype = request.output(0).dtype;
  return Kernel([walk = make_walk(request), dtype](const Frame &frame) {
    tensor::visit_dtype(dtype, [&]<typename T>(T) {
      walk.run([&](const int64_t *offsets, int64_t count) {
        const bool *condition = frame.input_as<bool>(0) + offsets[1];
        const T *a = frame.input_as<T>(1) + offsets[2], *b = frame.input_as<T>(2) + offsets[3];
        T *y = frame.output_as<T>(0) + offsets[0];
        for (int64_t i = 0; i < count; ++i)
          y[i] = condition[i * walk.step(1)] ? a[i * walk.step(2)] : b[i * walk.step(3)];
      });
    });
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
