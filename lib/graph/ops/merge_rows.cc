// SPDX-License-Identifier: Apache-2.0
//
// merge_rows: shape and gradient rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Status infer_merge_rows(InferContext &context) {
  TUTTI_ASSIGN(const MergeRowsAttributes attributes, MergeRowsAttributes::from(context.node()));
  const tensor::DType dtype = context.input(0).dtype;
  if (context.rank(0) == 0) return context.input_error(0, "is a scalar, which has no rows");
  TUTTI_TRY(context.require_rank(1, 1));
  Dims expected = context.dims(0);
  expected[0] = context.dims(1)[0];
  if (context.dims(2) != expected)
    return context.input_error(2, base::concat("does not fit, expected ", to_string(expected)));
  const bool is_number = tensor::is_floating(dtype) || tensor::is_integer(dtype);
  if (dtype == tensor::DType::bytes || (!is_number && attributes.mode != MergeRowsAttributes::Mode::replace))
    return context.input_error(0, base::concat("is of ", tensor::name(dtype), ", expected numbers"));
  context.add_output(dtype, context.dims(0));
  return {};
}

namespace {

// The gradients where one of x and the updates makes each element of the result.
class Winners {
 public:
  Winners(GradientContext &context, bool is_maximum)
      : b_(context.builder()),
        x_(context.input(0)),
        indices_(context.input(1)),
        updates_(context.input(2)),
        y_(context.output(0)),
        dy_(context.output_gradient(0)),
        is_maximum_(is_maximum) {}

  void set(GradientContext &context) {
    // Of each update its number, or -1 where it makes nothing; of each element of the result that of what makes it.
    ValueId numbers = column(b_.op("iota", {}, {{"dims", Dims{b_.dims(indices_)[0]}}}), b_.rank(updates_));
    const ValueId none = b_.constant(-1, tensor::DType::i64);
    if (is_maximum_) numbers = b_.select(reaches_maximum(), numbers, none);
    Dims table = b_.dims(numbers);
    table[0] = b_.dims(x_)[0];
    const ValueId winners = b_.op("merge_rows", {b_.broadcast_to(none, table), indices_, numbers},
                                  {{"mode", std::string(is_maximum_ ? "maximum" : "replace")}});
    const ValueId zero = constant_like(b_, 0, dy_);
    if (context.needs(0)) context.set(0, b_.select(b_.op("equal", {winners, none}), dy_, zero));
    if (!context.needs(2)) return;
    const ValueId mine =
        b_.op("logical_and", {b_.op("equal", {rows_of(winners), numbers}), b_.op("not_equal", {numbers, none})});
    context.set(2, b_.select(mine, rows_of(dy_), zero));
  }

 private:
  ValueId rows_of(ValueId table) const { return b_.op("gather", {table, indices_}); }

  /// [n] as [n, 1, ...].
  ValueId column(ValueId x, size_t rank) const {
    Dims dims(rank, 1);
    dims[0] = b_.dims(x)[0];
    return b_.reshape(x, dims);
  }

  /// Is an update what x was replaced by, or equal to it?
  ValueId reaches_maximum() const {
    const ValueId before = rows_of(x_), after = rows_of(y_);
    const ValueId is_same = b_.op("equal", {updates_, after}), differs = b_.op("not_equal", {before, after});
    const ValueId was_number = b_.op("equal", {before, before}), is_nan = b_.op("not_equal", {updates_, updates_});
    return b_.op("logical_or", {b_.op("logical_and", {is_same, differs}), b_.op("logical_and", {is_nan, was_number})});
  }

  GraphBuilder &b_;
  const ValueId x_, indices_, updates_, y_, dy_;
  const bool is_maximum_;
};

}  // namespace

base::Status gradient_merge_rows(GradientContext &context) {
  TUTTI_ASSIGN(const MergeRowsAttributes attributes, MergeRowsAttributes::from(context.node()));
  if (attributes.mode != MergeRowsAttributes::Mode::add) {
    Winners(context, attributes.mode == MergeRowsAttributes::Mode::maximum).set(context);
    return {};
  }
  const ValueId dy = context.output_gradient(0);
  if (context.needs(0)) context.set(0, dy);
  if (context.needs(2)) context.set(2, context.builder().op("gather", {dy, context.input(1)}));
  return {};
}

}  // namespace tutti::impl::graph::ops
