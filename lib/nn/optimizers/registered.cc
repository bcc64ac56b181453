// SPDX-License-Identifier: Apache-2.0
//
// Optimizers whose update is an op of the registry.
#include <utility>

#include "nn/optimizers/optimizer.h"

namespace tutti::impl::nn {
namespace {

/// Makes the update op the model's rule of training; a clip norm, groups and gradients that were set before stay.
ValueId set_optimizer(Expansion &e, graph::OptimizerSpec optimizer) {
  if (!check_learning_rate(e)) return kNoValue;
  optimizer.learning_rate = e.input(0);
  optimizer.lazy = e.flag("lazy");
  graph::TrainSpec train;
  train.optimizer = std::move(optimizer);
  train.clip = {e.f64("clip_value"), e.f64("clip_norm")};
  train.average = {e.f64("average_decay"), e.flag("average_ramp"), e.i64("average_start")};
  e.builder().set_train(std::move(train));
  return kNoValue;
}

/// Adam of Reddi, Kale and Kumar (2018), by the largest second moment so far.
ValueId set_amsgrad(Expansion &e, double weight_decay) {
  const double beta1 = e.f64("beta1"), beta2 = e.f64("beta2"), epsilon = e.f64("epsilon");
  return set_rule(e, {.slots = "m, v, v_max", .weight_decay = weight_decay}, [&](const Rule &rule) {
    const Term g = rule.gradient();
    const Term m = beta1 * rule.slot(0) + (1 - beta1) * g;
    const Term v = beta2 * rule.slot(1) + (1 - beta2) * (g * g);
    const Term v_max = rule.slot(2).with("maximum", v);
    const Term root = (v_max / rule.correction(beta2)).apply("sqrt") + epsilon;
    const Term step = m / rule.correction(beta1) / root + rule.decay() * rule.weight();
    return Terms{rule.weight() - rule.rate() * step, m, v, v_max};
  });
}

ValueId set_adam(Expansion &e, double weight_decay) {
  if (e.flag("amsgrad")) return set_amsgrad(e, weight_decay);
  return set_optimizer(e, {.op = "adam_update",
                           .attributes = {{"beta1", e.f64("beta1")},
                                          {"beta2", e.f64("beta2")},
                                          {"epsilon", e.f64("epsilon")},
                                          {"weight_decay", weight_decay}},
                           .slots = {{.name = "m"}, {.name = "v"}}});
}

}  // namespace

ValueId expand_optimizer_sgd(Expansion &e) {
  const double momentum = e.f64("momentum"), weight_decay = e.f64("weight_decay");
  if (momentum == 0) {
    if (e.flag("nesterov")) return e.fail("attribute 'nesterov' needs a momentum above 0");
    return set_optimizer(
        e, {.op = "sgd_update", .attributes = {{"weight_decay", weight_decay}}, .slots = {}, .keeps_unreached = true});
  }
  return set_optimizer(
      e, {.op = "momentum_update",
          .attributes = {{"momentum", momentum}, {"nesterov", e.flag("nesterov")}, {"weight_decay", weight_decay}},
          .slots = {{.name = "velocity"}}});
}

ValueId expand_optimizer_adam(Expansion &e) { return set_adam(e, 0); }

ValueId expand_optimizer_adamw(Expansion &e) { return set_adam(e, e.f64("weight_decay")); }

}  // namespace tutti::impl::nn
