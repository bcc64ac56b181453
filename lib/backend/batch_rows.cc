// SPDX-License-Identifier: Apache-2.0
#include "backend/batch_rows.h"

#include "graph/batch.h"

namespace tutti::impl::backend {

BatchRows BatchRows::of(const LoweredGraph &lowered, graph::ValueId id) {
  const LoweredValue &value = lowered.value(id);
  const graph::BatchAxis batch = graph::batch_axis(lowered.graph().value(id));
  const base::Result<int64_t> factor = batch.factor.evaluate(lowered.bindings());
  BatchRows result;
  if (batch.kind != graph::BatchAxis::Kind::carried || !factor.ok()) {
    result.inner = value.elements;
    return result;
  }
  const size_t axis = static_cast<size_t>(batch.axis);
  result.has_batch = true;
  result.factor = factor.value();
  result.rows = result.factor == 0 ? 0 : value.dims[axis] / result.factor;
  for (size_t i = 0; i < axis; ++i)
    result.outer *= value.dims[i];
  for (size_t i = axis + 1; i < value.dims.size(); ++i)
    result.inner *= value.dims[i];
  return result;
}

}  // namespace tutti::impl::backend
