// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/row_gradients.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "graph/update_rule.h"

namespace tutti::impl::distribute {

using graph::Dim;
using graph::Dims;
using graph::Graph;
using graph::GraphBuilder;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::VariableSpec;

namespace {

double weight_decay_of(const graph::TrainSpec &train, const VariableSpec &variable) {
  const graph::ParameterGroup *const group = train.group_of(variable.name);
  if (group != nullptr && group->weight_decay >= 0) return group->weight_decay;
  const auto decay = train.optimizer.attributes.find("weight_decay");
  return decay == train.optimizer.attributes.end() ? 0 : std::get<double>(decay->second);
}

bool works_by_elements(const graph::Model &model, const VariableSpec &variable) {
  const graph::OptimizerSpec &optimizer = model.train->optimizer;
  if (!optimizer.has_rules()) return true;
  const base::Result<size_t> rule = graph::rule_for(model, variable);
  if (!rule.ok() || graph::matrix_of(model, variable)) return false;
  const graph::RuleNeeds needs = graph::needs_of(model.graph, model.graph.node(optimizer.rules[*rule]));
  return !needs.whole && !needs.flat;
}

/// A node gather_gradient: the gradients of rows, and where they belong.
struct LookupGradient {
  ValueId indices = kNoValue, rows = kNoValue;
};

bool begins_with_batch(const Graph &graph, ValueId value) {
  const Dims &dims = graph.value(value).dims;
  return !dims.empty() && dims[0] == GraphBuilder::batch();
}

/// Appends those that a gradient is the sum of; false where it is anything else.
bool split(const Graph &graph, ValueId gradient, std::vector<LookupGradient> &parts) {
  const Node &node = graph.node(graph.value(gradient).producer);
  if (node.op == "add") return split(graph, node.inputs[0], parts) && split(graph, node.inputs[1], parts);
  if (node.op != "gather_gradient" || std::get<int64_t>(node.attributes.at("axis")) != 0) return false;
  parts.push_back({node.inputs[1], node.inputs[0]});
  return begins_with_batch(graph, node.inputs[1]);
}

/// [n, ...] of rows that lie along several axes.
ValueId as_rows(GraphBuilder &b, ValueId value, size_t row_rank) {
  const Dims dims = b.dims(value);
  const auto row = dims.end() - static_cast<ptrdiff_t>(row_rank);
  Dims flat{graph::element_count(Dims(dims.begin(), row))};
  flat.insert(flat.end(), row, dims.end());
  return b.reshape(value, flat);
}

ValueId joined(GraphBuilder &b, const GraphBuilder::Values &parts) {
  return parts.size() == 1 ? parts[0] : b.concat(parts, 0);
}

}  // namespace

bool updates_rows(const graph::Model &model, const VariableSpec &variable) {
  if (variable.dims.empty() || model.train->average.is_on() || variable.constraint.is_on()) return false;
  const graph::OptimizerSpec &optimizer = model.train->optimizer;
  const bool keeps_others = optimizer.keeps_unreached && weight_decay_of(*model.train, variable) == 0;
  return (optimizer.lazy || keeps_others) && works_by_elements(model, variable);
}

bool are_of_lookups(const Graph &step, const std::vector<GradientOfSet> &gradients) {
  std::vector<LookupGradient> parts;
  return std::ranges::all_of(gradients,
                             [&](const GradientOfSet &gradient) { return split(step, gradient.value, parts); });
}

bool have_known_lengths(const Graph &step, const std::vector<GradientOfSet> &gradients) {
  std::vector<LookupGradient> parts;
  for (const GradientOfSet &gradient : gradients)
    (void)split(step, gradient.value, parts);
  return std::ranges::all_of(parts, [&](const LookupGradient &part) {
    const Dims &dims = step.value(part.indices).dims;
    return std::all_of(dims.begin() + 1, dims.end(), [](const Dim &dim) { return dim.is_constant(); });
  });
}

void RowGradients::take(GraphBuilder &step, const VariableSpec &variable, const std::vector<GradientOfSet> &gradients) {
  std::vector<Lookup> &lookups = lookups_[variable.name];
  for (const GradientOfSet &gradient : gradients) {
    std::vector<LookupGradient> parts;
    (void)split(step.graph(), gradient.value, parts);
    for (const LookupGradient &part : parts) {
      const std::string name = "rows/" + variable.name + "/" + std::to_string(lookups.size());
      const size_t indices = leave(step, name + "/indices", part.indices);
      lookups.push_back({gradient.set, indices, leave(step, name, part.rows)});
    }
  }
}

size_t RowGradients::leave(GraphBuilder &step, const std::string &name, ValueId value) {
  if (joined_) {
    step.state_write(value, name);
  } else {
    step.set_result(name, value);
  }
  SharedFactor factor{.name = name, .dtype = step.dtype(value), .dims = step.dims(value), .is_of_lookups = true};
  factor.is_index = tensor::is_integer(factor.dtype);
  factors_.push_back(std::move(factor));
  return factors_.size() - 1;
}

ValueId RowGradients::read(GraphBuilder &finish, size_t factor) const {
  const SharedFactor &passed = factors_[factor];
  if (joined_) return finish.state_read(passed.name, passed.dtype, passed.dims);
  Dims dims = passed.dims;
  dims[0] = Dim::symbol(std::string(kLookingUpSymbol));
  return finish.input(passed.name, passed.dtype, dims);
}

std::vector<std::string> RowGradients::variables() const {
  std::vector<std::string> names;
  for (const auto &[name, lookups] : lookups_)
    names.push_back(name);
  return names;
}

MergedRows RowGradients::merge(GraphBuilder &finish, const VariableSpec &variable,
                               const std::vector<ValueId> &coefficients, bool is_sliced) {
  GraphBuilder::Values indices, rows;
  for (const Lookup &lookup : lookups_.find(variable.name)->second) {
    ValueId part = as_rows(finish, read(finish, lookup.rows), variable.dims.size() - 1);
    if (coefficients[lookup.set] != kNoValue)
      part = finish.mul(part, finish.cast(coefficients[lookup.set], variable.dtype));
    rows.push_back(part);
    indices.push_back(finish.cast(as_rows(finish, read(finish, lookup.indices), 0), tensor::DType::i64));
  }
  const Dim first = is_sliced ? Dim::symbol(first_row_symbol(variable.name)) : Dim(0);
  const Dim count = is_sliced ? Dim::symbol(rows_symbol(variable.name)) : Dim(variable.dims[0]);
  const GraphBuilder::Values merged = finish.op_n("sum_rows", {joined(finish, rows), joined(finish, indices)},
                                                  {{"first", Dims{first}}, {"count", Dims{count}}}, 2);
  return merged_[variable.name] = {merged[0], merged[1]};
}

}  // namespace tutti::impl::distribute
