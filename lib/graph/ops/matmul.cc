// SPDX-License-Identifier: Apache-2.0
//
// matmul: shape and gradient rule.
#include "graph/batch.h"
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

struct Matrix {
  Dims lead;
  Dim rows, columns;
};

Matrix matrix_of(const Dims &dims, bool transposed) {
  const size_t rank = dims.size();
  return {Dims(dims.begin(), dims.end() - 2), dims[rank - (transposed ? 1 : 2)], dims[rank - (transposed ? 2 : 1)]};
}

}  // namespace

bool can_flatten(const Dims &dims) {
  return batch_axis(dims).kind != BatchAxis::Kind::mixed && carried_axis(dims) <= 0;
}

ValueId flatten(GraphBuilder &b, ValueId x) {
  const Dims dims = b.dims(x);
  Dim rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    rows = rows * dims[i];
  return b.reshape(x, {rows, dims.back()});
}

base::Status infer_matmul(InferContext &context) {
  TUTTI_ASSIGN(const MatmulAttributes attributes, MatmulAttributes::from(context.node()));
  for (size_t i = 0; i < 2; ++i) {
    if (context.rank(i) < 2)
      return context.input_error(i, base::concat("has rank ", context.rank(i), ", expected at least 2"));
  }
  const Matrix a = matrix_of(context.dims(0), attributes.transpose_a),
               b = matrix_of(context.dims(1), attributes.transpose_b);
  if (a.columns != b.rows) {
    return context.inputs_error(
        0, 1,
        base::concat("cannot be multiplied: ", a.columns, attributes.transpose_a ? " rows" : " columns", " against ",
                     b.rows, attributes.transpose_b ? " columns" : " rows"));
  }
  std::optional<Dims> dims = broadcast_dims(a.lead, b.lead);
  if (!dims) return context.inputs_error(0, 1, "do not broadcast in their leading axes");
  dims->push_back(a.rows);
  dims->push_back(b.columns);
  context.add_output(context.input(0).dtype, std::move(*dims));
  return {};
}

base::Status gradient_matmul(GradientContext &context) {
  TUTTI_ASSIGN(const MatmulAttributes attributes, MatmulAttributes::from(context.node()));
  GraphBuilder &g = context.builder();
  const ValueId a = context.input(0), b = context.input(1), dy = context.output_gradient(0);
  const bool ta = attributes.transpose_a, tb = attributes.transpose_b;
  const Dims a_dims = g.dims(a), b_dims = g.dims(b);
  if (context.needs(0)) {
    const ValueId da = ta ? g.matmul(b, dy, tb, true) : g.matmul(dy, b, false, !tb);
    context.set(0, g.sum_to(da, a_dims));
  }
  if (context.needs(1)) {
    // One large product instead of many small ones and a sum.
    if (!ta && a_dims.size() > 2 && b_dims.size() == 2 && can_flatten(a_dims)) {
      const ValueId rows = flatten(g, a), d_rows = flatten(g, dy);
      context.set(1, tb ? g.matmul(d_rows, rows, true, false) : g.matmul(rows, d_rows, true, false));
    } else {
      const ValueId db = tb ? g.matmul(dy, a, true, ta) : g.matmul(a, dy, !ta, false);
      context.set(1, g.sum_to(db, b_dims));
    }
  }
  return {};
}

}  // namespace tutti::impl::graph::ops
