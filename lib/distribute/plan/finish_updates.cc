// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/finish_updates.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "distribute/plan/weight_averages.h"
#include "distribute/plan/weight_constraints.h"
#include "graph/clone.h"
#include "graph/op_registry.h"
#include "graph/rate_factor.h"
#include "graph/update_rule.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using graph::GraphBuilder;
using graph::ValueId;
using graph::VariableSpec;
using tensor::DType;

/// A value of the model that is the same for the whole batch, in the finish graph. What a host scalar is in has to be
/// finite.
static Result<ValueId> add_above_batch(FinishContext &finish, ValueId value, std::string_view what) {
  const graph::Model &model = finish.traits.model;
  bool is_hosts = false;  // who may have divided by zero
  for (const graph::NodeId id : graph::nodes_needed_for(model.graph, {value})) {
    const graph::Node &node = model.graph.node(id);
    if (node.op == "input" || node.op == "variable") {
      return base::invalid_argument(what, " depends on node '", node.scope_name, "' (", node.op,
                                    "); it may use constants, run scalars and host scalars only");
    }
    is_hosts = is_hosts || node.op == "state_read";
  }
  graph::NodeCloner cloner(model.graph, finish.builder);
  TUTTI_ASSIGN(const ValueId cloned, cloner.clone_value(value));
  if (is_hosts) {
    const ValueId finite =
        finish.builder.rank(cloned) == 0 ? finish.is_finite(cloned) : finish.builder.unary("all_finite", cloned);
    finish.require(finite);
  }
  return cloned;
}

namespace {

/// The learning rates of the model, times the factor of the host where there is one.
class Rates {
 public:
  explicit Rates(FinishContext &finish) : finish_(finish) {
    if (!graph::has_rate_factor(finish.traits.model)) return;
    factor_ = finish.builder.state_read(base::concat("host/", graph::kRateFactor), DType::f32, {});
    finish.require(finish.is_finite(factor_));
  }

  Result<ValueId> add(ValueId value, std::string_view what) {
    TUTTI_ASSIGN(const ValueId rate, add_above_batch(finish_, value, what));
    if (factor_ == graph::kNoValue) return rate;
    return finish_.builder.mul(rate, finish_.builder.cast(factor_, finish_.builder.dtype(rate)));
  }

 private:
  FinishContext &finish_;
  ValueId factor_ = graph::kNoValue;
};

}  // namespace

Result<UpdateScalars> add_update_scalars(FinishContext &finish) {
  const graph::Model &model = finish.traits.model;
  const graph::OptimizerSpec &optimizer = model.train->optimizer;
  UpdateScalars scalars;
  Rates rates(finish);
  TUTTI_ASSIGN(scalars.rate, rates.add(optimizer.learning_rate, "the learning rate"));
  finish.report("learning_rate", scalars.rate);
  for (const graph::ParameterGroup &group : model.train->groups) {
    ValueId rate = scalars.rate;
    if (group.learning_rate != graph::kNoValue) {
      TUTTI_ASSIGN(rate, rates.add(group.learning_rate,
                                   base::concat("the learning rate of parameter group '", group.pattern, "'")));
    }
    scalars.group_rates.push_back(group.rate_factor == 1 ? rate : finish.builder.scale(rate, group.rate_factor));
  }
  for (const graph::NodeId id : optimizer.rules) {
    const graph::Node &rule = model.graph.node(id);
    std::vector<ValueId> &captures = scalars.captures.emplace_back();
    for (size_t i = 1; i < rule.inputs.size(); ++i) {
      TUTTI_ASSIGN(const ValueId capture, add_above_batch(finish, rule.inputs[i], "the rule of update"));
      captures.push_back(capture);
    }
  }
  return scalars;
}

namespace {

/// The update of one variable.
struct VariableUpdate {
  const VariableSpec &variable;
  ValueId gradient = graph::kNoValue, rate = graph::kNoValue;
  double weight_decay = -1;  ///< below 0 = the optimizer's

  std::string weight_entry() const { return "weight/" + variable.name; }
  std::string slot_entry(const graph::SlotSpec &slot) const { return "slot/" + variable.name + "/" + slot.name; }

