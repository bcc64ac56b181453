// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/gradient_clip.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

namespace tutti::impl::distribute {

using graph::Dim;
using graph::GraphBuilder;
using graph::kNoValue;
using graph::ValueId;
using tensor::DType;

namespace {

class Clipping {
 public:
  Clipping(GraphBuilder &finish, const GradientLimits &limits, VariableGradients &gradients)
      : finish_(finish), limits_(limits), gradients_(gradients) {}

  void clip_values() {
    const double limit = limits_.each.value;
    for (auto &[variable, gradient] : gradients_) {
      gradient = finish_.cast(gradient, variable->dtype);
      gradient = finish_.op("maximum", {gradient, finish_.constant(-limit, variable->dtype)});
      gradient = finish_.op("minimum", {gradient, finish_.constant(limit, variable->dtype)});
    }
  }

  /// Gives the global norm, if that is limited.
  ValueId clip_norms(ValueId &ok) {
    const ValueId norms = roots(sum_slices(squares()));
    ok = finish_.op("logical_and", {ok, finish_.unary("all_finite", norms)});
    const bool has_each = limits_.each.norm > 0, has_global = limits_.global_norm > 0;
    const Factor each = has_each ? factor(limits_.each.norm, norms) : Factor();
    const ValueId global = has_global ? (has_each ? norm_of(product(norms, each)) : norms) : kNoValue;
    const Factor shared = has_global ? factor(limits_.global_norm, global) : Factor();
    for (size_t i = 0; i < gradients_.size(); ++i) {
      Factor own = has_each ? element(each, i) : shared;
      if (has_each && has_global) own = {finish_.mul(own.first, shared.first), finish_.mul(own.second, shared.second)};
      auto &[variable, gradient] = gradients_[i];
      gradient = finish_.cast(product(widened(gradient), own), variable->dtype);
    }
    return global;
  }

 private:
  /// Sums of squares of gradients, f64. Where some are f64 their squares may be too large for that: `small` has them
  /// all once more, times kShrunk² (elements that matter have squares then).
  struct Squares {
    ValueId whole = kNoValue, small = kNoValue;
  };

  /// What f32 and f64 are multiplied by, exactly, before they are squared where the sum would be too large otherwise.
  static constexpr double kShrunkSingle = 0x1p-96, kShrunk = 0x1p-544;
  /// limit / norm as a product: where the norm is much larger than the limit, it may be less than the smallest normal
  /// number of the gradient's dtype. `first` is a power of two, and 1 for all usual norms. f64.
  struct Factor {
    ValueId first = kNoValue, second = kNoValue;
  };

  ValueId norm_of(ValueId norms) {
    // None is above the limit, whose square may be too large.
    const ValueId largest = finish_.op("maximum", {finish_.reduce("reduce_max", norms, {}), f64(0x1p-1000)});
    return finish_.mul(largest, finish_.unary("sqrt", sum_of_squares(finish_.div(norms, largest))));
  }

  /// 1 for a norm within the limit.
  Factor factor(double limit, ValueId norm) {
    constexpr double kStep = 0x1p-64;
    const ValueId bound = f64(limit);
    const ValueId first = finish_.select(finish_.op("less", {bound, finish_.scale(norm, kStep)}), f64(kStep), f64(1));
    return {first, finish_.div(bound, finish_.mul(finish_.op("maximum", {norm, bound}), first))};
  }

  Factor element(const Factor &factors, size_t i) {
    const auto at = [&](ValueId values) {
      return finish_.reshape(finish_.slice(values, {Dim(static_cast<int64_t>(i))}, {Dim(1)}), {});
    };
    return {at(factors.first), at(factors.second)};
  }

  ValueId product(ValueId x, const Factor &factor) {
    for (const ValueId part : {factor.first, factor.second})
      x = finish_.mul(x, finish_.cast(part, finish_.dtype(x)));
    return x;
  }

