// SPDX-License-Identifier: Apache-2.0
//
// Areas under curves whose points are thresholds of scores.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "nn/fitting_inputs.h"
#include "nn/metrics/class_counts.h"

namespace tutti::impl::nn {
namespace {

/// Increasing, of scores; empty after an error. Thresholds i / (count - 1) are Keras', whose first and last count
/// everything and nothing, as here in any case.
std::vector<double> thresholds_of(Expansion &e) {
  std::vector<double> list = e.doubles("thresholds");
  for (const double threshold : list) {
    if (threshold >= 0 && threshold <= 1) continue;
    e.fail(base::concat("attribute 'thresholds' has ", threshold, ", expected numbers from 0 to 1"));
    return {};
  }
  const int64_t count = e.i64("threshold_count");
  for (int64_t i = 1; i + 1 < count && e.doubles("thresholds").empty(); ++i)
    list.push_back(double(i) / double(count - 1));
  for (double &threshold : list)
    threshold = score_limit(e, threshold);
  std::ranges::sort(list);
  return list;
}

/// Sums of weights: f64 [points] or [classes, points], from all rows to none of them, and [1] or [classes, 1].
struct Curve {
  ValueId hits = kNoValue, misses = kNoValue, actual = kNoValue, others = kNoValue;
};

/// Scores, their truth of 0 and 1, and their weights, of one shape.
struct Scored {
  ValueId scores = kNoValue, truth = kNoValue, weights = kNoValue;
};

Scored scored_numbers(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ExclusiveRows rows = exclusive_rows(e);
  if (!rows.ok()) return {};
  return {e.input(0), rows.actual, b.broadcast_to(rows.weights, b.dims(rows.actual))};
}

Scored scored(Expansion &e) {
  const std::string &average = e.text("average");
  if (has_class_numbers(e)) {
    if (average != "binary") return scored_numbers(e);
    e.fail(base::concat("average 'binary' takes ", e.input_name(1), " of the shape of ", e.input_name(0),
                        "; for class numbers choose micro, macro or weighted"));
    return {};
  }
  const Pair pair = same_shape(e);
  if (!pair.ok()) return {};
  if (average != "binary" && e.builder().rank(pair.predictions) < 2) {
    e.fail(base::concat("expected ", e.input_name(0), " [batch, classes], got ",
                        graph::to_string(e.builder().dims(e.input(0))), ": average 'binary' is for one class"));
    return {};
  }
  const ValueId truth = zero_or_one(e, pair.targets);
  return {pair.predictions, truth, full_weights(e, 2, truth)};
}

/// Of all elements, or of each class of the last dimension.
Curve curve_of(GraphBuilder &b, const Scored &rows, const std::vector<double> &thresholds, bool by_class) {
  const size_t kept = by_class ? 1 : 0;
  const ValueId points = b.cast(sum_constants(b, thresholds), b.dtype(rows.scores));
  const ValueId above = as_sum(b, b.op("greater", {with_last(b, rows.scores), points}));
  const ValueId of_class = b.mul(rows.weights, rows.truth);
  const ValueId of_others = b.sub(rows.weights, of_class);
  const auto to_column = [&](ValueId x) { return with_last(b, sum_rows(b, x, kept)); };
  Curve curve{kNoValue, kNoValue, to_column(of_class), to_column(of_others)};
  const auto points_of = [&](ValueId weights, ValueId all) {
    const ValueId sums = sum_rows(b, b.mul(with_last(b, weights), above), kept + 1);
    return b.concat({all, sums, b.sub(all, all)}, -1);
  };
  curve.hits = points_of(of_class, curve.actual);
  curve.misses = points_of(of_others, curve.others);
  return curve;
}

/// What is at the begin and at the end of each piece of a curve.
struct Ends {
  ValueId from = kNoValue, to = kNoValue;
};

Ends ends_of(GraphBuilder &b, ValueId points) {
  if (points == kNoValue) return {};
  graph::Dims begin(b.rank(points), graph::Dim(0)), size = b.dims(points);
  size.back() = graph::Dim(size.back().constant() - 1);
  graph::Dims second = begin;
  second.back() = graph::Dim(1);
  return {b.slice(points, begin, size), b.slice(points, second, size)};
}

/// Trapezoids.
ValueId roc_area(GraphBuilder &b, const Curve &curve) {
  const Ends wrong = ends_of(b, over(b, curve.misses, curve.others)),
             right = ends_of(b, over(b, curve.hits, curve.actual));
  return b.scale(sum_last(b, b.mul(b.sub(wrong.from, wrong.to), b.add(right.from, right.to))), 0.5);
}

/// Average precision: each gain of recall times the precision at its end.
ValueId stepwise_area(GraphBuilder &b, const Curve &curve) {
  const Ends hits = ends_of(b, curve.hits), misses = ends_of(b, curve.misses);
  const ValueId gains = over(b, b.sub(hits.from, hits.to), curve.actual);
  return sum_last(b, b.mul(gains, over(b, hits.from, b.add(hits.from, misses.from))));
}

/// Between two points hits and misses grow in proportion, and so precision is no straight line (Davis and Goadrich,
/// 2006): with hits = slope * p + intercept, where p is what is predicted, the area under hits / p from one to the
/// other is slope * (gain + intercept * log(p_from / p_to)) / actual.
ValueId interpolated_area(GraphBuilder &b, const Curve &curve) {
  const Ends hits = ends_of(b, curve.hits), predicted = ends_of(b, b.add(curve.hits, curve.misses));
  const ValueId gain = b.sub(hits.from, hits.to);
  const ValueId slope = over(b, gain, b.sub(predicted.from, predicted.to));
  const ValueId intercept = b.sub(hits.to, b.mul(slope, predicted.to));
  const ValueId ratio = over(b, predicted.from, predicted.to), one = sum_constant(b, 1);
  const ValueId growth = b.unary("log", b.select(b.op("greater", {ratio, sum_constant(b, 0)}), ratio, one));
  return sum_last(b, over(b, b.mul(slope, b.add(gain, b.mul(intercept, growth))), curve.actual));
}

}  // namespace

ValueId expand_metric_auc(Expansion &e) {
  GraphBuilder &b = e.builder();
  const std::vector<double> thresholds = thresholds_of(e);
  if (!b.ok()) return kNoValue;
  const Scored rows = scored(e);
  if (!b.ok() || rows.weights == kNoValue) return kNoValue;
  const bool by_class = e.text("average") != "binary" && e.text("average") != "micro";
  const Curve curve = curve_of(b, rows, thresholds, by_class);
  if (!b.ok()) return kNoValue;
  const bool stepwise = e.text("summation") == "step";
  const ValueId area = e.text("curve") == "roc" ? roc_area(b, curve)
                       : stepwise               ? stepwise_area(b, curve)
                                                : interpolated_area(b, curve);
  return report(e, by_class ? average_classes(e, area, sum_last(b, curve.actual)) : area);
}

}  // namespace tutti::impl::nn
