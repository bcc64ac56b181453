// SPDX-License-Identifier: Apache-2.0
//
// Connectionist temporal classification: a loop over frames, in logarithms, over all ways in which labels can lie in
// them. Lengths and labels that cannot be are found by gathers of what can be, whose scopes say what it is.
#include "base/text.h"
#include "nn/losses/loss_parts.h"

namespace tutti::impl::nn {
namespace {

using graph::Dim;
using graph::Dims;
using tensor::DType;
using Values = GraphBuilder::Values;

/// The logarithm of 0: far below all sums of logarithms, of which each is at least kLeastLogarithm, and finite, so that
/// differences are numbers.
constexpr double kNever = -1e30;
constexpr double kLeastLogarithm = -1e20;
/// Losses from here on are those of labels that have no alignment, or one of probability 0.
constexpr double kInfinite = 1e19;

/// Indices of the inputs.
enum Input : size_t { kScores, kLabels, kInputLengths, kLabelLengths, kWeights };

/// 0, 1, ... along an axis of that length.
ValueId counting(GraphBuilder &b, const Dim &length) {
  return b.op("iota", {}, {{"dims", Dims{length}}, {"dtype", DType::i32}});
}

/// log(exp(x) + exp(y) + ...), elementwise. The largest is a mere shift, through which no gradient has to flow.
ValueId log_sum(GraphBuilder &b, const Values &terms) {
  ValueId most = terms[0];
  for (size_t i = 1; i < terms.size(); ++i)
    most = b.op("maximum", {most, terms[i]});
  most = b.unary("stop_gradient", most);
  ValueId sum = kNoValue;
  for (const ValueId term : terms) {
    const ValueId share = b.unary("exp", b.sub(term, most));
    sum = sum == kNoValue ? share : b.add(sum, share);
  }
  return b.add(b.unary("log", sum), most);
}

/// A row of labels l1, l2, ... is walked through as blank 0, l1, blank 1, l2, ..., blank n, one place or more for each
/// frame; labels that differ need no blank between them. States are the logarithms of the probabilities to be at a
/// blank [batch, labels + 1] and at a label [batch, labels].
class Alignments {
 public:
  explicit Alignments(Expansion &e) : e_(e), b_(e.builder()) {}

  /// [batch]: the negative logarithms of the probabilities of the labels.
  ValueId run() {
    if (!check_scores() || !check_labels()) return kNoValue;
    frames_ = lengths(kInputLengths, dims_[1], "input_lengths");
    counts_ = lengths(kLabelLengths, most_, "label_lengths");
    if (!b_.ok()) return kNoValue;
    find_labels();
    find_repeats();
    const ValueId values = ends(walk());
    if (!e_.flag("zero_infinity") || !b_.ok()) return values;
    const ValueId is_finite = b_.op("less", {values, b_.constant(kInfinite, dtype_)});
    return b_.select(is_finite, values, b_.constant(0, dtype_));
  }

  /// [batch]: how many labels a row has.
  ValueId counts() const { return counts_; }

 private:
  bool refuse(std::string_view expected, size_t input) {
    const ValueId got = e_.input(input);
    e_.fail(base::concat("expected ", expected, ", got ", tensor::name(b_.dtype(got)), " ",
                         graph::to_string(b_.dims(got))));
    return false;
  }

  bool check_scores() {
    const ValueId scores = e_.input(kScores);
    if (scores == kNoValue) return false;
    if (b_.rank(scores) != 3 || !tensor::is_floating(b_.dtype(scores)))
      return refuse("logits of floating point [batch, time, classes]", kScores);
    dims_ = b_.dims(scores);
    classes_ = e_.last_dimension(scores);
    if (b_.ok() && e_.i64("blank") >= classes_)
      e_.fail(base::concat("blank is ", e_.i64("blank"), ", expected one of the ", classes_, " classes"));
    dtype_ = b_.dtype(scores) == DType::f64 ? DType::f64 : DType::f32;
    return b_.ok();
  }

  bool check_labels() {
    const ValueId labels = e_.input(kLabels);
    if (labels == kNoValue) return false;
    if (b_.rank(labels) != 2 || b_.dims(labels)[0] != dims_[0] || !tensor::is_integer(b_.dtype(labels)))
      return refuse(base::concat("labels of integers [", dims_[0], ", most labels]"), kLabels);
    most_ = b_.dims(labels)[1];
    return true;
  }

