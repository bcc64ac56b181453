// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_clip.h"

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
    const ValueId norms = finish_.unary("sqrt", sum_slices(squares()));
    ok = finish_.op("logical_and", {ok, finish_.unary("all_finite", norms)});
    const bool has_each = limits_.each.norm > 0;
    const ValueId factors = has_each ? factor(limits_.each.norm, norms) : kNoValue;
    ValueId global = kNoValue, shared = kNoValue;
    if (limits_.global_norm > 0) {
      global = has_each ? norm_of(finish_.mul(norms, factors)) : norms;
      shared = factor(limits_.global_norm, global);
    }
    for (size_t i = 0; i < gradients_.size(); ++i) {
      ValueId own = shared;
      if (has_each) {
        own = finish_.reshape(finish_.slice(factors, {Dim(static_cast<int64_t>(i))}, {Dim(1)}), {});
        if (shared != kNoValue) own = finish_.mul(own, shared);
      }
      auto &[variable, gradient] = gradients_[i];
      gradient = finish_.mul(gradient, finish_.cast(own, variable->dtype));
    }
    return global;
  }

 private:
  ValueId norm_of(ValueId norms) { return finish_.unary("sqrt", finish_.reduce_sum(finish_.unary("square", norms))); }

  /// 1 for a norm within the limit.
  ValueId factor(double limit, ValueId norm) {
    const ValueId bound = finish_.constant(limit, DType::f64);
    return finish_.div(bound, finish_.op("maximum", {norm, bound}));
  }

  /// Of each variable's slice, or one number for all where only the global norm is asked for.
  ValueId squares() {
    GraphBuilder::Values each;
    ValueId all = kNoValue;
    for (auto &[variable, gradient] : gradients_) {
      gradient = finish_.cast(gradient, variable->dtype);
      const ValueId part = finish_.cast(finish_.reduce_sum(finish_.unary("square", gradient)), DType::f64);
      if (limits_.each.norm > 0) each.push_back(finish_.reshape(part, {Dim(1)}));
      all = all == kNoValue ? part : finish_.add(all, part);
    }
    return each.empty() ? all : finish_.concat(each, 0);
  }

  ValueId sum_slices(ValueId squares) {
    if (!limits_.is_sliced) return squares;
    return finish_.op("all_reduce", {squares}, {{"label", std::string("gradient norm")}});
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
