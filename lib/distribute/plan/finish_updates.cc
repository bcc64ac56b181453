// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/finish_updates.h"

#include <algorithm>
#include <string>
#include <vector>

#include "distribute/plan/weight_averages.h"
#include "graph/clone.h"
#include "graph/op_registry.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using graph::GraphBuilder;
using graph::ValueId;

Result<ValueId> add_learning_rate(FinishContext &finish) {
  const graph::Model &model = finish.traits.model;
  const graph::OptimizerSpec &optimizer = model.train->optimizer;
  bool is_hosts = false;  // who may have divided by zero
  for (const graph::NodeId id : graph::nodes_needed_for(model.graph, {optimizer.learning_rate})) {
    const graph::Node &node = model.graph.node(id);
    if (node.op == "input" || node.op == "variable") {
      return base::invalid_argument("the learning rate depends on node '", node.scope_name, "' (", node.op,
                                    "); it may use constants, run scalars and host scalars only");
    }
    is_hosts = is_hosts || node.op == "state_read";
  }
  graph::NodeCloner cloner(model.graph, finish.builder);
  TUTTI_ASSIGN(const ValueId rate, cloner.clone_value(optimizer.learning_rate));
  finish.report("learning_rate", rate);
  if (is_hosts) finish.require(finish.is_finite(rate));
  return rate;
}

/// By the optimizer; gives the new weight.
static Result<ValueId> update_variable(FinishContext &finish, const std::string &variable, ValueId gradient,
                                       ValueId rate, bool counts) {
  GraphBuilder &builder = finish.builder;
  const graph::OptimizerSpec &optimizer = finish.traits.model.train->optimizer;
  GraphBuilder::Values inputs{finish.read_slice("weight/" + variable, variable), gradient};
  std::vector<std::string> outputs{"weight/" + variable};
  for (const graph::SlotSpec &slot : optimizer.slots) {
    outputs.push_back("slot/" + variable + "/" + slot.name);
    inputs.push_back(finish.read_slice(outputs.back(), variable));
  }
  inputs.push_back(rate);
  if (counts) inputs.push_back(builder.run_scalar("iteration", tensor::DType::i64));
  inputs.push_back(finish.ok);
  const auto updated = builder.op_n(optimizer.op, inputs, optimizer.attributes, outputs.size());
  TUTTI_TRY(builder.status());
  for (size_t i = 0; i < outputs.size(); ++i)
    builder.state_write(updated[i], outputs[i]);
  return updated[0];
}

static void update_average(FinishContext &finish, const std::string &variable, ValueId weight, ValueId rate) {
  const std::string entry = average_entry(variable);
  const ValueId average = finish.read_slice(entry, variable);
  finish.builder.state_write(follow_weight(finish.builder, average, weight, rate, finish.ok), entry);
}

Status update_variables(FinishContext &finish, const VariableGradients &gradients, ValueId rate) {
  GraphBuilder &builder = finish.builder;
  const graph::TrainSpec &train = *finish.traits.model.train;
  TUTTI_ASSIGN(const graph::OpDefinition *definition, graph::require_op(train.optimizer.op, train.optimizer.revision));
  const bool counts = std::any_of(definition->inputs.begin(), definition->inputs.end(),
                                  [](const graph::InputDefinition &input) { return input.name == "iteration"; });
  const bool averages = train.average.is_on() && !gradients.empty();
  const ValueId average_step = averages ? average_rate(builder, train.average) : graph::kNoValue;
  for (const auto &[variable, gradient] : gradients) {
    builder.push_root_scope("update/" + variable->name);
    TUTTI_ASSIGN(const ValueId weight, update_variable(finish, variable->name, gradient, rate, counts));
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
