// SPDX-License-Identifier: Apache-2.0
//
// Optimizers that scale each element's step by sums or means of its squared gradients.
#include "nn/optimizers/optimizer.h"

namespace tutti::impl::nn {

ValueId expand_optimizer_adagrad(Expansion &e) {
  const double rate_decay = e.f64("rate_decay"), epsilon = e.f64("epsilon");
  const RuleSettings settings{"sum", {e.f64("initial_sum")}, e.f64("weight_decay"), true};
  return set_rule(e, settings, [&](const Rule &rule) {
    const Term g = rule.penalized_gradient();
    const Term sum = rule.slot(0) + g * g;
    const Term slowing = rate_decay * (rule.count() + -1.0) + 1.0;
    const Term rate = rate_decay == 0 ? rule.rate() : rule.rate() / rule.narrowed(slowing);
    return Terms{rule.weight() - rate * (g / (sum.apply("sqrt") + epsilon)), sum};
  });
}

ValueId expand_optimizer_adadelta(Expansion &e) {
  const double rho = e.f64("rho"), epsilon = e.f64("epsilon");
  const RuleSettings settings{"mean_square, mean_square_step", {}, e.f64("weight_decay")};
  return set_rule(e, settings, [&](const Rule &rule) {
    const Term g = rule.penalized_gradient();
    const Term squares = rho * rule.slot(0) + (1 - rho) * (g * g);
    const Term step = ((rule.slot(1) + epsilon).apply("sqrt") / (squares + epsilon).apply("sqrt")) * g;
    const Term steps = rho * rule.slot(1) + (1 - rho) * (step * step);
    return Terms{rule.weight() - rule.rate() * step, squares, steps};
  });
}

ValueId expand_optimizer_rmsprop(Expansion &e) {
  const double rho = e.f64("rho"), momentum = e.f64("momentum"), epsilon = e.f64("epsilon");
  const bool centered = e.flag("centered"), has_momentum = momentum != 0;
  RuleSettings settings{"mean_square", {}, e.f64("weight_decay")};
  if (centered) settings.slots += ", mean";
  if (has_momentum) settings.slots += ", velocity";
  return set_rule(e, settings, [&](const Rule &rule) {
    const Term g = rule.penalized_gradient();
    Terms slots{rho * rule.slot(0) + (1 - rho) * (g * g)};
    Term variance = slots[0];
    if (centered) {
      slots.push_back(rho * rule.slot(1) + (1 - rho) * g);
      variance = variance - slots[1] * slots[1];
    }
    Term step = g / (variance.apply("sqrt") + epsilon);
    if (has_momentum) {
      step = momentum * rule.slot(slots.size()) + step;
      slots.push_back(step);
    }
    slots.insert(slots.begin(), rule.weight() - rule.rate() * step);
    return slots;
  });
}

ValueId expand_optimizer_ftrl(Expansion &e) {
  const double power = -e.f64("rate_power"), l1 = e.f64("l1"), l2 = e.f64("l2"), shrinkage = e.f64("l2_shrinkage");
  const RuleSettings settings{"sum, linear", {e.f64("initial_sum"), 0}, 0};
  return set_rule(e, settings, [&](const Rule &rule) {
    const Term g = rule.gradient(), w = rule.weight();
    const auto powered = [&](const Term &x) { return power == 0.5 ? x.apply("sqrt") : x.with("pow", power); };
    const Term sum = rule.slot(0) + g * g;
    const Term sigma = (powered(sum) - powered(rule.slot(0))) / rule.rate();
    const Term linear = rule.slot(1) + (g + 2 * shrinkage * w) - sigma * w;
    const Term quadratic = (powered(sum) + e.f64("beta")) / rule.rate() + 2 * l2;
    const Term beyond = linear.with("minimum", l1).with("maximum", -l1) - linear;  // 0 where |linear| is within l1
    return Terms{beyond / quadratic, sum, linear};
  });
}

}  // namespace tutti::impl::nn
