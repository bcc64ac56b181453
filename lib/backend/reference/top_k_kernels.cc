// SPDX-License-Identifier: Apache-2.0
//
// top_k and its gradient, a row at a time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

struct TopKPlan {
  int64_t rows = 0, length = 0, k = 0;
  DType dtype{};
};

/// `x` is an input of rows, `chosen` an output or input of k of each.
TopKPlan top_k_plan(const LoweredValue &x, const LoweredValue &chosen) {
  TopKPlan plan;
  plan.length = x.dims.back();
  plan.k = chosen.dims.back();
  plan.rows = plan.length == 0 ? 0 : x.elements / plan.length;
  plan.dtype = x.dtype;
  return plan;
}

template <typename C>
bool is_larger(C a, C b) {
  if constexpr (std::is_same_v<C, double>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  }
  return a > b;
}

/// Does element i of a row of C come before element j?
template <typename C>
bool comes_before(const void *row, int64_t i, int64_t j) {
  const C *const x = static_cast<const C *>(row);
  return is_larger(x[i], x[j]) || (!is_larger(x[j], x[i]) && i < j);
}

/// The first k of `order` become the indices of the k that come first. One sort for all types, to be small.
void choose(const void *row, bool (*before)(const void *, int64_t, int64_t), const TopKPlan &plan, int64_t *order) {
  std::iota(order, order + plan.length, int64_t{0});
  std::partial_sort(order, order + plan.k, order + plan.length,
                    [=](int64_t i, int64_t j) { return before(row, i, j); });
}

}  // namespace

Result<Kernel> make_top_k(KernelRequest &request) {
  const TopKPlan plan = top_k_plan(request.input(0), request.output(0));
  static_assert(sizeof(double) == sizeof(int64_t));
  request.scratch_bytes = 2 * plan.length * static_cast<int64_t>(sizeof(int64_t));
  return Kernel([plan](const Frame &frame) {
    visit_arithmetic(plan.dtype, [&]<typename C>(C) {
      C *const x = static_cast<C *>(frame.scratch());
      int64_t *const order = static_cast<int64_t *>(frame.scratch()) + plan.length;
      for (int64_t row = 0; row < plan.rows; ++row) {
        load(plan.dtype, frame.input(0), row * plan.length, 1, plan.length, x);
        choose(x, comes_before<C>, plan, order);
        for (int64_t i = 0; i < plan.k; ++i)
          store(plan.dtype, frame.output(0), row * plan.k + i, 1, x + order[i]);
        std::copy_n(order, plan.k, frame.output_as<int64_t>(1) + row * plan.k);
      }
    });
    return Status();
  });
}

Result<Kernel> make_top_k_gradient(KernelRequest &request) {
  const TopKPlan plan = top_k_plan(request.output(0), request.input(0));
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(plan.dtype));
  return Kernel([plan, bytes](const Frame &frame) {
    const char *dy = frame.input_as<char>(0);
    const int64_t *index = frame.input_as<int64_t>(1);
    for (int64_t row = 0; row < plan.rows; ++row) {
      char *const dx = frame.output_as<char>(0) + row * plan.length * bytes;
      std::memset(dx, 0, static_cast<size_t>(plan.length * bytes));
      for (int64_t i = 0; i < plan.k; ++i, ++index, dy += bytes) {
        if (*index >= 0 && *index < plan.length) std::memcpy(dx + *index * bytes, dy, static_cast<size_t>(bytes));
      }
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
