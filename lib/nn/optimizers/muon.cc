// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "nn/optimizers/optimizer.h"

namespace tutti::impl::nn {
namespace {

/// Brings the singular values of a matrix near 1: X becomes a X + b X XtX + c X (XtX)^2, again and again, after it was
/// divided by its norm (Jordan, 2024). Of a wide matrix XXt is the smaller product.
class Orthogonalization {
 public:
  Orthogonalization(const Expansion &e, bool is_wide) : rounds_(e.i64("rounds")), is_wide_(is_wide) {}

  Term apply(const Term &x) const {
    const Term norm = x.norm();
    Term y = x / norm.with("maximum", kLeast);
    for (int64_t round = 0; round < rounds_; ++round) {
      const Term square = is_wide_ ? y.times(y, false, true) : y.times(y, true, false);
      const Term factor = kCoefficients[1] * square + kCoefficients[2] * square.times(square);
      y = kCoefficients[0] * y + (is_wide_ ? factor.times(y) : y.times(factor));
    }
    return y;
  }

 private:
  static constexpr std::array<double, 3> kCoefficients{3.4445, -4.775, 2.0315};
  static constexpr double kLeast = 1e-7;
  const int64_t rounds_;
  const bool is_wide_;
};

/// Of the learning rate, by the shape.
Term rate_factor(const Expansion &e, const Rule &rule) {
  const Term rows = rule.length(0), columns = rule.length(1);
  if (e.text("scale") == "like_adam") return 0.2 * rows.with("maximum", columns).apply("sqrt");
  return (columns / rows).with("maximum", 1).apply("sqrt");
}

Terms update_matrix(const Expansion &e, const Rule &rule, bool is_wide) {
  const double momentum = e.f64("momentum");
  const Term g = rule.gradient(), mean = momentum * rule.slot(0) + (1 - momentum) * g;
  const Term ahead = e.flag("nesterov") ? (1 - momentum) * g + momentum * mean : mean;
  const Term step = rate_factor(e, rule) * Orthogonalization(e, is_wide).apply(ahead) + rule.decay() * rule.weight();
  return {rule.weight() - rule.rate() * step, mean};
}

/// AdamW.
Terms update_vector(const Expansion &e, const Rule &rule) {
  const double beta1 = e.f64("beta1"), beta2 = e.f64("beta2");
  const Term g = rule.gradient();
  const Term m = beta1 * rule.slot(0) + (1 - beta1) * g;
  const Term v = beta2 * rule.slot(1) + (1 - beta2) * (g * g);
  const Term root = (v / rule.correction(beta2)).apply("sqrt") + e.f64("epsilon");
  const Term step = m / rule.correction(beta1) / root + rule.decay() * rule.weight();
  return {rule.weight() - e.f64("vector_rate") * rule.rate() * step, m, v};
}

}  // namespace

ValueId expand_optimizer_muon(Expansion &e) {
  return set_rules(e, e.f64("weight_decay"),
                   {{"vector", "m, v", [&](const Rule &rule) { return update_vector(e, rule); }},
                    {"matrix", "momentum", [&](const Rule &rule) { return update_matrix(e, rule, false); }},
                    {"wide_matrix", "momentum", [&](const Rule &rule) { return update_matrix(e, rule, true); }}});
}

}  // namespace tutti::impl::nn