  /// The new weight, where there is a constraint: kept to it, or the old one where the step counts for nothing.
  ValueId constrained(FinishContext &finish, ValueId weight, ValueId old) const {
    if (!variable.constraint.is_on()) return weight;
    return finish.builder.select(finish.ok, constrained_weight(finish.builder, variable, weight, !finish.traits.joined),
                                 old);
  }
};

/// What an update reads and writes of an entry of its variable: all of the slice, or the rows that have a gradient.
class UpdatedEntry {
 public:
  UpdatedEntry(FinishContext &finish, const VariableUpdate &update, std::string entry,
               graph::SlotPer per = graph::SlotPer::element)
      : finish_(finish), entry_(std::move(entry)), slice_(finish.read_slice(entry_, update.variable.name, per)) {
    if (finish.parts.rows.has(update.variable.name)) places_ = finish.parts.rows.merged(update.variable.name).places;
  }

  ValueId read() { return places_ == graph::kNoValue ? slice_ : finish_.builder.op("rows_at", {slice_, places_}); }
  void write(ValueId value) {
    if (places_ != graph::kNoValue) value = finish_.builder.op("row_update", {slice_, value, places_});
    finish_.builder.state_write(value, entry_);
  }

 private:
  FinishContext &finish_;
  std::string entry_;
  ValueId slice_, places_ = graph::kNoValue;
};

/// By an op of the registry; gives the new weight.
Result<ValueId> update_by_op(FinishContext &finish, const VariableUpdate &update, bool counts) {
  GraphBuilder &builder = finish.builder;
  const graph::OptimizerSpec &optimizer = finish.traits.model.train->optimizer;
  std::vector<UpdatedEntry> entries{{finish, update, update.weight_entry()}};
  GraphBuilder::Values inputs{entries[0].read(), update.gradient};
  for (const graph::SlotSpec &slot : optimizer.slots) {
    entries.emplace_back(finish, update, update.slot_entry(slot));
    inputs.push_back(entries.back().read());
  }
  inputs.push_back(update.rate);
  if (counts) inputs.push_back(builder.run_scalar("iteration", DType::i64));
  inputs.push_back(finish.ok);
  graph::Attributes attributes = optimizer.attributes;
  if (update.weight_decay >= 0) attributes.insert_or_assign("weight_decay", update.weight_decay);
  auto updated = builder.op_n(optimizer.op, inputs, std::move(attributes), entries.size());
  TUTTI_TRY(builder.status());
  updated[0] = update.constrained(finish, updated[0], inputs[0]);
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i].write(updated[i]);
  return updated[0];
}

/// By the rule of the model for the variable's dtype, in that of the rule; gives the new weight.
class RuleUpdate {
 public:
  RuleUpdate(FinishContext &finish, const VariableUpdate &update, size_t rule)
      : finish_(finish),
        update_(update),
        node_(finish.traits.model.graph.node(finish.traits.model.train->optimizer.rules[rule])),
        dtype_(graph::rule_dtype(finish.traits.model.graph, node_)),
        matrix_(graph::matrix_of(finish.traits.model, update.variable)),
        is_flat_(graph::needs_of(finish.traits.model.graph, node_).flat) {}

