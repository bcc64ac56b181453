// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products, a line at a time.
#include <type_traits>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "backend/running_lines.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

template <typename C>
C combined(C total, C x, bool is_product) {
  if constexpr (std::is_integral_v<C>) {
    const auto a = static_cast<uint64_t>(total), b = static_cast<uint64_t>(x);
    return static_cast<C>(is_product ? a * b : a + b);
  } else {
    return is_product ? total * x : total + x;
  }
}

}  // namespace

Result<Kernel> make_running(KernelRequest &request) {
  TUTTI_ASSIGN(const RunningLines lines, RunningLines::of(request.lowered, request.node));
  const bool is_product = request.node.op == "running_product";
  return Kernel([=, dtype = request.input(0).dtype](const Frame &frame) {
    visit_arithmetic(dtype, [&]<typename C>(C) {
      for (int64_t line = 0; line < lines.lines() && lines.length > 0; ++line) {
        C total = is_product ? 1 : 0, x;
        for (int64_t i = 0, at = lines.first(line); i < lines.length; ++i, at += lines.step()) {
          load(dtype, frame.input(0), at, 1, 1, &x);
          const C next = combined(total, x, is_product);
          store(dtype, frame.output(0), at, 1, lines.is_exclusive ? &total : &next);
          total = next;
        }
      }
    });
    return Status();
  });
}

// With p the product of the elements before one, and s = dy + (the next element) · (the next s): dx = p · s. Of the
// exclusive product dy is that of the next element.
Result<Kernel> make_running_product_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const RunningLines lines, RunningLines::of(request.lowered, request.node));
  request.scratch_bytes = lines.length * static_cast<int64_t>(sizeof(double));
  return Kernel([=, dtype = request.input(0).dtype](const Frame &frame) {
    double *const before = frame.scratch_doubles();
    for (int64_t line = 0; line < lines.lines() && lines.length > 0; ++line) {
      const int64_t first = lines.first(line);
      double product = 1;
      for (int64_t i = 0; i < lines.length; ++i) {
        before[i] = product;
        product *= load_one(dtype, frame.input(1), first + i * lines.step());
      }
      double sum = 0, next_x = 0, next_dy = 0;
      for (int64_t i = lines.length - 1; i >= 0; --i) {
        const int64_t at = first + i * lines.step();
        const double dy = load_one(dtype, frame.input(0), at);
        // Behind the last element there is nothing, not 0 times something.
        if (i + 1 < lines.length) sum *= next_x;
        sum += lines.is_exclusive ? next_dy : dy;
        const double dx = before[i] * sum;
        store(dtype, frame.output(0), at, 1, &dx);
        next_x = load_one(dtype, frame.input(1), at);
        next_dy = dy;
      }
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
