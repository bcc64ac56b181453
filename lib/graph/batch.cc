// SPDX-License-Identifier: Apache-2.0
#include "graph/batch.h"

#include "graph/builder.h"

namespace tutti::impl::graph {
namespace {

/// What `dim` is of the batch, the same for every row.
std::optional<Dim> positions_per_row(const Dim &dim) {
  if (const std::optional<int64_t> constant = dim.factor_of(kBatchSymbol)) return Dim(*constant);
  std::optional<Dim> factor = dim.divide_exactly(Dim::symbol(kBatchSymbol));
  if (!factor || factor->is_constant() || factor->mentions(kBatchSymbol)) return {};
  return factor;
}

}  // namespace

BatchAxis batch_axis(const Dims &dims) {
  BatchAxis result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].mentions(kBatchSymbol)) continue;
    const std::optional<Dim> factor = positions_per_row(dims[i]);
    if (result.kind != BatchAxis::Kind::none || !factor) return {BatchAxis::Kind::mixed, -1, 1};
    result = {BatchAxis::Kind::carried, static_cast<int32_t>(i), *factor};
  }
  return result;
}

int32_t carried_axis(const Dims &dims) { return batch_axis(dims).axis; }

ValueId positions_of(GraphBuilder &builder, ValueId rows, const Dim &factor) {
  if (factor.is_constant()) return builder.scale(rows, static_cast<double>(factor.constant()));
  const ValueId ones = builder.broadcast_to(builder.constant(1, tensor::DType::f64), {factor});
  return builder.mul(rows, builder.cast(builder.reduce_sum(ones), builder.dtype(rows)));
}

}  // namespace tutti::impl::graph
