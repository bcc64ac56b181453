// SPDX-License-Identifier: Apache-2.0
#include "nn/metrics/metric_parts.h"

#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/text.h"
#include "nn/fitting_inputs.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {

ValueId report(Expansion &e, ValueId value) {
  if (value == kNoValue || !e.builder().ok()) return kNoValue;
  e.builder().add_metric(e.text("name"), value);
  return value;
}

ValueId mean_of_rows(Expansion &e, ValueId values, size_t weights_index) {
  const ValueId weights = e.input(weights_index);
  const Reduction reduction = weights == kNoValue ? Reduction::mean : Reduction::weighted_mean;
  return reduce_elements(e, values, element_weights(e, weights, values), reduction);
}

ValueId as_sum(GraphBuilder &b, ValueId x) { return x == kNoValue ? kNoValue : b.cast(x, kSum); }

ValueId sum_constant(GraphBuilder &b, double value) { return b.constant(value, kSum); }

ValueId sum_constants(GraphBuilder &b, const std::vector<double> &values) {
  auto table = tensor::Tensor::from_values(tensor::Shape({int64_t(values.size())}), std::span<const double>(values));
  return table.ok() ? b.constant(table.take()) : b.fail(table.status());
}

ValueId over(GraphBuilder &b, ValueId x, ValueId y) {
  if (x == kNoValue || y == kNoValue) return kNoValue;
  const ValueId none = b.op("equal", {y, sum_constant(b, 0)});
  return b.select(none, sum_constant(b, 0), b.div(x, b.select(none, sum_constant(b, 1), y)));
}

ValueId is_above(GraphBuilder &b, ValueId x, double limit) {
  return x == kNoValue ? kNoValue : as_sum(b, b.op("greater", {x, b.constant(limit, b.dtype(x))}));
}

ValueId full_weights(Expansion &e, size_t index, ValueId like) {
  GraphBuilder &b = e.builder();
  if (like == kNoValue || !b.ok()) return kNoValue;
  if (!e.has_input(index)) return b.broadcast_to(sum_constant(b, 1), b.dims(like));
  const ValueId weights = per_row(e, element_weights(e, e.input(index), like), like);
  return weights == kNoValue ? kNoValue : b.broadcast_to(weights, b.dims(like));
}

ValueId with_last(GraphBuilder &b, ValueId x) {
  if (x == kNoValue) return kNoValue;
  graph::Dims dims = b.dims(x);
  dims.emplace_back(1);
  return b.reshape(x, std::move(dims));
}

ValueId sum_rows(GraphBuilder &b, ValueId x, size_t kept) {
  if (x == kNoValue || b.rank(x) <= kept) return x;
  std::vector<int64_t> axes(b.rank(x) - kept);
  std::iota(axes.begin(), axes.end(), 0);
  return b.reduce_sum(x, std::move(axes));
}

Pair same_shape(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (!e.has_input(0) || !e.has_input(1) || !b.ok()) return {};
  const Pair pair{squeeze_to_rank(e, e.input(0), b.rank(e.input(1))),
                  squeeze_to_rank(e, e.input(1), b.rank(e.input(0)))};
  if (!pair.ok() || b.dims(pair.predictions) == b.dims(pair.targets)) return pair;
  e.fail(base::concat(e.input_name(0), " ", graph::to_string(b.dims(e.input(0))), " and ", e.input_name(1), " ",
                      graph::to_string(b.dims(e.input(1))), " must have the same shape"));
  return {};
}

bool has_class_numbers(Expansion &e) {
  const GraphBuilder &b = e.builder();
  if (!e.has_input(0) || !e.has_input(1)) return false;
  const graph::Dims &scores = b.dims(e.input(0)), &labels = b.dims(e.input(1));
  return scores != labels && scores.size() >= 2 && scores.back() != graph::Dim(1);
}

ValueId zero_or_one(Expansion &e, ValueId targets) {
  GraphBuilder &b = e.builder();
  if (targets == kNoValue) return kNoValue;
  if (tensor::is_integer(b.dtype(targets))) return b.op("gather", {sum_constants(b, {0, 1}), as_indices(b, targets)});
  return b.dtype(targets) == tensor::DType::boolean ? as_sum(b, targets) : is_above(b, targets, 0.5);
}

double score_limit(const Expansion &e, double probability) {
  return e.flag("from_logits") ? std::log(probability) - std::log1p(-probability) : probability;
}

}  // namespace tutti::impl::nn