  Result<ValueId> write(const std::vector<ValueId> &captures) {
    GraphBuilder &builder = finish_.builder;
    std::vector<UpdatedEntry> entries{{finish_, update_, update_.weight_entry()}};
    const std::vector<graph::SlotSpec> slots = graph::slots_for(finish_.traits.model, update_.variable);
    for (const graph::SlotSpec &slot : slots)
      entries.emplace_back(finish_, update_, update_.slot_entry(slot), slot.per);
    std::vector<ValueId> old;
    for (UpdatedEntry &entry : entries)
      old.push_back(entry.read());
    std::vector<ValueId> arguments{as_array(old[0]), as_array(update_.gradient), builder.cast(update_.rate, dtype_),
                                   builder.constant(weight_decay(), dtype_),
                                   builder.run_scalar("iteration", DType::i64)};
    for (size_t i = 1; i < old.size(); ++i)
      arguments.push_back(as_array(old[i], slots[i - 1].per));
    arguments.insert(arguments.end(), captures.begin(), captures.end());
    TUTTI_ASSIGN(const std::vector<ValueId> results,
                 graph::inline_rule(finish_.traits.model.graph, node_, builder, arguments));
    std::vector<ValueId> updated;
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId value = builder.reshape(builder.cast(results[i], builder.dtype(old[i])), builder.dims(old[i]));
      const bool is_constrained = i == 0 && update_.variable.constraint.is_on();
      updated.push_back(is_constrained ? update_.constrained(finish_, value, old[i])
                                       : builder.select(finish_.ok, value, old[i]));
    }
    TUTTI_TRY(builder.status());
    for (size_t i = 0; i < entries.size(); ++i)
      entries[i].write(updated[i]);
    return updated[0];
  }

 private:
  ValueId as_array(ValueId value, graph::SlotPer per = graph::SlotPer::element) {
    const ValueId array = finish_.builder.cast(value, dtype_);
    if (matrix_ && finish_.traits.joined)
      return finish_.builder.reshape(array, graph::to_dims(graph::slot_dims(per, *matrix_)));
    return is_flat_ ? finish_.builder.reshape(array, {graph::element_count(finish_.builder.dims(array))}) : array;
  }

  double weight_decay() const {
    if (update_.weight_decay >= 0) return update_.weight_decay;
    return std::get<double>(finish_.traits.model.train->optimizer.attributes.at("weight_decay"));
  }

  FinishContext &finish_;
  const VariableUpdate &update_;
  const graph::Node &node_;
  const DType dtype_;
  const std::optional<std::vector<int64_t>> matrix_;
  const bool is_flat_;
};

}  // namespace

static void update_average(FinishContext &finish, const std::string &variable, ValueId weight, ValueId rate) {
  const std::string entry = average_entry(variable);
  const ValueId average = finish.read_slice(entry, variable);
  finish.builder.state_write(follow_weight(finish.builder, average, weight, rate, finish.ok), entry);
}

/// Does the optimizer's op take the number of the update?
static Result<bool> counts_updates(const graph::OptimizerSpec &optimizer) {
  TUTTI_ASSIGN(const graph::OpDefinition *definition, graph::require_op(optimizer.op, optimizer.revision));
  return std::any_of(definition->inputs.begin(), definition->inputs.end(),
                     [](const graph::InputDefinition &input) { return input.name == "iteration"; });
}

static Result<ValueId> update_variable(FinishContext &finish, const VariableUpdate &update,
                                       const UpdateScalars &scalars) {
  const graph::Model &model = finish.traits.model;
  const graph::OptimizerSpec &optimizer = model.train->optimizer;
  if (!optimizer.has_rules()) {
    TUTTI_ASSIGN(const bool counts, counts_updates(optimizer));
    return update_by_op(finish, update, counts);
  }
  TUTTI_ASSIGN(const size_t rule, graph::rule_for(model, update.variable));
  return RuleUpdate(finish, update, rule).write(scalars.captures[rule]);
}

Status update_variables(FinishContext &finish, const VariableGradients &gradients, const UpdateScalars &scalars) {
  GraphBuilder &builder = finish.builder;
  const graph::TrainSpec &train = *finish.traits.model.train;
  const bool averages = train.average.is_on() && !gradients.empty();
  const ValueId average_step = averages ? average_rate(builder, train.average) : graph::kNoValue;
  for (const auto &[variable, gradient] : gradients) {
    builder.push_root_scope("update/" + variable->name);
    VariableUpdate update{*variable, gradient, scalars.rate};
    if (const graph::ParameterGroup *const group = train.group_of(variable->name)) {
      update.rate = scalars.group_rates[static_cast<size_t>(group - train.groups.data())];
      update.weight_decay = group->weight_decay;
    }
    TUTTI_ASSIGN(const ValueId weight, update_variable(finish, update, scalars));
    if (averages) update_average(finish, variable->name, weight, average_step);
    builder.pop_scope();
  }
  return builder.status();
}

Status update_aggregates(FinishContext &finish) {
  for (const auto &[name, value] : finish.traits.model.assignments) {
    const ValueId old_value = finish.read_slice("weight/" + name, name);
    const ValueId new_value = finish.read_total("aggregate/" + name, name);
    finish.builder.state_write(finish.builder.select(finish.ok, new_value, old_value), "weight/" + name);
  }
  return finish.builder.status();
}

}  // namespace tutti::impl::distribute
