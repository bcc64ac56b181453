// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: the rule of training: optimizer, gradients of one's own, limits and groups of variables.
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "base/name_suggestions.h"
#include "base/text.h"
#include "graph/builder.h"
#include "graph/constraint.h"
#include "graph/update_rule.h"

namespace tutti::impl::graph {

bool GraphBuilder::check_rate(std::string_view what, ValueId rate) {
  if (!check_top(what, rate)) return false;
  if (!dims(rate).empty() || !tensor::is_floating(dtype(rate))) {
    fail(base::invalid_argument(what, " is ", tensor::name(dtype(rate)), " ", to_string(dims(rate)),
                                ", expected a floating point scalar"));
  }
  return ok();
}

void GraphBuilder::set_train(TrainSpec train) {
  if (!check_top("the learning rate", train.optimizer.learning_rate)) return;
  if (model_.train && !model_.train->optimizer.op.empty()) {
    fail(base::already_exists("the optimizer is set twice"));
    return;
  }
  if (!check_rate("the learning rate", train.optimizer.learning_rate)) return;
  const base::Result<const OpDefinition *> update = require_op(train.optimizer.op, train.optimizer.revision);
  if (!update.ok()) {
    fail(update.status());
    return;
  }
  Node probe;
  probe.op = train.optimizer.op;
  probe.attributes = train.optimizer.attributes;
  base::Status checked = check_attributes(**update, probe);
  if (checked.ok()) checked = train.clip.check();
  if (checked.ok()) checked = train.average.check();
  if (!checked.ok()) {
    fail(std::move(checked));
    return;
  }
  if (!train.gradients.empty()) set_gradients({train.gradients.begin(), train.gradients.end()});
  if (!ok()) return;
  if (model_.train) {
    train.clip_global_norm = model_.train->clip_global_norm;
    train.gradients = std::move(model_.train->gradients);
    train.groups = std::move(model_.train->groups);
  }
  model_.train = std::move(train);
}

namespace {

/// Of the same dtype.
bool are_for_same(RuleView one, RuleView other) {
  const auto is_for_matrices = [](RuleView view) { return view == RuleView::matrix || view == RuleView::stack; };
  return one == other || (is_for_matrices(one) && is_for_matrices(other));
}

}  // namespace

// A further rule of the optimizer, for variables of another dtype or shape.
void GraphBuilder::add_rule(NodeId id, const RuleSettings &settings) {
  OptimizerSpec &optimizer = model_.train->optimizer;
  for (const NodeId rule : optimizer.rules) {
    const base::Result<RuleSettings> other = RuleSettings::from(graph_.node(rule));
    if (other.ok() && other->dtype == settings.dtype && are_for_same(other->view, settings.view)) {
      fail(base::already_exists("the optimizer is set twice"));
      return;
    }
  }
  for (const SlotSpec &slot : settings.slots) {
    const auto known = std::ranges::find(optimizer.slots, slot.name, &SlotSpec::name);
    if (known == optimizer.slots.end()) {
      optimizer.slots.push_back(slot);
    } else if (known->initial != slot.initial) {
      fail(base::invalid_argument("slot '", slot.name, "' begins with ", known->initial, " in one rule, and with ",
                                  slot.initial, " in another"));
      return;
    } else if (known->per != slot.per) {
      fail(base::invalid_argument("slot '", slot.name, "' has a value for each ", name(known->per),
                                  " in one rule, and for each ", name(slot.per), " in another"));
      return;
    }
  }
  optimizer.rules.push_back(id);
}

// The rule that the last node gives is the optimizer's, or one of its rules.
void GraphBuilder::keep_rule(NodeId id) {
  const Node &node = graph_.node(id);
  base::Result<RuleSettings> settings = RuleSettings::from(node);
  if (!settings.ok()) return;  // reported
  if (model_.train && model_.train->optimizer.has_rules()) {
    add_rule(id, *settings);
    return;
  }
  TrainSpec train;
  train.optimizer = {.op = std::string(kUpdateRule),
                     .revision = node.revision,
                     .attributes = {{"weight_decay", settings->weight_decay}},
                     .learning_rate = node.inputs[0],
                     .slots = std::move(settings->slots),
                     .rules = {id},
                     .lazy = settings->lazy,
                     .keeps_unreached = settings->keeps_unreached};
  train.clip = settings->clip;
  train.average = settings->average;
  set_train(std::move(train));
}

void GraphBuilder::add_parameter_group(ParameterGroup group) {
  if (!ok()) return;
  const std::string what = base::concat("parameter group ", base::quoted(group.pattern));
  if (group.pattern.empty()) {
    fail(base::invalid_argument("a parameter group has an empty pattern, expected one such as '*bias'"));
  } else if (!(group.rate_factor >= 0) || !std::isfinite(group.rate_factor)) {
    fail(base::invalid_argument(what, ": rate_factor is ", group.rate_factor,
                                ", expected a finite number of at least 0"));
  } else if (std::isnan(group.weight_decay) || std::isinf(group.weight_decay)) {
    fail(base::invalid_argument(what, ": weight_decay is ", group.weight_decay, ", expected a finite number"));
  } else if (group.learning_rate == kNoValue ||
             check_rate(base::concat("the learning rate of ", what), group.learning_rate)) {
    if (!model_.train) model_.train.emplace();
    model_.train->groups.push_back(std::move(group));
  }
}

// Freezes what groups freeze. A group that no variable is in has a wrong pattern, or is behind another with all of its.
void GraphBuilder::settle_groups() {
  if (!model_.train) return;
  for (const ParameterGroup &group : model_.train->groups) {
    bool matches = false, has_any = false;
    std::vector<std::string> names;
    for (VariableSpec &variable : model_.variables) {
      if (variable.aggregation != Aggregation::trained) continue;
      names.push_back(variable.name);
      matches = matches || group.has(variable.name);
      if (model_.train->group_of(variable.name) != &group) continue;
      has_any = true;
      if (group.frozen) variable.trainable = false;
    }
    if (has_any) continue;
    const std::string what = base::concat("parameter group ", base::quoted(group.pattern));
    fail(matches ? base::invalid_argument(what, ": the variables that it matches all belong to groups before it")
                 : base::not_found(what, " matches no trained variable", base::but_there_are(group.pattern, names)));
    return;
  }
}

void GraphBuilder::add_penalty(const Penalty &penalty) {
  if (ok() && (penalty.l1 > 0 || penalty.l2 > 0)) penalties_.push_back(penalty);
}

// Behind all else, at the top level: a layer may have been made in a region.
void GraphBuilder::settle_penalties() {
  if (model_.loss == kNoValue) return;
  const tensor::DType like = dtype(model_.loss);
  const auto add_term = [&](std::string_view op_name, ValueId variable, double factor) {
    if (factor <= 0) return;
    const ValueId sum = cast(reduce_sum(unary(op_name, variable)), like);
    model_.loss = add(model_.loss, scale(sum, factor));
  };
  push_root_scope("penalty");
  for (const Penalty &penalty : penalties_) {
    add_term("abs", penalty.variable, penalty.l1);
    add_term("square", penalty.variable, penalty.l2);
  }
  pop_scope();
}

void GraphBuilder::constrain_variable(VariableSpec &variable, ConstraintSpec constraint) {
  if (!ok() || !constraint.is_on()) return;
  base::Result<ConstraintSpec> settled = settle_axes(std::move(constraint), variable.dims.size());
  if (!settled.ok()) {
    fail(settled.status().wrap(base::concat("variable '", variable.name, "'")));
  } else if (variable.constraint.is_on()) {
    fail(base::already_exists("variable '", variable.name, "' has the constraint '", variable.constraint.kind,
                              "' already, expected one at most"));
  } else {
    variable.constraint = settled.take();
  }
}

void GraphBuilder::constrain(ValueId variable, ConstraintSpec constraint) {
  for (VariableSpec &one : model_.variables) {
    if (variable != kNoValue && one.value == variable) constrain_variable(one, std::move(constraint));
  }
}

void GraphBuilder::add_constraint(std::string pattern, ConstraintSpec constraint) {
  if (ok() && constraint.is_on()) constraints_.emplace_back(std::move(pattern), std::move(constraint));
}

void GraphBuilder::settle_constraints() {
  for (const auto &[pattern, constraint] : constraints_) {
    bool has_any = false;
    std::vector<std::string> names;
    for (VariableSpec &variable : model_.variables) {
      if (variable.aggregation != Aggregation::trained) continue;
      names.push_back(variable.name);
      if (fnmatch(pattern.c_str(), variable.name.c_str(), 0) != 0) continue;
      has_any = true;
      constrain_variable(variable, constraint);
    }
    if (has_any) continue;
    fail(base::not_found("constraint of ", base::quoted(pattern), " matches no trained variable",
                         base::but_there_are(pattern, names)));
  }
}

void GraphBuilder::set_gradients(const std::vector<std::pair<std::string, ValueId>> &gradients) {
  if (!ok()) return;
  if (gradients.empty()) {
    fail(base::invalid_argument("an empty list of gradients was given, expected one or more"));
    return;
  }
  if (model_.train && !model_.train->gradients.empty()) {
    fail(base::already_exists("the gradients are set twice"));
    return;
  }
  std::map<std::string, ValueId, std::less<>> checked;
  for (const auto &[name, gradient] : gradients) {
    if (!check_gradient(name, gradient)) return;
    if (!checked.emplace(name, gradient).second) {
      fail(base::already_exists("variable '", name, "' is given two gradients"));
      return;
    }
  }
  if (!model_.train) model_.train.emplace();
  model_.train->gradients = std::move(checked);
}

bool GraphBuilder::check_gradient(const std::string &variable_name, ValueId gradient) {
  const VariableSpec *variable = model_.find_variable(variable_name);
  if (variable == nullptr) {
    std::vector<std::string> known;
    for (const VariableSpec &one : model_.variables)
      known.push_back(one.name);
    fail(base::not_found("a gradient is given for variable '", variable_name, "', which is not in the model",
                         base::but_there_are(variable_name, known)));
  } else if (gradient == kNoValue) {
    fail(base::invalid_argument("variable '", variable_name,
                                "' is given no gradient: the target does not depend on it"));
  } else if (!check_top(base::concat("the gradient of '", variable_name, "'"), gradient)) {
    return false;
  } else if (!variable->trainable) {
    fail(base::invalid_argument("a gradient is given for variable '", variable_name, "', which is not trainable"));
  } else if (dtype(gradient) != variable->dtype || dims(gradient) != to_dims(variable->dims)) {
    fail(base::invalid_argument("the gradient given for variable '", variable_name, "' is ",
                                tensor::name(dtype(gradient)), " ", to_string(dims(gradient)), ", the variable is ",
                                tensor::name(variable->dtype), " ", to_string(to_dims(variable->dims))));
  }
  return ok();
}

void GraphBuilder::set_clip_global_norm(double norm) {
  if (!ok()) return;
  if (!(norm > 0)) {
    fail(base::invalid_argument("gradients are clipped to global norm ", norm, ", expected more than 0"));
    return;
  }
  if (!model_.train) model_.train.emplace();
  model_.train->clip_global_norm = norm;
}

}  // namespace tutti::impl::graph