  /// [batch]: those of an input, from 0 to `most`; `most` for each row where there is no such input.
  ValueId lengths(size_t input, const Dim &most, std::string_view name) {
    const ValueId known = counting(b_, most + Dim(1));
    if (!e_.has_input(input)) return b_.broadcast_to(b_.reduce("reduce_max", known, {0}), {dims_[0]});
    const ValueId given = e_.input(input);
    if (b_.dims(given) != Dims{dims_[0]} || !tensor::is_integer(b_.dtype(given))) {
      refuse(base::concat(name, " of integers [", dims_[0], "]"), input);
      return kNoValue;
    }
    return pick(name, known, as_indices(b_, given));
  }

  ValueId pick(std::string_view scope, ValueId known, ValueId indices) {
    b_.push_scope(scope);
    const ValueId found = b_.op("gather", {known, indices});
    b_.pop_scope();
    return found;
  }

  /// [rows] as [rows, 1].
  ValueId as_column(ValueId rows) { return b_.reshape(rows, {dims_[0], Dim(1)}); }

  ValueId number(double value) { return b_.constant(value, dtype_); }

  /// Labels [batch, most], each a class that is not the blank; the blank behind the end of a row.
  void find_labels() {
    const ValueId labels = as_indices(b_, e_.input(kLabels));
    const auto blank = static_cast<double>(e_.i64("blank"));
    is_label_ = b_.op("less", {counting(b_, most_), as_column(counts_)});
    const ValueId kept = b_.select(is_label_, labels, b_.constant(blank, b_.dtype(labels)));
    const ValueId found = pick("labels", counting(b_, Dim(classes_)), kept);
    const ValueId is_blank = b_.op("logical_and", {is_label_, b_.op("equal", {found, b_.constant(blank, DType::i32)})});
    const ValueId nothing = pick("labels_that_are_blank", counting(b_, Dim(1)), b_.cast(is_blank, DType::i32));
    labels_ = b_.add(found, nothing);
  }

  /// Which labels are as the one before, so that there is a blank between; and that each row has frames enough.
  void find_repeats() {
    const ValueId shifted = b_.op(
        "pad", {labels_}, {{"low", std::vector<int64_t>{0, 1}}, {"high", std::vector<int64_t>{0, 0}}, {"value", -1.0}});
    const ValueId before = first(shifted, most_);
    const ValueId is_repeat = b_.op("logical_and", {is_label_, b_.op("equal", {labels_, before})});
    skip_ = b_.select(is_repeat, number(kNever), number(0));
    if (e_.flag("zero_infinity")) return;
    const ValueId needed = b_.add(counts_, b_.reduce_sum(b_.cast(is_repeat, DType::i32), {1}));
    const ValueId spare = pick("spare_frames", counting(b_, dims_[1] + Dim(1)), b_.sub(frames_, needed));
    frames_ = b_.add(needed, spare);
  }

  /// The first columns of [batch, columns].
  ValueId first(ValueId x, const Dim &columns) { return b_.slice(x, {Dim(0), Dim(0)}, {b_.dims(x)[0], columns}); }

  /// Logarithms of the probabilities of the classes [batch, time, classes]. What is behind the end of a row may be
  /// anything.
  ValueId logarithms() {
    ValueId scores = b_.cast(e_.input(kScores), dtype_);
    if (e_.has_input(kInputLengths)) {
      const ValueId is_frame = b_.op("less", {counting(b_, dims_[1]), as_column(frames_)});
      scores = b_.select(b_.reshape(is_frame, {dims_[0], dims_[1], Dim(1)}), scores, number(0));
    }
    if (e_.text("form") == "logits") scores = b_.unary("log_softmax", scores);
    return at_least(b_, scores, kLeastLogarithm);
  }

  /// The states after the last frame of each row; the last value is what was taken off them [batch, time, 1].
  Values walk() {
    const ValueId scores = logarithms();
    const ValueId blank = b_.slice(scores, {Dim(0), Dim(0), Dim(e_.i64("blank"))}, {dims_[0], dims_[1], Dim(1)});
    const ValueId frame = b_.reshape(counting(b_, dims_[1]), {Dim(1), dims_[1]});
    is_class_ = b_.op("equal", {b_.reshape(labels_, {dims_[0], most_, Dim(1)}), counting(b_, Dim(classes_))});
    const ValueId is_start = b_.op("equal", {counting(b_, most_ + Dim(1)), b_.constant(0, DType::i32)});
    const ValueId start = b_.select(is_start, number(0), number(kNever));
    const Values initial = {b_.broadcast_to(start, {dims_[0], most_ + Dim(1)}),
                            b_.broadcast_to(number(kNever), {dims_[0], most_})};
    frames_ = as_column(frames_);
    return b_.scan(
        initial, {scores, blank, frame}, [&](GraphBuilder &, const Values &at) { return step(at); }, 1);
  }

