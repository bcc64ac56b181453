// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax along any axis, and their gradients. A line is the elements along the axis: they are loaded
// into scratch memory, computed, and stored.
#include <algorithm>
#include <cmath>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// x is [outer, length, inner] around the axis.
struct LinePlan {
  int64_t outer = 1, length = 1, inner = 1;
  DType dtype{};
  bool is_log = false;
};

LinePlan line_plan(const LoweredValue &x, int64_t axis, bool is_log) {
  LinePlan plan;
  const size_t at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.dims.size()) : axis);
  for (size_t i = 0; i < at; ++i)
    plan.outer *= x.dims[i];
  for (size_t i = at + 1; i < x.dims.size(); ++i)
    plan.inner *= x.dims[i];
  plan.length = x.dims[at];
  plan.dtype = x.dtype;
  plan.is_log = is_log;
  return plan;
}

/// Calls function(first element, stride) for each line.
template <typename Function>
void for_lines(const LinePlan &plan, Function function) {
  for (int64_t i = 0; i < plan.outer; ++i) {
    for (int64_t j = 0; j < plan.inner; ++j)
      function(i * plan.length * plan.inner + j);
  }
}

void store_line(const LinePlan &plan, void *target, int64_t first, const double *line) {
  for (int64_t i = 0; i < plan.length; ++i)
    store(plan.dtype, target, first + i * plan.inner, 1, line + i);
}

Result<int64_t> read_axis(const graph::Node &node) {
  const auto axis = node.attributes.find("axis");
  return axis == node.attributes.end() ? int64_t{-1} : std::get<int64_t>(axis->second);
}

}  // namespace

Result<Kernel> make_softmax(KernelRequest &request) {
  TUTTI_ASSIGN(const int64_t axis, read_axis(request.node));
  const LinePlan plan = line_plan(request.input(0), axis, request.node.op == "log_softmax");
  request.scratch_bytes = plan.length * static_cast<int64_t>(sizeof(double));
  return Kernel([plan](const Frame &frame) {
    double *const line = frame.scratch_doubles();
    for_lines(plan, [&](int64_t first) {
      load(plan.dtype, frame.input(0), first, plan.inner, plan.length, line);
      const double largest = *std::max_element(line, line + plan.length);
      double sum = 0;
      for (int64_t i = 0; i < plan.length; ++i)
        sum += std::exp(line[i] - largest);
      for (int64_t i = 0; i < plan.length; ++i)
        line[i] = plan.is_log ? line[i] - largest - std::log(sum) : std::exp(line[i] - largest) / sum;
      store_line(plan, frame.output(0), first, line);
    });
    return Status();
  });
}

Result<Kernel> make_softmax_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const int64_t axis, read_axis(request.node));
  const LinePlan plan = line_plan(request.input(0), axis, request.node.op == "log_softmax_gradient");
  request.scratch_bytes = 2 * plan.length * static_cast<int64_t>(sizeof(double));
  return Kernel([plan](const Frame &frame) {
    double *const dy = frame.scratch_doubles(), *const y = dy + plan.length;
    for_lines(plan, [&](int64_t first) {
      load(plan.dtype, frame.input(0), first, plan.inner, plan.length, dy);
      load(plan.dtype, frame.input(1), first, plan.inner, plan.length, y);
      double sum = 0;
      for (int64_t i = 0; i < plan.length; ++i)
        sum += plan.is_log ? dy[i] : dy[i] * y[i];
      for (int64_t i = 0; i < plan.length; ++i)
        dy[i] = plan.is_log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
      store_line(plan, frame.output(0), first, dy);
    });
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
