// SPDX-License-Identifier: Apache-2.0
#include "nn/metrics/class_counts.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/text.h"
#include "nn/fitting_inputs.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {
namespace {

/// 1 in the place of its class. A class out of range is an error of the run.
ValueId one_hot(GraphBuilder &b, ValueId classes, int64_t depth) {
  return b.op("one_hot", {classes}, {{"depth", depth}, {"dtype", kSum}});
}

ClassCounts summed(GraphBuilder &b, ValueId predicted, ValueId actual, ValueId weights, int64_t classes) {
  const size_t kept = classes == 0 ? 0 : 1;
  const ValueId of_class = b.mul(actual, weights);
  ClassCounts counts{sum_rows(b, b.mul(of_class, predicted), kept), sum_rows(b, b.mul(predicted, weights), kept),
                     sum_rows(b, of_class, kept), sum_rows(b, weights, kept), std::max<int64_t>(classes, 1)};
  if (classes != 0 || !b.ok()) return counts;
  for (ValueId *sum : {&counts.hits, &counts.predicted, &counts.actual, &counts.all})
    *sum = b.reshape(*sum, {graph::Dim(1)});
  return counts;
}

ClassCounts transformed(const ClassCounts &counts, int64_t classes, const std::function<ValueId(ValueId)> &each) {
  return {each(counts.hits), each(counts.predicted), each(counts.actual), each(counts.all), classes};
}

}  // namespace

ClassCounts chosen_classes(Expansion &e, const ClassCounts &counts) {
  GraphBuilder &b = e.builder();
  const std::vector<int64_t> &classes = e.ints("classes");
  if (classes.empty() || !counts.ok()) return counts;
  std::set<int64_t> known;
  for (const int64_t one : classes) {
    if (one >= 0 && one < counts.classes && known.insert(one).second) continue;
    e.fail(base::concat("attribute 'classes' has class ", one, known.contains(one) ? " twice" : "", ", expected ",
                        known.contains(one) ? "each once" : base::concat("a class below ", counts.classes)));
    return {};
  }
  auto table = tensor::Tensor::from_values(tensor::Shape({int64_t(classes.size())}), std::span<const int64_t>(classes));
  if (!table.ok()) return {b.fail(table.status())};
  const ValueId indices = b.constant(table.take());
  return transformed(counts, int64_t(classes.size()), [&](ValueId x) { return b.op("gather", {x, indices}); });
}

ExclusiveRows exclusive_rows(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId labels = as_indices(b, labels_of(e, 1));
  const int64_t classes = labels == kNoValue ? 0 : e.last_dimension(e.input(0));
  if (classes == 0) return {};
  // Ones of all classes, to find a label that is none.
  const ValueId known = b.op("gather", {sum_constants(b, std::vector<double>(size_t(classes), 1)), labels});
  const ValueId weights = b.mul(full_weights(e, 2, known), known);
  const ValueId predicted = b.op("argmax", {e.input(0)}, {{"axis", int64_t{-1}}});
  if (!b.ok()) return {};
  return {one_hot(b, predicted, classes), one_hot(b, labels, classes), with_last(b, weights), classes};
}

ClassCounts count_exclusive(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ExclusiveRows rows = exclusive_rows(e);
  if (!rows.ok()) return {};
  ClassCounts counts = summed(b, rows.predicted, rows.actual, rows.weights, rows.classes);
  counts.all = b.broadcast_to(b.reshape(sum_rows(b, rows.weights, 0), {graph::Dim(1)}), {graph::Dim(rows.classes)});
  return counts;
}

ClassCounts count_thresholded(Expansion &e, bool pooled) {
  GraphBuilder &b = e.builder();
  const Pair pair = same_shape(e);
  if (!pair.ok()) return {};
  if (!pooled && b.rank(pair.predictions) < 2) {
    e.fail(base::concat("expected ", e.input_name(0), " [batch, classes], got ", graph::to_string(b.dims(e.input(0))),
                        ": average 'binary' is for one class"));
    return {};
  }
  const int64_t classes = pooled ? 0 : e.last_dimension(pair.predictions);
  if (!pooled && classes == 0) return {};
  const ValueId predicted = is_above(b, pair.predictions, score_limit(e, e.f64("threshold")));
  const ValueId actual = zero_or_one(e, pair.targets);
  return summed(b, predicted, actual, full_weights(e, 2, actual), classes);
}

ClassCounts count_for_average(Expansion &e) {
  const bool binary = e.text("average") == "binary", numbers = has_class_numbers(e);
  if (binary && numbers) {
    e.fail(base::concat("average 'binary' takes ", e.input_name(1), " of the shape of ", e.input_name(0),
                        "; for class numbers choose micro, macro or weighted"));
    return {};
  }
  if (binary && !e.ints("classes").empty()) {
    e.fail("attribute 'classes' is for averages over classes, not for 'binary'");
    return {};
  }
  return binary ? count_thresholded(e, true)
                : chosen_classes(e, numbers ? count_exclusive(e) : count_thresholded(e, false));
}

ClassCounts count_all_classes(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (has_class_numbers(e)) return count_exclusive(e);
  const ClassCounts one = count_thresholded(e, true);
  if (!one.ok()) return {};
  const ValueId neither = b.add(b.sub(one.all, b.add(one.predicted, one.actual)), one.hits);
  return {b.concat({neither, one.hits}, 0), b.concat({b.sub(one.all, one.predicted), one.predicted}, 0),
          b.concat({b.sub(one.all, one.actual), one.actual}, 0), b.concat({one.all, one.all}, 0), 2};
}

ValueId average_classes(Expansion &e, ValueId values, ValueId actual) {
  GraphBuilder &b = e.builder();
  const std::string &average = e.text("average");
  if (values == kNoValue) return kNoValue;
  if (average == "none") return values;
  if (average == "weighted") return over(b, b.reduce_sum(b.mul(values, actual)), b.reduce_sum(actual));
  return b.reduce_mean(values);
}

ValueId averaged(Expansion &e, const ClassCounts &counts,
                 const std::function<Quotient(GraphBuilder &, const ClassCounts &)> &quotient) {
  GraphBuilder &b = e.builder();
  if (!counts.ok() || !b.ok()) return kNoValue;
  const bool micro = e.text("average") == "micro";
  const auto total = [&](ValueId x) { return b.reduce_sum(x, {}, true); };
  const ClassCounts own = micro ? transformed(counts, 1, total) : counts;
  const Quotient parts = quotient(b, own);
  return average_classes(e, over(b, parts.numerator, parts.denominator), own.actual);
}

ValueId mean_where_positive(GraphBuilder &b, ValueId values, ValueId counts) {
  const ValueId present = is_above(b, counts, 0);
  return over(b, b.reduce_sum(b.mul(values, present)), b.reduce_sum(present));
}

}  // namespace tutti::impl::nn
