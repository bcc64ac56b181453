// SPDX-License-Identifier: Apache-2.0
//
// Reductions along axes: sum, mean, max, min, prod, argmax, argmin, all_finite.
#include <cmath>
#include <limits>
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

template <typename C>
C lowest(DType dtype) {
  if constexpr (std::is_same_v<C, double>) {
    return -std::numeric_limits<double>::infinity();
  } else {
    C value = 0;
    tensor::visit_dtype(dtype, [&]<typename T>(T) {
      if constexpr (std::is_integral_v<T>) value = static_cast<C>(std::numeric_limits<T>::min());
    });
    return value;
  }
}

template <typename C>
C highest(DType dtype) {
  if constexpr (std::is_same_v<C, double>) {
    return std::numeric_limits<double>::infinity();
  } else {
    C value = 0;
    tensor::visit_dtype(dtype, [&]<typename T>(T) {
      if constexpr (std::is_integral_v<T>) value = static_cast<C>(std::numeric_limits<T>::max());
    });
    return value;
  }
}

struct Sum {
  template <typename C>
  static C start(DType) {
    return 0;
  }
  template <typename C>
  static void add(C &total, C x) {
    if constexpr (std::is_integral_v<C>) {
      total = static_cast<C>(static_cast<uint64_t>(total) + static_cast<uint64_t>(x));
    } else {
      total += x;
    }
  }
};
struct Product {
  template <typename C>
  static C start(DType) {
    return 1;
  }
  template <typename C>
  static void add(C &total, C x) {
    if constexpr (std::is_integral_v<C>) {
      total = static_cast<C>(static_cast<uint64_t>(total) * static_cast<uint64_t>(x));
    } else {
      total *= x;
    }
  }
};
struct Max {
  template <typename C>
  static C start(DType dtype) {
    return lowest<C>(dtype);
  }
  template <typename C>
  static void add(C &total, C x) {
    if (x > total || x != x) total = x;
  }
};
struct Min {
  template <typename C>
  static C start(DType dtype) {
    return highest<C>(dtype);
  }
  template <typename C>
  static void add(C &total, C x) {
    if (x < total || x != x) total = x;
  }
};

/// A box of results around a box of what each result takes together.
struct ReducePlan {
  StridedWalk results{Extents{}};   // operand 0: position in x of the first element
  StridedWalk elements{Extents{}};  // operand 0: offset from there
  int64_t count = 1;                // elements per result
  DType dtype{};
};

ReducePlan make_plan(const LoweredValue &x, const std::vector<int64_t> &axes) {
  const Extents strides = dense_strides(x.dims);
  Extents kept, kept_strides, reduced, reduced_strides;
  for (size_t axis = 0; axis < x.dims.size(); ++axis) {
    bool is_reduced = axes.empty();
    for (const int64_t one : axes)
      is_reduced |= (one < 0 ? one + static_cast<int64_t>(x.dims.size()) : one) == static_cast<int64_t>(axis);
    (is_reduced ? reduced : kept).push_back(x.dims[axis]);
    (is_reduced ? reduced_strides : kept_strides).push_back(strides[axis]);
  }
  ReducePlan plan;
  for (const int64_t dim : reduced)
    plan.count *= dim;
  plan.results = StridedWalk(kept);
  plan.results.add(kept_strides);
  plan.results.finish();
  plan.elements = StridedWalk(reduced);
  plan.elements.add(reduced_strides);
  plan.elements.finish();
  plan.dtype = x.dtype;
  return plan;
}

template <typename Op, typename C>
void reduce(const ReducePlan &plan, double scale, const Frame &frame) {
  int64_t position = 0;
  plan.results.run([&](const int64_t *origins, int64_t results) {
    for (int64_t i = 0; i < results; ++i) {
      const int64_t origin = origins[0] + i * plan.results.step(0);
      C total = Op::template start<C>(plan.dtype);
      plan.elements.run([&](const int64_t *offsets, int64_t length) {
        for_runs(length, [&](int64_t first, int64_t run) {
          C x[kRun];
          const int64_t step = plan.elements.step(0);
          load(plan.dtype, frame.input(0), origin + offsets[0] + first * step, step, run, x);
          for (int64_t j = 0; j < run; ++j)
            Op::add(total, x[j]);
        });
      });
      if constexpr (std::is_same_v<C, double>) total /= scale;
      store(plan.dtype, frame.output(0), position++, 1, &total);
    }
  });
}

