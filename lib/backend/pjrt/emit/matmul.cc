// SPDX-License-Identifier: Apache-2.0
//
// Batched matrix products. Factors of f16 and bf16 are multiplied in f32.
#include <algorithm>

#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;

namespace {

/// The operand with the leading axes of the result.
Value with_batch(ProgramText &text, const Value &x, const Dims &batch) {
  Dims dims = batch;
  dims.insert(dims.end(), x.dims.end() - 2, x.dims.end());
  return text.broadcast_to(x, dims);
}

}  // namespace

Status emit_matmul(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MatmulAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Dims &y = node.output(0).dims;
  const Dims batch(y.begin(), y.end() - 2);
  const auto rank = static_cast<int64_t>(batch.size());
  const Value a = with_batch(text, node.wide_input(0), batch), b = with_batch(text, node.wide_input(1), batch);
  const ProductAxes axes{all_axes(batch.size()),
                         all_axes(batch.size()),
                         {rank + (attributes.transpose_a ? 0 : 1)},
                         {rank + (attributes.transpose_b ? 1 : 0)}};
  node.set_output(0, text.product(a, b, axes));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
