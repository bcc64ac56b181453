// SPDX-License-Identifier: Apache-2.0
//
// Relatives of Adam, element by element.
#include <cmath>

#include "nn/optimizers/optimizer.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {

ValueId expand_optimizer_adamax(Expansion &e) {
  const double beta1 = e.f64("beta1"), beta2 = e.f64("beta2"), epsilon = e.f64("epsilon");
  return set_rule(e, {.slots = "m, u", .weight_decay = e.f64("weight_decay")}, [&](const Rule &rule) {
    const Term g = rule.penalized_gradient();
    const Term m = beta1 * rule.slot(0) + (1 - beta1) * g;
    const Term u = (beta2 * rule.slot(1)).with("maximum", g.apply("abs") + epsilon);
    return Terms{rule.weight() - rule.rate() / rule.correction(beta1) * (m / u), m, u};
  });
}

namespace {

/// The momentum of NAdam (Dozat, 2016) at update t is beta * (1 - q ^ t / 2), q = 0.96 ^ psi, and the product of those
/// until t. Its logarithm is t ln beta - sum over k of (1 / 2) ^ k / k * (q ^ k + ... + q ^ kt), whose inner sums are
/// geometric: so nothing has to be kept.
class NadamMomentum {
 public:
  NadamMomentum(double beta, double psi) : beta_(beta), log_q_(psi * std::log(0.96)) {}

  Term at(Term t) const { return beta_ * (1 - 0.5 * (log_q_ * t).apply("exp")); }

  Term product(GraphBuilder &b, Term t) const {
    const Term power = t.number(beta_).with("pow", t);
    if (log_q_ == 0) return power * t.number(0.5).with("pow", t);
    tensor::Tensor orders = tensor::Tensor::zeros(tensor::DType::f64, tensor::Shape({kTerms})).take();
    tensor::Tensor factors = tensor::Tensor::zeros(tensor::DType::f64, tensor::Shape({kTerms})).take();
    for (int64_t i = 0; i < kTerms; ++i) {
      const auto k = static_cast<double>(i + 1);
      orders.mutable_data_as<double>()[i] = k * log_q_;
      factors.mutable_data_as<double>()[i] = std::pow(0.5, k) / k * std::exp(k * log_q_) / -std::expm1(k * log_q_);
    }
    const Term exponents = Term(b, b.constant(std::move(orders))) * t;
    const Term logarithm = (Term(b, b.constant(std::move(factors))) * exponents.apply("expm1")).sum();
    return power * logarithm.apply("exp");
  }

 private:
  static constexpr int64_t kTerms = 48;  // the last is below 2 ^ -48 of the first
  const double beta_, log_q_;
};

}  // namespace

ValueId expand_optimizer_nadam(Expansion &e) {
  const double beta1 = e.f64("beta1"), beta2 = e.f64("beta2"), epsilon = e.f64("epsilon");
  const NadamMomentum momentum(beta1, e.f64("momentum_decay"));
  return set_rule(e, {.slots = "m, v", .weight_decay = e.f64("weight_decay")}, [&](const Rule &rule) {
    const Term g = rule.penalized_gradient(), t = rule.count();
    const Term m = beta1 * rule.slot(0) + (1 - beta1) * g;
    const Term v = beta2 * rule.slot(1) + (1 - beta2) * (g * g);
    const Term next = momentum.at(t + 1.0), product = momentum.product(rule.builder(), t);
    const Term of_gradient = rule.narrowed((1 - momentum.at(t)) / (1 - product));
    const Term of_mean = rule.narrowed(next / (1 - product * next));
    const Term root = (v / rule.correction(beta2)).apply("sqrt") + epsilon;
    return Terms{rule.weight() - rule.rate() * ((of_gradient * g + of_mean * m) / root), m, v};
  });
}

ValueId expand_optimizer_lion(Expansion &e) {
  const double beta1 = e.f64("beta1"), beta2 = e.f64("beta2");
  return set_rule(e, {.slots = "m", .weight_decay = e.f64("weight_decay")}, [&](const Rule &rule) {
    const Term g = rule.gradient(), m = rule.slot(0);
    const Term step = (beta1 * m + (1 - beta1) * g).apply("sign") + rule.decay() * rule.weight();
    return Terms{rule.weight() - rule.rate() * step, beta2 * m + (1 - beta2) * g};
  });
}

}  // namespace tutti::impl::nn