template <typename Op, typename Attributes>
Result<Kernel> make_reduction(KernelRequest &request, bool is_mean = false) {
  TUTTI_ASSIGN(const Attributes attributes, Attributes::from(request.node));
  ReducePlan plan = make_plan(request.input(0), attributes.axes);
  const double scale = is_mean ? static_cast<double>(plan.count) : 1.0;
  return Kernel([plan = std::move(plan), scale](const Frame &frame) {
    visit_arithmetic(plan.dtype, [&]<typename C>(C) { reduce<Op, C>(plan, scale, frame); });
    return Status();
  });
}

/// Does x take the place of the best so far? The first of equals stays; the first NaN beats all.
template <typename C>
bool is_better(C x, C best, bool is_max) {
  if (best != best) return false;
  return x != x || (is_max ? x > best : x < best);
}

}  // namespace

Result<Kernel> make_reduce(KernelRequest &request) {
  const std::string &op = request.node.op;
  if (op == "reduce_mean") return make_reduction<Sum, graph::ops::ReduceMeanAttributes>(request, true);
  if (op == "reduce_max") return make_reduction<Max, graph::ops::ReduceMaxAttributes>(request);
  if (op == "reduce_min") return make_reduction<Min, graph::ops::ReduceMinAttributes>(request);
  if (op == "reduce_prod") return make_reduction<Product, graph::ops::ReduceProdAttributes>(request);
  return make_reduction<Sum, graph::ops::ReduceSumAttributes>(request);
}

Result<Kernel> make_arg_reduce(KernelRequest &request) {
  int64_t axis = 0;
  const bool is_max = request.node.op == "argmax";
  if (is_max) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::ArgmaxAttributes::from(request.node));
    axis = attributes.axis;
  } else {
    TUTTI_ASSIGN(const auto attributes, graph::ops::ArgminAttributes::from(request.node));
    axis = attributes.axis;
  }
  ReducePlan plan = make_plan(request.input(0), {axis});
  if (plan.count == 0 && request.output(0).elements != 0)
    return base::invalid_argument("axis ", axis, " of ", request.input(0).dims, " has no elements to choose from");
  return Kernel([plan = std::move(plan), is_max](const Frame &frame) {
    visit_arithmetic(plan.dtype, [&]<typename C>(C) {
      int64_t position = 0;
      plan.results.run([&](const int64_t *origins, int64_t results) {
        for (int64_t i = 0; i < results; ++i) {
          const int64_t origin = origins[0] + i * plan.results.step(0);
          int64_t best_index = 0;
          C best{}, x;
          for (int64_t j = 0; j < plan.count; ++j) {
            load(plan.dtype, frame.input(0), origin + j * plan.elements.step(0), 1, 1, &x);
            if (j != 0 && !is_better(x, best, is_max)) continue;
            best = x;
            best_index = j;
          }
          frame.output_as<int64_t>(0)[position++] = best_index;
        }
      });
    });
    return Status();
  });
}

Result<Kernel> make_all_finite(KernelRequest &request) {
  const DType dtype = request.input(0).dtype;
  const int64_t count = request.input(0).elements;
  return Kernel([=](const Frame &frame) {
    bool is_finite = true;
    for_runs(count, [&](int64_t first, int64_t length) {
      double x[kRun];
      load(dtype, frame.input(0), first, 1, length, x);
      for (int64_t i = 0; i < length; ++i)
        is_finite &= std::isfinite(x[i]);
    });
    *frame.output_as<bool>(0) = is_finite;
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
