// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/frontier.h"

#include <algorithm>
#include <unordered_map>

#include "distribute/plan/step_graphs.h"
#include "graph/batch.h"
#include "graph/clone.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using graph::Graph;
using graph::GraphBuilder;
using graph::Model;
using graph::Node;
using graph::NodeId;
using graph::Placement;
using graph::ValueId;

/// What each value of the model's graph depends on.
struct Dependence {
  std::vector<bool> rows, variables, trainable;

  explicit Dependence(const Model &model) {
    const size_t count = model.graph.values().size();
    rows.resize(count);
    variables.resize(count);
    trainable.resize(count);
    for (const NodeId id : model.graph.body().nodes)
      add(model, model.graph.node(id));
  }

 private:
  void add(const Model &model, const Node &node) {
    bool from_rows = node.op == "input", from_variables = is_drawn(node), from_trainable = false;
    for (const ValueId input : node.inputs) {
      if (input == graph::kNoValue) continue;
      from_rows = from_rows || rows[static_cast<size_t>(input)];
      from_variables = from_variables || variables[static_cast<size_t>(input)];
      from_trainable = from_trainable || trainable[static_cast<size_t>(input)];
    }
    if (node.op == "variable") {
      from_variables = true;
      for (const graph::VariableSpec &variable : model.variables) {
        if (variable.value == node.outputs[0]) from_trainable = variable.trainable;
      }
    }
    for (const ValueId output : node.outputs) {
      const auto at = static_cast<size_t>(output);
      rows[at] = from_rows || graph::batch_axis(model.graph.value(output).dims).kind != graph::BatchAxis::Kind::none;
      variables[at] = from_variables;
      trainable[at] = from_trainable;
    }
  }
  /// Random numbers are drawn once per batch, with the rows.
  static bool is_drawn(const Node &node) { return node.op.rfind("random_", 0) == 0 || node.op == "dropout"; }
};

class Cutter {
 public:
  Cutter(const Model &model, const FrontierOptions &options) : model_(model), options_(options), dependence_(model) {}

  Result<Frontier> run() {
    const bool several = options_.several_contributors || options_.several_batches;
    TUTTI_ASSIGN(placements_, graph::place(model_.graph, several));
    states_.assign(model_.graph.values().size(), State::unseen);
    if (model_.loss != graph::kNoValue) TUTTI_TRY(visit(model_.loss, "loss"));
    for (const auto &[name, value] : model_.metrics)
      TUTTI_TRY(visit(value, "metric '" + name + "'"));
    for (const graph::SummarySpec *summary : reduced_summaries(model_, options_.is_training))
      TUTTI_TRY(visit(summary->value, "summary '" + summary->name + "'"));
    return build();
  }

 private:
  enum class State : uint8_t { unseen, tail, frontier };

  bool carries_rows(ValueId value) const {
    return graph::batch_axis(model_.graph.value(value).dims).kind != graph::BatchAxis::Kind::none;
  }

  Status visit(ValueId value, const std::string &what) {
    const auto at = static_cast<size_t>(value);
    if (states_[at] != State::unseen) return Status();
    if (!dependence_.rows[at]) {
      if (dependence_.variables[at]) return add_frontier(value, false);
      states_[at] = State::tail;
      return Status();
    }
    const NodeId producer = model_.graph.value(value).producer;
    const Node &node = model_.graph.node(producer);
    if (carries_rows(value)) return base::invalid_argument("the ", what, " has rows; it must be a scalar");
    const bool from_rows = node.op == "input" ||
                           std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId input) { return input != graph::kNoValue && carries_rows(input); });
    if (from_rows) return visit_sum(value, node, what);
    states_[at] = State::tail;
    for (const ValueId input : node.inputs) {
      if (input != graph::kNoValue) TUTTI_TRY(visit(input, what));
    }
    return Status();
  }

  /// A value that its node makes of rows.
  Status visit_sum(ValueId value, const Node &node, const std::string &what) {
    const Placement placement = placements_[static_cast<size_t>(value)];
    const bool several = options_.several_contributors || options_.several_batches;
    if (placement == Placement::partial_sum || !several) return add_frontier(value, true);
    if (placement == Placement::replicated && !options_.several_batches) return add_frontier(value, false);
    return base::invalid_argument("the ", what, " uses node '", node.scope_name, "' (", node.op,
                                  "), which is not a sum over rows and so cannot be combined from parts of a batch")
        .with_detail("node", node.scope_name);
  }

  Status add_frontier(ValueId value, bool is_sum) {
    for (const graph::Dim &dim : model_.graph.value(value).dims) {
      if (!dim.is_constant()) {
        return base::unimplemented("a sum over rows has dimension ", dim.to_string(), ", which must be a constant");
      }
    }
    states_[static_cast<size_t>(value)] = State::frontier;
    const bool floating = tensor::is_floating(model_.graph.value(value).dtype);
    frontier_.values.push_back({value, is_sum, floating && dependence_.trainable[static_cast<size_t>(value)]});
    return Status();
  }

  Result<Frontier> build() {
    GraphBuilder &tail = frontier_.tail;
    graph::NodeCloner cloner(model_.graph, tail);
    for (size_t i = 0; i < frontier_.values.size(); ++i) {
      const graph::ValueInfo &info = model_.graph.value(frontier_.values[i].value);
      const ValueId input = tail.input(sum_entry(i), info.dtype, info.dims);
      frontier_.tail_inputs.push_back(input);
      cloner.map(frontier_.values[i].value, input);
    }
    if (model_.loss != graph::kNoValue) {
      TUTTI_ASSIGN(const ValueId loss, cloner.clone_value(model_.loss));
      tail.set_result("loss", loss);
    }
    for (const auto &[name, value] : model_.metrics) {
      TUTTI_ASSIGN(const ValueId metric, cloner.clone_value(value));
      tail.set_result("metric/" + name, metric);
    }
    for (const graph::SummarySpec *summary : reduced_summaries(model_, options_.is_training)) {
      TUTTI_ASSIGN(const ValueId value, cloner.clone_value(summary->value));
      tail.set_result(summary_entry(summary->name), value);
    }
    TUTTI_TRY(tail.status());
    return std::move(frontier_);
  }

  const Model &model_;
  const FrontierOptions options_;
  const Dependence dependence_;
  std::vector<Placement> placements_;
  std::vector<State> states_;
  Frontier frontier_;
};

}  // namespace

std::string sum_entry(size_t i) { return "sum/" + std::to_string(i); }

std::vector<const graph::SummarySpec *> reduced_summaries(const Model &model, bool is_training) {
  std::vector<const graph::SummarySpec *> reduced;
  for (const graph::SummarySpec &summary : model.summaries) {
    const bool is_apart = summary.kind == graph::SummaryKind::text || summary.has_rows;
    if (!is_apart && !(is_training && summary.is_known)) reduced.push_back(&summary);
  }
  return reduced;
}

Result<Frontier> cut_frontier(const Model &model, const FrontierOptions &options) {
  return Cutter(model, options).run();
}

}  // namespace tutti::impl::distribute