  ValueId f64(double value) { return finish_.constant(value, DType::f64); }
  ValueId sum_of_squares(ValueId x) { return finish_.reduce_sum(finish_.unary("square", x)); }
  /// Of sums of squares; neither NaN nor infinite.
  ValueId is_a_number(ValueId squares) {
    const bool is_single = finish_.dtype(squares) == DType::f32;
    const double largest = is_single ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    return finish_.op("less_equal", {squares, finish_.constant(largest, finish_.dtype(squares))});
  }
  /// Squares of halves are f32.
  ValueId widened(ValueId x) { return tensor::size_bytes(finish_.dtype(x)) < 4 ? finish_.cast(x, DType::f32) : x; }

  Squares squares_of(ValueId gradient, bool has_small) {
    const ValueId plain = sum_of_squares(gradient);
    if (finish_.dtype(gradient) == DType::f64) return {plain, sum_of_squares(finish_.scale(gradient, kShrunk))};
    const ValueId shrunk = finish_.cast(sum_of_squares(finish_.scale(gradient, kShrunkSingle)), DType::f64);
    const ValueId restored = finish_.scale(shrunk, 1 / (kShrunkSingle * kShrunkSingle));
    const ValueId whole = finish_.select(is_a_number(plain), finish_.cast(plain, DType::f64), restored);
    return {whole, has_small ? finish_.scale(finish_.scale(whole, kShrunk), kShrunk) : kNoValue};
  }

  /// Of each variable's slice, or one number for all where only the global norm is asked for.
  Squares squares() {
    const bool has_small =
        std::ranges::any_of(gradients_, [](const auto &one) { return one.first->dtype == DType::f64; });
    GraphBuilder::Values whole, small;
    for (auto &[variable, gradient] : gradients_) {
      gradient = finish_.cast(gradient, variable->dtype);
      const Squares part = squares_of(widened(gradient), has_small);
      whole.push_back(part.whole);
      small.push_back(part.small);
    }
    return {joined(whole), has_small ? joined(small) : kNoValue};
  }

  ValueId joined(GraphBuilder::Values &parts) {
    if (limits_.each.norm <= 0)
      return std::accumulate(parts.begin() + 1, parts.end(), parts.front(),
                             [&](ValueId all, ValueId part) { return finish_.add(all, part); });
    for (ValueId &part : parts)
      part = finish_.reshape(part, {Dim(1)});
    return finish_.concat(parts, 0);
  }

  Squares sum_slices(const Squares &squares) {
    if (!limits_.is_sliced) return squares;
    if (squares.small == kNoValue) return {sum_of_slices(squares.whole), kNoValue};
    const graph::Dims dims = finish_.dims(squares.whole);
    const Dim count(limits_.each.norm > 0 ? static_cast<int64_t>(gradients_.size()) : 1);
    const ValueId both = sum_of_slices(
        finish_.concat({finish_.reshape(squares.whole, {count}), finish_.reshape(squares.small, {count})}, 0));
    return {finish_.reshape(finish_.slice(both, {Dim(0)}, {count}), dims),
            finish_.reshape(finish_.slice(both, {count}, {count}), dims)};
  }

  ValueId sum_of_slices(ValueId squares) {
    return finish_.op("all_reduce", {squares}, {{"label", std::string("gradient norm")}});
  }

  ValueId roots(const Squares &squares) {
    const ValueId roots = finish_.unary("sqrt", squares.whole);
    if (squares.small == kNoValue) return roots;
    const ValueId large = finish_.scale(finish_.unary("sqrt", squares.small), 1 / kShrunk);
    return finish_.select(is_a_number(squares.whole), roots, large);
  }

  GraphBuilder &finish_;
  const GradientLimits &limits_;
  VariableGradients &gradients_;
};

}  // namespace

base::Result<ValueId> clip_gradients(GraphBuilder &finish, const GradientLimits &limits, VariableGradients &gradients,
                                     ValueId &ok) {
  ValueId global = kNoValue;
  if (gradients.empty()) return global;
  Clipping clipping(finish, limits, gradients);
  if (limits.each.value > 0) clipping.clip_values();
  if (limits.needs_norms()) global = clipping.clip_norms(ok);
  TUTTI_TRY(finish.status());
  return global;
}

}  // namespace tutti::impl::distribute
