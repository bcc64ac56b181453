// SPDX-License-Identifier: Apache-2.0
#include "nn/example_weights.h"

#include <numeric>

namespace tutti::impl::nn {

ValueId squeeze_to_rank(Expansion &e, ValueId value, size_t rank) {
  if (value == kNoValue) return kNoValue;
  graph::Dims dims = e.builder().dims(value);
  if (dims.size() != rank + 1 || !(dims.back() == graph::Dim(1))) return value;
  dims.pop_back();
  return e.builder().reshape(value, std::move(dims));
}

ValueId per_example(Expansion &e, ValueId value) {
  if (value == kNoValue || e.builder().rank(value) <= 1) return value;
  std::vector<int64_t> axes(e.builder().rank(value) - 1);
  std::iota(axes.begin(), axes.end(), 1);
  return e.builder().reduce_mean(value, std::move(axes));
}

ValueId example_weights(Expansion &e, ValueId weights, ValueId like) {
  if (weights == kNoValue || like == kNoValue) return kNoValue;
  return e.builder().cast(squeeze_to_rank(e, weights, 1), e.builder().dtype(like));
}

ValueId reduce_examples(Expansion &e, ValueId values, ValueId weights, Reduction reduction) {
  GraphBuilder &b = e.builder();
  if (values == kNoValue) return kNoValue;
  const ValueId weighted = weights == kNoValue ? values : b.mul(values, weights);
  if (reduction == Reduction::sum) return b.reduce_sum(weighted);
  if (reduction == Reduction::mean || weights == kNoValue) return b.reduce_mean(weighted);
  const ValueId total = b.reduce_sum(weights);
  if (total == kNoValue) return kNoValue;
  const ValueId zero = b.constant(0, b.dtype(total));
  const ValueId one = b.constant(1, b.dtype(total));
  return b.div(b.reduce_sum(weighted), b.select(b.op("equal", {total, zero}), one, total));
}

Reduction reduction_of(const Expansion &e) {
  const std::string &text = e.text("reduction");
  if (text == "sum") return Reduction::sum;
  return text == "mean" ? Reduction::mean : Reduction::weighted_mean;
}

}  // namespace tutti::impl::nn
