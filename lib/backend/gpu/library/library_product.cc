// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/library_product.h"

#include <algorithm>
#include <utility>

namespace tutti::impl::backend::gpu {

namespace {

using Dims = std::vector<int64_t>;
/// Of a, b and y.
using Three = std::array<int64_t, 3>;

constexpr int64_t kMostCalls = 64;

/// An axis of the batch: so many matrices, and elements from one to the next; 0 where an operand has one for all.
struct BatchAxis {
  int64_t count = 1;
  Three steps{};
};

bool walks_on(const BatchAxis &outer, const BatchAxis &inner) {
  for (size_t operand = 0; operand < inner.steps.size(); ++operand) {
    if (outer.steps[operand] != inner.count * inner.steps[operand]) return false;
  }
  return true;
}

/// Innermost first: without axes of one matrix, neighbours merged where all operands walk on evenly.
std::vector<BatchAxis> batch_axes(const std::array<const Dims *, 3> &operands) {
  Three strides{};
  for (size_t i = 0; i < operands.size(); ++i) {
    const Dims &dims = *operands[i];
    strides[i] = dims[dims.size() - 2] * dims[dims.size() - 1];
  }
  std::vector<BatchAxis> axes;
  const Dims &y = *operands[2];
  for (size_t axis = 3; axis <= y.size(); ++axis) {
    BatchAxis found{y[y.size() - axis], {}};
    for (size_t i = 0; i < operands.size(); ++i) {
      const Dims &dims = *operands[i];
      const int64_t dim = axis <= dims.size() ? dims[dims.size() - axis] : 1;
      found.steps[i] = dim == 1 ? 0 : strides[i];
      strides[i] *= dim;
    }
    if (found.count == 1) continue;
    if (!axes.empty() && walks_on(found, axes.back())) {
      axes.back().count *= found.count;
    } else {
      axes.push_back(found);
    }
  }
  return axes;
}

/// Takes an axis into the product itself: as more rows where all its matrices meet the same b, else as a batch.
void take_axis(ProductShape &shape, const BatchAxis &axis) {
  const bool is_rows = axis.steps[1] == 0 && !shape.transpose_a && axis.steps[0] == shape.m * shape.k &&
                       axis.steps[2] == shape.m * shape.n;
  if (is_rows) {
    shape.m *= axis.count;
    return;
  }
  shape.batches = axis.count;
  shape.a_step = axis.steps[0];
  shape.b_step = axis.steps[1];
  shape.y_step = axis.steps[2];
}

void repeat_calls(std::vector<Three> &calls, const BatchAxis &axis) {
  std::vector<Three> longer;
  for (const Three &call : calls) {
    for (int64_t i = 0; i < axis.count; ++i)
      longer.push_back({call[0] + i * axis.steps[0], call[1] + i * axis.steps[1], call[2] + i * axis.steps[2]});
  }
  calls = std::move(longer);
}

}  // namespace

std::optional<LibraryCalls> plan_library_calls(tensor::DType dtype, const Dims &a, const Dims &b, const Dims &y,
                                               bool transpose_a, bool transpose_b) {
  LibraryCalls plan;
  plan.shape.dtype = dtype;
  plan.shape.m = y[y.size() - 2];
  plan.shape.n = y[y.size() - 1];
  plan.shape.k = a[a.size() - (transpose_a ? 2 : 1)];
  plan.shape.transpose_a = transpose_a;
  plan.shape.transpose_b = transpose_b;
  plan.calls = {{0, 0, 0}};
  const std::vector<BatchAxis> axes = batch_axes({&a, &b, &y});
  int64_t calls = 1;
  for (size_t axis = 1; axis < axes.size(); ++axis) {
    calls *= axes[axis].count;
    if (calls > kMostCalls) return std::nullopt;
    repeat_calls(plan.calls, axes[axis]);
  }
  if (!axes.empty()) take_axis(plan.shape, axes.front());
  for (const Three &call : plan.calls) {
    plan.shape.a_places |= call[0];
    plan.shape.b_places |= call[1];
    plan.shape.y_places |= call[2];
  }
  return plan;
}

}  // namespace tutti::impl::backend::gpu