  /// One frame on. `at`: the states, logarithms of the classes [batch, classes] and of the blank [batch, 1], and the
  /// number of the frame. The last result is what was taken off the states.
  Values step(const Values &at) {
    const ValueId blanks = at[0], labels = at[1];
    const ValueId before =
        b_.op("pad", {labels},
              {{"low", std::vector<int64_t>{0, 1}}, {"high", std::vector<int64_t>{0, 0}}, {"value", kNever}});
    const ValueId skipped = b_.add(first(before, most_), skip_);
    const ValueId at_blank = b_.add(log_sum(b_, {blanks, before}), at[3]);
    const ValueId classes = b_.reshape(at[2], {dims_[0], Dim(1), Dim(classes_)});
    const ValueId own = sum_last(b_, b_.select(is_class_, classes, number(0)));
    const ValueId at_label = b_.add(log_sum(b_, {labels, first(blanks, most_), skipped}), own);
    const ValueId most = largest(at_blank, at_label), is_frame = b_.op("less", {at[4], frames_});
    Values next = {b_.select(is_frame, b_.sub(at_blank, most), blanks),
                   b_.select(is_frame, b_.sub(at_label, most), labels)};
    // The backward pass need not make the states again.
    if (e_.training()) next.insert(next.end(), {next[0], next[1]});
    next.push_back(b_.select(is_frame, most, number(0)));
    return next;
  }

  /// [batch, 1]: what is taken off the states of a frame, so that sums over many frames leave them digits. It is added
  /// again in the end, so that no gradient has to flow through it.
  ValueId largest(ValueId at_blank, ValueId at_label) {
    const ValueId of_blanks = b_.reduce("reduce_max", at_blank, {1}, true);
    const ValueId of_labels = b_.reduce("reduce_max", at_label, {1}, true);
    return b_.unary("stop_gradient", b_.op("maximum", {of_blanks, of_labels}));
  }

  /// A row ends at its last label or at the blank behind it.
  ValueId ends(const Values &states) {
    if (!b_.ok()) return kNoValue;
    const ValueId count = as_column(counts_), one = b_.constant(1, DType::i32);
    const ValueId is_blank = b_.op("equal", {counting(b_, most_ + Dim(1)), count});
    const ValueId is_last = b_.op("equal", {b_.add(counting(b_, most_), one), count});
    const ValueId blank = sum_last(b_, b_.select(is_blank, states[0], number(0)));
    const ValueId label = sum_last(b_, b_.select(is_last, states[1], number(0)));
    const ValueId is_empty = b_.op("less", {counts_, one});
    const ValueId taken = b_.reduce_sum(b_.unary("stop_gradient", states.back()), {1, 2});
    return b_.neg(b_.add(log_sum(b_, {blank, b_.select(is_empty, number(kNever), label)}), taken));
  }

  Expansion &e_;
  GraphBuilder &b_;
  Dims dims_;  // of the scores
  Dim most_;   // labels of a row
  int64_t classes_ = 0;
  DType dtype_ = DType::f32;
  ValueId frames_ = kNoValue, counts_ = kNoValue;    // [batch] of frames, and of labels
  ValueId labels_ = kNoValue, is_label_ = kNoValue;  // [batch, most]
  ValueId skip_ = kNoValue;                          // [batch, most]: kNever where a blank may not be left out, else 0
  ValueId is_class_ = kNoValue;                      // [batch, most, classes]
};

}  // namespace

ValueId expand_loss_ctc(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "ctc");
  Alignments alignments(e);
  ValueId values = alignments.run();
  if (e.flag("per_label") && b.ok()) {
    const ValueId count = b.op("maximum", {alignments.counts(), b.constant(1, DType::i32)});
    values = b.div(values, b.cast(count, b.dtype(values)));
  }
  return reduce_loss(e, values, e.input(kWeights));
}

}  // namespace tutti::impl::nn
