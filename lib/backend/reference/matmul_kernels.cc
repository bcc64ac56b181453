// SPDX-License-Identifier: Apache-2.0
//
// Batched matrix products. Each result row is accumulated in double over runs of columns: m·n·k multiply-adds.
#include <cstring>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "backend/reference/strided.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;

namespace {

/// One matrix seen through strides, in elements.
struct MatrixStrides {
  int64_t row, column;
};

struct MatmulPlan {
  int64_t m, n, k;
  MatrixStrides a, b;
  StridedWalk batch{Extents{}};  // operands: y, a, b in elements
};

/// Rows of b are dense (b.column is 1).
template <typename T>
void multiply(const MatmulPlan &plan, const T *a, const T *b, T *y) {
  for (int64_t i = 0; i < plan.m; ++i) {
    for_runs(plan.n, [&](int64_t first, int64_t length) {
      double sums[kRun] = {};
      for (int64_t p = 0; p < plan.k; ++p) {
        const double factor = as_double(a[i * plan.a.row + p * plan.a.column]);
        const T *row = b + p * plan.b.row + first;
        for (int64_t j = 0; j < length; ++j)
          sums[j] += factor * as_double(row[j]);
      }
      store(tensor::dtype_of<T>, y, i * plan.n + first, length, sums);
    });
  }
}

/// The same where the columns of b lie in rows: one dot product per result.
template <typename T>
void multiply_by_dots(const MatmulPlan &plan, const T *a, const T *b, T *y) {
  for (int64_t i = 0; i < plan.m; ++i) {
    for_runs(plan.n, [&](int64_t first, int64_t length) {
      double sums[kRun];
      for (int64_t j = 0; j < length; ++j) {
        const T *column = b + (first + j) * plan.b.column;
        double sum = 0;
        for (int64_t p = 0; p < plan.k; ++p)
          sum += as_double(a[i * plan.a.row + p * plan.a.column]) * as_double(column[p * plan.b.row]);
        sums[j] = sum;
      }
      store(tensor::dtype_of<T>, y, i * plan.n + first, length, sums);
    });
  }
}

Extents batch_strides(const Extents &dims, const Extents &to) {
  const Extents batch(dims.begin(), dims.end() - 2);
  Extents strides = broadcast_strides(batch, to);
  for (int64_t &stride : strides)
    stride *= dims[dims.size() - 2] * dims[dims.size() - 1];
  return strides;
}

}  // namespace

Result<Kernel> make_matmul(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MatmulAttributes::from(request.node));
  const Extents &a = request.input(0).dims, &b = request.input(1).dims, &y = request.output(0).dims;
  const int64_t a_width = a.back(), b_width = b.back();
  MatmulPlan plan{};
  plan.m = y[y.size() - 2];
  plan.n = y[y.size() - 1];
  plan.k = attributes.transpose_a ? a[a.size() - 2] : a_width;
  plan.a = attributes.transpose_a ? MatrixStrides{1, a_width} : MatrixStrides{a_width, 1};
  plan.b = attributes.transpose_b ? MatrixStrides{1, b_width} : MatrixStrides{b_width, 1};
  const Extents batch(y.begin(), y.end() - 2);
  plan.batch = StridedWalk(batch);
  plan.batch.add(batch_strides(y, batch));
  plan.batch.add(batch_strides(a, batch));
  plan.batch.add(batch_strides(b, batch));
  plan.batch.finish();
  return Kernel([plan, dtype = request.output(0).dtype](const Frame &frame) {
    visit_floating(dtype, [&]<typename T>(T) {
      plan.batch.run([&](const int64_t *offsets, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          T *y = frame.output_as<T>(0) + offsets[0] + i * plan.batch.step(0);
          const T *a = frame.input_as<T>(0) + offsets[1] + i * plan.batch.step(1);
          const T *b = frame.input_as<T>(1) + offsets[2] + i * plan.batch.step(2);
          plan.b.column == 1 ? multiply(plan, a, b, y) : multiply_by_dots(plan, a, b, y);
        }
      });
    });
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
