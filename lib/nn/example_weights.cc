// SPDX-License-Identifier: Apache-2.0
#include "nn/example_weights.h"

#include <numeric>
#include <string>
#include <utility>

#include "base/text.h"

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

namespace {

/// "[batch, 5]"
std::string shape_of(Expansion &e, ValueId value) { return graph::to_string(e.builder().dims(value)); }

ValueId sum_over_sum(Expansion &e, ValueId weighted, ValueId weights) {
  GraphBuilder &b = e.builder();
  const ValueId total = b.reduce_sum(weights);
  if (total == kNoValue) return kNoValue;
  const ValueId zero = b.constant(0, b.dtype(total)), one = b.constant(1, b.dtype(total));
  return b.div(b.reduce_sum(weighted), b.select(b.op("equal", {total, zero}), one, total));
}

}  // namespace

ValueId element_weights(Expansion &e, ValueId weights, ValueId value) {
  if (weights == kNoValue || value == kNoValue) return kNoValue;
  GraphBuilder &b = e.builder();
  const graph::Dims of_value = b.dims(value);
  const ValueId squeezed = squeeze_to_rank(e, weights, 1);
  if (squeezed == kNoValue) return kNoValue;
  graph::Dims dims = b.dims(squeezed);
  if (dims.empty()) return b.cast(squeezed, b.dtype(value));  // the same for all
  bool fits = dims.size() <= of_value.size() && dims[0] == of_value[0];
  for (size_t axis = 1; fits && axis < dims.size(); ++axis)
    fits = dims[axis] == of_value[axis] || dims[axis] == graph::Dim(1);
  if (!fits) {
    return e.fail(base::concat("weights ", shape_of(e, weights), " do not fit the values ", shape_of(e, value),
                               ": expected one for each example, or for each element"));
  }
  const ValueId own = b.cast(squeezed, b.dtype(value));
  if (dims.size() == 1) return own;
  dims.resize(of_value.size(), graph::Dim(1));
  return b.reshape(own, std::move(dims));
}

ValueId per_row(Expansion &e, ValueId weights, ValueId elements) {
  if (weights == kNoValue || elements == kNoValue) return kNoValue;
  graph::Dims dims = e.builder().dims(weights);
  if (dims.size() >= e.builder().rank(elements)) return weights;
  dims.resize(e.builder().rank(elements), graph::Dim(1));
  return e.builder().reshape(weights, std::move(dims));
}

ValueId reduce_elements(Expansion &e, ValueId values, ValueId weights, Reduction reduction) {
  GraphBuilder &b = e.builder();
  if (values == kNoValue) return kNoValue;
  const bool are_of_elements = weights != kNoValue && b.rank(weights) > 1;
  if (are_of_elements) {
    values = b.mul(values, weights);
    weights = per_example(e, weights);
  }
  const ValueId examples = per_example(e, values);
  // One weight for all counts for each example.
  if (weights != kNoValue && examples != kNoValue && b.rank(weights) == 0)
    weights = b.op("broadcast_to", {weights}, {{"dims", b.dims(examples)}});
  const ValueId weighted = weights == kNoValue || are_of_elements ? examples : b.mul(examples, weights);
  if (reduction == Reduction::sum) return b.reduce_sum(weighted);
  if (reduction == Reduction::mean || weights == kNoValue) return b.reduce_mean(weighted);
  return sum_over_sum(e, weighted, weights);
}

Reduction reduction_of(const Expansion &e) {
  const std::string &text = e.text("reduction");
  if (text == "sum") return Reduction::sum;
  return text == "mean" ? Reduction::mean : Reduction::weighted_mean;
}

}  // namespace tutti::impl::nn
