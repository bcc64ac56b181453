// SPDX-License-Identifier: Apache-2.0
//
// Optimizers that scale the step of each variable by its norm.
#include "nn/optimizers/optimizer.h"

namespace tutti::impl::nn {
namespace {

/// numerator / denominator; 1 where one of them is 0.
Term trust_ratio(const Term &weight_norm, const Term &denominator) {
  const Term has_both = weight_norm.with("greater", 0).with("logical_and", denominator.with("greater", 0));
  return has_both.choose(weight_norm / denominator, weight_norm.number(1));
}

}  // namespace

ValueId expand_optimizer_lamb(Expansion &e) {
  const double beta1 = e.f64("beta1"), beta2 = e.f64("beta2"), epsilon = e.f64("epsilon");
  return set_rule(e, {.slots = "m, v", .weight_decay = e.f64("weight_decay")}, [&](const Rule &rule) {
    const Term g = rule.gradient(), w = rule.weight();
    const Term m = beta1 * rule.slot(0) + (1 - beta1) * g;
    const Term v = beta2 * rule.slot(1) + (1 - beta2) * (g * g);
    const Term root = (v / rule.correction(beta2)).apply("sqrt") + epsilon;
    const Term step = m / rule.correction(beta1) / root + rule.decay() * w;
    return Terms{w - rule.rate() * trust_ratio(w.norm(), step.norm()) * step, m, v};
  });
}

ValueId expand_optimizer_lars(Expansion &e) {
  const double momentum = e.f64("momentum"), trust = e.f64("trust"), epsilon = e.f64("epsilon");
  const bool nesterov = e.flag("nesterov");
  return set_rule(e, {.slots = "velocity", .weight_decay = e.f64("weight_decay")}, [&](const Rule &rule) {
    const Term g = rule.gradient(), w = rule.weight();
    const Term weight_norm = w.norm(), gradient_norm = g.norm();
    const Term norms = gradient_norm + rule.decay() * weight_norm + epsilon;
    const Term has_both = weight_norm.with("greater", 0).with("logical_and", gradient_norm.with("greater", 0));
    const Term ratio = has_both.choose(trust * weight_norm / norms, weight_norm.number(1));
    const Term scaled = ratio * rule.penalized_gradient();
    const Term velocity = momentum * rule.slot(0) + scaled;
    const Term step = nesterov ? scaled + momentum * velocity : velocity;
    return Terms{w - rule.rate() * step, velocity};
  });
}

}  // namespace tutti::impl::nn
