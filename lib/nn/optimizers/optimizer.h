// SPDX-License-Identifier: Apache-2.0
//
// What optimizers are written with: those whose update is an op of the registry, with kernels of its own, and those
// whose rule is a graph that every backend compiles (graph/update_rule.h).
//
//   set_rule(e, {.slots = "momentum"}, [&](Rule &rule) {
//     const Term mean = beta * rule.slot(0) + (1 - beta) * rule.gradient();
//     return Terms{rule.weight() - rule.rate() * mean, mean};
//   });
//
// Threads: as the builder.
#ifndef TUTTI_NN_OPTIMIZERS_OPTIMIZER_H_
#define TUTTI_NN_OPTIMIZERS_OPTIMIZER_H_

#include <functional>
#include <string>
#include <vector>

#include "graph/model.h"
#include "graph/update_rule.h"
#include "nn/expansion.h"

namespace tutti::impl::nn {

/// A value of a rule, for formulas as they are printed. Numbers become constants of its dtype.
class Term {
 public:
  Term(GraphBuilder &builder, ValueId value) : builder_(&builder), value_(value) {}

  ValueId value() const { return value_; }
  Term apply(std::string_view op) const { return {*builder_, builder_->unary(op, value_)}; }
  Term with(std::string_view op, Term other) const { return {*builder_, builder_->op(op, {value_, other.value_})}; }
  Term with(std::string_view op, double other) const { return with(op, number(other)); }
  /// A number of the same dtype.
  Term number(double value) const { return {*builder_, builder_->constant(value, builder_->dtype(value_))}; }
  Term to(tensor::DType dtype) const { return {*builder_, builder_->cast(value_, dtype)}; }
  /// `yes` where this holds, else `no`.
  Term choose(Term yes, Term no) const { return {*builder_, builder_->select(value_, yes.value_, no.value_)}; }
  /// Of all elements.
  Term sum() const { return {*builder_, builder_->reduce_sum(value_)}; }
  /// Of all elements, or along one axis.
  Term mean() const { return {*builder_, builder_->reduce_mean(value_)}; }
  Term mean(int64_t axis) const { return {*builder_, builder_->reduce_mean(value_, {axis})}; }
  /// With one more axis there, of length 1.
  Term expanded(int64_t axis) const {
    graph::Dims dims = builder_->dims(value_);
    dims.insert(dims.begin() + axis, 1);
    return {*builder_, builder_->reshape(value_, std::move(dims))};
  }
  /// The product of matrices.
  Term times(Term other, bool transpose_this = false, bool transpose_other = false) const {
    return {*builder_, builder_->matmul(value_, other.value_, transpose_this, transpose_other)};
  }
  /// The Euclidean norm.
  Term norm() const { return apply("square").sum().apply("sqrt"); }
  /// The root of the mean square.
  Term root_mean_square() const { return apply("square").mean().apply("sqrt"); }

 private:
  GraphBuilder *builder_;
  ValueId value_;
};

inline Term operator+(Term a, Term b) { return a.with("add", b); }
inline Term operator-(Term a, Term b) { return a.with("sub", b); }
inline Term operator*(Term a, Term b) { return a.with("mul", b); }
inline Term operator/(Term a, Term b) { return a.with("div", b); }
inline Term operator+(Term a, double b) { return a + a.number(b); }
inline Term operator-(double a, Term b) { return b.number(a) - b; }
inline Term operator*(double a, Term b) { return b.number(a) * b; }
inline Term operator/(double a, Term b) { return b.number(a) / b; }

using Terms = std::vector<Term>;

/// The region of a rule while it is written.
class Rule {
 public:
  Rule(GraphBuilder &builder, const GraphBuilder::Values &parameters) : builder_(builder), parameters_(parameters) {}

  Term weight() const { return parameter(at(graph::RuleParameter::weight)); }
  Term gradient() const { return parameter(at(graph::RuleParameter::gradient)); }
  Term rate() const { return parameter(at(graph::RuleParameter::learning_rate)); }
  Term decay() const { return parameter(at(graph::RuleParameter::weight_decay)); }
  /// The gradient with weight decay, as a penalty on the loss would give it.
  Term penalized_gradient() const { return gradient() + decay() * weight(); }
  /// The number of this update, from 1; f64.
  Term count() const { return parameter(at(graph::RuleParameter::iteration)).to(tensor::DType::f64); }
  Term slot(size_t index) const { return parameter(at(graph::RuleParameter::slots) + index); }
  /// How many rows or columns (axis 0 or 1) its matrices have, in the dtype of the arrays.
  Term length(size_t axis) const;
  /// A scalar of count() in the dtype of the arrays.
  Term narrowed(Term scalar) const { return scalar.to(dtype()); }
  /// Of the arrays.
  tensor::DType dtype() const { return builder_.dtype(parameters_[0]); }
  /// 1 - beta ^ count, what a mean that began at 0 is divided by.
  Term correction(double beta) const;
  GraphBuilder &builder() const { return builder_; }

 private:
  Term parameter(size_t index) const { return {builder_, parameters_[index]}; }

  GraphBuilder &builder_;
  const GraphBuilder::Values &parameters_;
};

struct RuleSettings {
  std::string slots;              ///< names, separated by commas
  std::vector<double> initial{};  ///< of slots; empty = zeros
  double weight_decay = 0;
  bool keeps_unreached = false;  ///< as in graph::OptimizerSpec
  std::string slots_per{};       ///< "row", "column" or "element" for each slot; empty = element
};
/// Gives the new weight, and then the slots' new values.
using RuleFunction = std::function<Terms(const Rule &rule)>;

/// A rule, and the variables that it is for.
struct ViewedRule {
  std::string view;  ///< "vector", "matrix", "wide_matrix", "stack"
  std::string slots;
  RuleFunction function;
  std::string slots_per{};
};
/// Makes rules the optimizer of the model.
ValueId set_rules(Expansion &e, double weight_decay, const std::vector<ViewedRule> &rules);

/// Makes a rule the optimizer of the model, with the entry's limits of gradients and its averages.
ValueId set_rule(Expansion &e, const RuleSettings &settings, const RuleFunction &function);

/// Checks input 0, the learning rate; false with an error in the builder.
bool check_learning_rate(Expansion &e);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_OPTIMIZERS_OPTIMIZER_H_
