// SPDX-License-Identifier: Apache-2.0
#include "nn/functions/sorting.h"

namespace tutti::impl::nn {
namespace {

Sorted largest_first(GraphBuilder &b, ValueId x, int64_t length) {
  const Values made = b.op_n("top_k", {x}, {{"k", length}}, 2);
  return {made[0], made[1]};
}

/// top_k has NaNs first, which are last in the order of the negated elements.
Sorted sorted_descending(GraphBuilder &b, ValueId x, int64_t length) {
  if (!tensor::is_floating(b.dtype(x))) return largest_first(b, x, length);
  Sorted sorted = sorted_ascending(b, b.neg(x), length);
  sorted.values = b.neg(sorted.values);
  return sorted;
}

/// Along the attribute `axis`, which is the last one here and is moved back.
ValueId sort(Expansion &e, ValueId Sorted::*result) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const auto rank = static_cast<int64_t>(b.rank(x));
  const auto axis = axis_of(e, e.i64("axis"), b.rank(x));
  const auto length = axis ? known_length(e, x, *axis) : std::nullopt;
  if (!length) return kNoValue;
  if (*length == 0) return result == &Sorted::values ? x : b.cast(x, tensor::DType::i64);
  const ValueId last = move_axis(b, x, *axis, rank - 1);
  const Sorted made = e.flag("descending") ? sorted_descending(b, last, *length) : sorted_ascending(b, last, *length);
  return move_axis(b, made.*result, rank - 1, *axis);
}

}  // namespace

// Of the elements in reverse order the largest first, then that in reverse order: of equal ones top_k takes the one
// that came last here first, which is last again in the end.
Sorted sorted_ascending(GraphBuilder &b, ValueId x, int64_t length) {
  if (!b.ok()) return {};
  const int64_t last = static_cast<int64_t>(b.rank(x)) - 1;
  const Sorted made = largest_first(b, reversed(b, x, last), length);
  const ValueId from_end = reversed(b, made.indices, last);
  const ValueId end = b.constant(static_cast<double>(length - 1), tensor::DType::i64);
  return {reversed(b, made.values, last), b.sub(end, from_end)};
}

ValueId expand_function_sort(Expansion &e) { return sort(e, &Sorted::values); }

ValueId expand_function_argsort(Expansion &e) { return sort(e, &Sorted::indices); }

}  // namespace tutti::impl::nn
