// SPDX-License-Identifier: Apache-2.0
#include "nn/fitting_inputs.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "nn/example_weights.h"

namespace tutti::impl::nn {

ValueId like_first(Expansion &e, size_t index) {
  GraphBuilder &b = e.builder();
  const ValueId first = e.input(0), other = e.input(index);
  if (first == kNoValue || other == kNoValue) return kNoValue;
  if (!(b.dims(first) == b.dims(other))) {
    return e.fail(base::concat(e.input_name(0), " ", graph::to_string(b.dims(first)), " and ", e.input_name(index), " ",
                               graph::to_string(b.dims(other)), " must have the same shape"));
  }
  return b.cast(other, b.dtype(first));
}

ValueId labels_of(Expansion &e, size_t index) {
  GraphBuilder &b = e.builder();
  const ValueId scores = e.input(0), labels = e.input(index);
  if (scores == kNoValue || labels == kNoValue || !has_classes(e)) return kNoValue;
  if (!tensor::is_integer(b.dtype(labels))) {
    return e.fail(base::concat(e.input_name(index), " are ", tensor::name(b.dtype(labels)),
                               ", expected class numbers, which are integers"));
  }
  const ValueId squeezed = squeeze_to_rank(e, labels, b.rank(scores) - 1);
  graph::Dims rows = b.dims(scores);
  rows.pop_back();
  if (b.dims(squeezed) == rows) return squeezed;
  return e.fail(base::concat(e.input_name(index), " ", graph::to_string(b.dims(labels)), " do not fit ",
                             e.input_name(0), " ", graph::to_string(b.dims(scores)), ": expected ",
                             graph::to_string(rows)));
}

bool has_classes(Expansion &e) {
  if (e.input(0) == kNoValue) return false;
  if (e.builder().rank(e.input(0)) >= 2) return true;
  e.fail(base::concat("expected ", e.input_name(0), " [batch, classes], got a value of lower rank"));
  return false;
}

ValueId as_indices(GraphBuilder &b, ValueId labels) {
  if (labels == kNoValue || b.dtype(labels) == tensor::DType::i32) return labels;
  return b.cast(labels, tensor::size_bytes(b.dtype(labels)) < 4 ? tensor::DType::i32 : tensor::DType::i64);
}

ValueId one_minus(GraphBuilder &b, ValueId x) { return x == kNoValue ? kNoValue : b.sub(b.constant(1, b.dtype(x)), x); }

ValueId at_least(GraphBuilder &b, ValueId x, double limit) {
  return x == kNoValue ? kNoValue : b.op("maximum", {x, b.constant(limit, b.dtype(x))});
}

ValueId sum_last(GraphBuilder &b, ValueId x) { return b.reduce_sum(x, {-1}); }

}  // namespace tutti::impl::nn
