// SPDX-License-Identifier: Apache-2.0
//
// Losses of directions and distances of vectors over the last dimension.
#include "base/text.h"
#include "nn/losses/loss_parts.h"

namespace tutti::impl::nn {
namespace {

/// Below this a sum of squares counts as 0: roots and quotients of it have no gradient.
constexpr double kLeastSquare = 1e-30;

bool are_vectors(Expansion &e) {
  if (e.builder().rank(e.input(0)) >= 2) return true;
  e.fail(base::concat("expected ", e.input_name(0), " [batch, channels], got a value of lower rank"));
  return false;
}

ValueId squared_distance(GraphBuilder &b, ValueId x, ValueId y) { return sum_last(b, b.unary("square", b.sub(x, y))); }

/// sqrt(square); 0 with gradient 0 for 0.
ValueId root(GraphBuilder &b, ValueId square) {
  const ValueId zero = b.constant(0, b.dtype(square));
  const ValueId is_positive = b.op("greater", {square, b.constant(kLeastSquare, b.dtype(square))});
  const ValueId safe = b.select(is_positive, square, b.constant(1, b.dtype(square)));
  return b.select(is_positive, b.unary("sqrt", safe), zero);
}

/// 1 / norm; 0 with gradient 0 for a vector of zeros.
ValueId inverse_norm(GraphBuilder &b, ValueId x) {
  const ValueId square = sum_last(b, b.unary("square", x));
  const ValueId is_positive = b.op("greater", {square, b.constant(kLeastSquare, b.dtype(square))});
  const ValueId safe = b.select(is_positive, square, b.constant(1, b.dtype(square)));
  return b.select(is_positive, b.unary("rsqrt", safe), b.constant(0, b.dtype(square)));
}

}  // namespace

ValueId expand_loss_cosine_similarity(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId predictions = e.input(0), targets = like_first(e, 1);
  if (targets == kNoValue || !are_vectors(e)) return kNoValue;
  const ValueId norms = b.mul(inverse_norm(b, predictions), inverse_norm(b, targets));
  return reduce_loss(e, b.neg(b.mul(sum_last(b, b.mul(predictions, targets)), norms)), e.input(2));
}

ValueId expand_loss_contrastive(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId first = e.input(0), second = like_first(e, 1);
  if (second == kNoValue || e.input(2) == kNoValue || !are_vectors(e)) return kNoValue;
  const ValueId square = squared_distance(b, first, second);
  if (square == kNoValue) return kNoValue;
  const ValueId given = squeeze_to_rank(e, e.input(2), b.rank(square));
  if (!(b.dims(given) == b.dims(square))) {
    return e.fail(base::concat("targets ", graph::to_string(b.dims(e.input(2))), " do not fit the pairs: expected ",
                               graph::to_string(b.dims(square))));
  }
  const ValueId targets = b.cast(given, b.dtype(square));
  const ValueId lacking = b.unary("relu", b.add_scalar(b.neg(root(b, square)), e.f64("margin")));
  const ValueId values = b.add(b.mul(targets, square), b.mul(one_minus(b, targets), b.unary("square", lacking)));
  return reduce_loss(e, values, e.input(3), weights_by_binary_target(e, targets));
}

ValueId expand_loss_triplet(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId anchor = e.input(0), positive = like_first(e, 1), negative = like_first(e, 2);
  if (positive == kNoValue || negative == kNoValue || !are_vectors(e)) return kNoValue;
  const auto distance = [&](ValueId x, ValueId y) {
    const ValueId square = squared_distance(b, x, y);
    return e.flag("squared") || square == kNoValue ? square : root(b, square);
  };
  ValueId apart = distance(anchor, negative);
  if (e.flag("swap")) apart = b.op("minimum", {apart, distance(positive, negative)});
  const ValueId values = b.unary("relu", b.add_scalar(b.sub(distance(anchor, positive), apart), e.f64("margin")));
  return reduce_loss(e, values, e.input(3));
}

}  // namespace tutti::impl::nn
