// SPDX-License-Identifier: Apache-2.0
#include "graph/batch.h"

namespace tutti::impl::graph {

BatchAxis batch_axis(const Dims &dims) {
  BatchAxis result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].mentions(kBatchSymbol)) continue;
    const std::optional<int64_t> factor = dims[i].factor_of(kBatchSymbol);
    if (result.kind != BatchAxis::Kind::none || !factor) return {BatchAxis::Kind::mixed, -1, 1};
    result = {BatchAxis::Kind::carried, static_cast<int32_t>(i), *factor};
  }
  return result;
}

int32_t carried_axis(const Dims &dims) { return batch_axis(dims).axis; }

}  // namespace tutti::impl::graph
