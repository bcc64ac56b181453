// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "nn/optimizers/optimizer.h"

namespace tutti::impl::nn {
namespace {

/// What the rules for matrices and vectors share.
class Adafactor {
 public:
  Adafactor(const Expansion &e, const Rule &rule)
      : e_(e),
        rule_(rule),
        adds_epsilon_(e.flag("adds_epsilon")),
        share_(rule.narrowed(rule.count().with("pow", e.f64("beta2_decay")))) {}

  /// The second moment is the product of a column and a row, divided by the mean of either.
  Terms update_matrix() const {
    constexpr int64_t kRowAxis = 1, kColumnAxis = 2;
    const Term squares = new_squares();
    const Term of_rows = follow(rule_.slot(0), squares.mean(kColumnAxis));
    const Term of_columns = follow(rule_.slot(1), squares.mean(kRowAxis));
    const Term mean = of_rows.mean(kRowAxis).expanded(kRowAxis);
    const Term share = of_rows / (adds_epsilon_ ? mean : mean.with("maximum", epsilon()));
    return {new_weight(share.expanded(kColumnAxis) * of_columns.expanded(kRowAxis)), of_rows, of_columns};
  }

  Terms update_vector() const {
    const Term second_moment = follow(rule_.slot(0), new_squares());
    return {new_weight(second_moment), second_moment};
  }

 private:
  double epsilon() const {
    if (e_.f64("epsilon") > 0) return e_.f64("epsilon");
    constexpr double kOfPaper = 1e-30;
    if (adds_epsilon_) return kOfPaper;
    return rule_.dtype() == tensor::DType::f64 ? std::numeric_limits<double>::epsilon()
                                               : double{std::numeric_limits<float>::epsilon()};
  }

  Term new_squares() const {
    const Term squares = rule_.gradient() * rule_.gradient();
    return adds_epsilon_ ? squares + epsilon() : squares;
  }

  Term follow(const Term &old, const Term &now) const { return (1 - share_) * old + share_ * now; }

  Term rate() const {
    if (!e_.flag("limits_rate")) return rule_.rate();
    const Term count = rule_.count();
    return rule_.rate().with("minimum", rule_.narrowed(count.number(1) / count.apply("sqrt")));
  }

  Term new_weight(const Term &second_moment) const {
    const Term w = rule_.weight();
    const Term root = second_moment.apply("sqrt");
    const Term direction = rule_.gradient() / (adds_epsilon_ ? root : root.with("maximum", epsilon()));
    const Term excess = (direction.root_mean_square() / w.number(e_.f64("clip_threshold"))).with("maximum", 1);
    const Term length = w.root_mean_square().with("maximum", e_.f64("least_scale")) * rate();
    return w - rule_.rate() * rule_.decay() * w - length / excess * direction;
  }

  const Expansion &e_;
  const Rule &rule_;
  const bool adds_epsilon_;
  const Term share_;  // of a new square in the second moment
};

}  // namespace

ValueId expand_optimizer_adafactor(Expansion &e) {
  const auto of_vector = [&](const Rule &rule) { return Adafactor(e, rule).update_vector(); };
  const auto of_matrix = [&](const Rule &rule) { return Adafactor(e, rule).update_matrix(); };
  return set_rules(
      e, e.f64("weight_decay"),
      {{"vector", "second_moment", of_vector}, {"stack", "row_moment, column_moment", of_matrix, "row, column"}});
}

}  // namespace tutti::impl::nn
