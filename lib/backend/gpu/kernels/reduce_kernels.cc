// SPDX-License-Identifier: Apache-2.0
//
// Reductions along axes: sum, mean, max, min, prod, argmax, argmin, all_finite.
#include <algorithm>
#include <limits>

#include "backend/gpu/device/device_reduce.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/gpu/kernels/reduced_trees.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

void add_axis(ReduceWalk &walk, int64_t dim, int64_t stride) {
  walk.dims[walk.rank] = dim;
  walk.strides[walk.rank++] = stride;
}

/// Neighbouring axes of which all or none are reduced, as one.
struct MergedAxis {
  int64_t dim;
  bool is_reduced;
};

std::vector<MergedAxis> merge(const std::vector<int64_t> &dims, const std::vector<int64_t> &axes) {
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<MergedAxis> merged;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const bool is_reduced = axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int64_t one) {
                              return (one < 0 ? one + rank : one) == axis;
                            });
    const int64_t dim = dims[static_cast<size_t>(axis)];
    if (dim == 1) continue;
    if (!merged.empty() && merged.back().is_reduced == is_reduced) {
      merged.back().dim *= dim;
    } else {
      merged.push_back({dim, is_reduced});
    }
  }
  return merged;
}

/// The shape of the work; no axes = all.
ReduceWork shape_work(const LoweredValue &x, const LoweredValue &y, const std::vector<int64_t> &axes, SumOrder order) {
  ReduceWork work{};
  work.order = order;
  work.dtype = x.dtype;
  work.result = y.dtype;
  work.outer = work.rows = work.columns = work.contiguous = 1;
  work.divisor = 1;
  std::vector<MergedAxis> merged = merge(x.dims, axes);
  if (!merged.empty()) work.contiguous = merged.back().dim;
  int64_t stride = 1;
  if (!merged.empty() && !merged.back().is_reduced) {
    work.columns = stride = merged.back().dim;
    merged.pop_back();
  }
  std::vector<int64_t> strides(merged.size());
  for (size_t i = merged.size(); i-- > 0; stride *= merged[i].dim)
    strides[i] = stride;
  for (size_t i = 0; i < merged.size(); ++i) {
    add_axis(merged[i].is_reduced ? work.row_walk : work.outer_walk, merged[i].dim, strides[i]);
    (merged[i].is_reduced ? work.rows : work.outer) *= merged[i].dim;
  }
  return work;
}

Kernel reduce_kernel(KernelRequest &request, const ReduceWork &work) {
  request.reserve_scratch(reduce_scratch_bytes(work));
  return [work](const Frame &frame) {
    ReduceWork issued = work;
    issued.x = frame.input(0);
    issued.y = frame.output(0);
    issued.scratch = frame.scratch();
    return status_of(launch_reduce(issued, frame.stream()), "launching a reduction");
  };
}

int64_t extreme_of(DType dtype, bool is_lowest) {
  int64_t value = 0;
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>)
      value = static_cast<int64_t>(is_lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
  });
  return value;
}

template <typename Attributes>
Result<ReduceWork> work_of(const LoweredGraph &lowered, const graph::Node &node, ReduceOp op) {
  TUTTI_ASSIGN(const Attributes attributes, Attributes::from(node));
  ReduceWork work =
      shape_work(lowered.value(node.inputs[0]), lowered.value(node.outputs[0]), attributes.axes, sum_order_of(lowered));
  work.op = op;
  if (op == ReduceOp::product) work.integer_start = 1;
  if (op == ReduceOp::max || op == ReduceOp::min) work.integer_start = extreme_of(work.dtype, op == ReduceOp::max);
  if (node.op == "reduce_mean") work.divisor = static_cast<double>(work.rows);
  return work;
}

}  // namespace

Result<ReduceWork> reduce_work_of(const LoweredGraph &lowered, const graph::Node &node) {
  using namespace graph::ops;
  if (node.op == "reduce_mean") return work_of<ReduceMeanAttributes>(lowered, node, ReduceOp::sum);
  if (node.op == "reduce_max") return work_of<ReduceMaxAttributes>(lowered, node, ReduceOp::max);
  if (node.op == "reduce_min") return work_of<ReduceMinAttributes>(lowered, node, ReduceOp::min);
  if (node.op == "reduce_prod") return work_of<ReduceProdAttributes>(lowered, node, ReduceOp::product);
  return work_of<ReduceSumAttributes>(lowered, node, ReduceOp::sum);
}

Result<Kernel> make_reduce(KernelRequest &request) {
  TUTTI_ASSIGN(const ReduceWork work, reduce_work_of(request.lowered, request.node));
  return reduce_kernel(request, work);
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
  ReduceWork work = shape_work(request.input(0), request.output(0), {axis}, request.sum_order());
  work.op = is_max ? ReduceOp::argmax : ReduceOp::argmin;
  if (work.rows == 0 && request.output(0).elements != 0)
    return base::invalid_argument("axis ", axis, " of ", request.input(0).dims, " has no elements to choose from");
  return reduce_kernel(request, work);
}

Result<Kernel> make_all_finite(KernelRequest &request) {
  ReduceWork work = shape_work(request.input(0), request.output(0), {}, request.sum_order());
  work.op = ReduceOp::all_finite;
  return reduce_kernel(request, work);
}

}  // namespace tutti::impl::backend::gpu
