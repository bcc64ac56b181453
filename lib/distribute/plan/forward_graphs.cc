// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "distribute/plan/frontier.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/plan/step_writes.h"
#include "graph/batch.h"
#include "graph/clone.h"
#include "graph/replicate.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using graph::Graph;
using graph::GraphBuilder;
using graph::Model;
using graph::NodeCloner;
using graph::ValueId;
using graph::VariableSpec;

/// Clones what `roots` need, variables as reads of state. `state` receives the entries read.
Status clone_forward(const Model &model, const std::vector<ValueId> &roots, GraphBuilder &builder, NodeCloner &cloner,
                     std::vector<StateSpec> &state) {
  for (const graph::NodeId id : graph::nodes_needed_for(model.graph, roots)) {
    const graph::Node &node = model.graph.node(id);
    if (node.op != "variable") {
      TUTTI_TRY(cloner.clone_node(node));
      continue;
    }
    for (const VariableSpec &variable : model.variables) {
      if (variable.value != node.outputs[0]) continue;
      const std::string entry = "weight/" + variable.name;
      cloner.map(variable.value, builder.state_read(entry, variable.dtype, graph::to_dims(variable.dims)));
      state.push_back({entry, Arena::weights, variable.dtype, variable.dims, variable.name});
    }
  }
  return builder.status();
}

void add_host_scalars(const Model &model, std::vector<StateSpec> &state) {
  for (const graph::HostScalarSpec &scalar : model.host_scalars) {
    state.push_back({"host/" + scalar.name, Arena::host, tensor::DType::f32, {}, ""});
  }
}

const graph::Node *find_scalar(const Graph &graph, const std::string &kind) {
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node &node = graph.node(id);
    if (node.op == "run_scalar" && std::get<std::string>(node.attributes.find("kind")->second) == kind) return &node;
  }
  return nullptr;
}

/// Devices work on their rows without waiting for each other.
Status check_independent_rows(const Graph &graph) {
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node &node = graph.node(id);
    if (node.op != "all_reduce") continue;
    return base::invalid_argument("node '", node.scope_name,
                                  "' combines rows of the batch, but here each row must be "
                                  "independent: use the form for inference (such as batch_norm_inference)")
        .with_detail("node", node.scope_name);
  }
  return Status();
}

bool has_rows(const Graph &graph, ValueId value) {
  return value != graph::kNoValue && graph::batch_axis(graph.value(value)).kind != graph::BatchAxis::Kind::none;
}

/// By the rules for replicas, in every region.
bool rows_stand_alone(const Graph &graph) {
  return std::ranges::all_of(graph.nodes(), [&](const graph::Node &node) {
    const bool takes_rows = std::ranges::any_of(node.inputs, [&](ValueId input) { return has_rows(graph, input); });
    return !takes_rows || graph::gives_rows(graph, node);
  });
}

/// Sums of many batches lose what single ones have, unless they have more digits.
bool is_added_up_wider(const FrontierValue &value, tensor::DType dtype) {
  return value.is_sum && tensor::is_floating(dtype) && dtype != tensor::DType::f64;
}

/// A result of the tail, as entry of that name behind "report/".
Status add_report(const Frontier &frontier, const std::string &name, GraphBuilder &finish, NodeCloner &tail,
                  EvaluateGraphs &result) {
  TUTTI_ASSIGN(const ValueId value, tail.clone_value(frontier.tail.graph().result(name)));
  finish.state_write(value, "report/" + name);
  result.state.push_back(report_spec(finish, name, value));
  return Status();
}

Status build_metrics(const Model &model, Frontier &frontier, EvaluateGraphs &result) {
  GraphBuilder finish;
  NodeCloner tail(frontier.tail.graph(), finish);
  for (size_t i = 0; i < frontier.values.size(); ++i) {
    const graph::ValueInfo &info = model.graph.value(frontier.values[i].value);
    const bool wider = is_added_up_wider(frontier.values[i], info.dtype);
    const ValueId sum = finish.state_read(sum_entry(i), wider ? tensor::DType::f64 : info.dtype, info.dims);
    tail.map(frontier.tail_inputs[i], finish.cast(sum, info.dtype));
  }
  std::vector<std::pair<std::string, std::string>> results;  // name, result of the tail
  if (model.loss != graph::kNoValue) results.emplace_back("loss", "loss");
  for (const auto &[name, value] : model.metrics)
    results.emplace_back(name, "metric/" + name);
  for (const auto &[name, source] : results) {
    TUTTI_TRY(add_report(frontier, source, finish, tail, result));
    result.metrics.push_back(name);
  }
  for (const graph::SummarySpec *summary : reduced_summaries(model, false)) {
    TUTTI_TRY(add_report(frontier, summary_entry(summary->name), finish, tail, result));
    result.reduced_summaries.push_back(summary->name);
  }
  TUTTI_ASSIGN(Graph graph, finish.finish_graph());
  result.finish = std::make_shared<const Graph>(std::move(graph));
  return Status();
}

}  // namespace

static std::vector<const graph::SummarySpec *> shown_rows(const Model &model, const StepGraphOptions &options) {
  std::vector<const graph::SummarySpec *> shown;
  for (const graph::SummarySpec &summary : model.summaries)
    if (options.shows_rows && summary.has_rows) shown.push_back(&summary);
  return shown;
}

static Result<EvaluateGraphs> evaluate_graphs(const Model &model, const StepGraphOptions &options) {
  if (model.loss == graph::kNoValue && model.metrics.empty()) {
    return base::invalid_argument("the model has neither a loss nor a metric to evaluate");
  }
  TUTTI_ASSIGN(Frontier frontier, cut_frontier(model, {true, true}));
  EvaluateGraphs result;
  GraphBuilder step;
  NodeCloner cloner(model.graph, step);
  std::vector<ValueId> roots;
  for (const FrontierValue &value : frontier.values)
    roots.push_back(value.value);
  const std::vector<const graph::SummarySpec *> shown = shown_rows(model, options);
  for (const graph::SummarySpec *summary : shown)
    roots.push_back(summary->value);
  TUTTI_TRY(clone_forward(model, roots, step, cloner, result.state));
  std::vector<StepWrite> writes;
  for (size_t i = 0; i < frontier.values.size(); ++i) {
    ValueId value = cloner.mapped(frontier.values[i].value);
    if (!frontier.values[i].is_sum) {
      value = step.mul(value, step.run_scalar("first_flag", step.dtype(value)));
      result.known.push_back(sum_entry(i));
    }
    if (is_added_up_wider(frontier.values[i], step.dtype(value))) value = step.cast(value, tensor::DType::f64);
    writes.push_back({value, sum_entry(i), ""});
  }
  for (const graph::SummarySpec *summary : shown) {
    step.set_result(summary_entry(summary->name), cloner.mapped(summary->value));
    result.summary_rows.push_back(summary->name);
  }
  if (const graph::Node *node = find_scalar(step.graph(), "step_rows")) {
    return base::invalid_argument("node '", node->scope_name,
                                  "' (run_scalar): rows of an evaluation cannot use the number of "
                                  "all rows, which is known only at its end");
  }
  // Several batches always: their sums are added up.
  TUTTI_ASSIGN(AccumulateGraphs graphs, seal_with_writes(std::move(step), writes, {options.contributors, 2}));
  TUTTI_TRY(check_independent_rows(*graphs.write));
  result.accumulate_write = std::move(graphs.write);
  result.accumulate_add = std::move(graphs.add);
  result.state.insert(result.state.end(), graphs.specs.begin(), graphs.specs.end());
  TUTTI_TRY(build_metrics(model, frontier, result));
  add_host_scalars(model, result.state);
  return result;
}

Result<EvaluateGraphs> make_evaluate_graphs(const Model &model, const StepGraphOptions &options) {
  Result<EvaluateGraphs> graphs = evaluate_graphs(model, options);
  if (graphs.ok() || !is_of_pieces(graphs.status())) return graphs;
  return graphs.status().wrap(
      "an evaluation adds up the results of its batches, so loss and metrics must be sums or means over independent "
      "rows, or be computed from such sums and means: define them so, or leave them out in mode EVAL and compute them "
      "from predictions");
}

Result<PredictGraph> make_predict_graph(const Model &model, const StepGraphOptions &options) {
  if (model.outputs.empty()) return base::invalid_argument("the model has no outputs to predict: call set_output");
  PredictGraph result;
  GraphBuilder builder;
  NodeCloner cloner(model.graph, builder);
  std::vector<ValueId> roots;
  for (const auto &[name, value] : model.outputs)
    roots.push_back(value);
  TUTTI_TRY(clone_forward(model, roots, builder, cloner, result.state));
  for (const auto &[name, value] : model.outputs) {
    builder.set_result(name, cloner.mapped(value));
    result.outputs.push_back(name);
  }
  TUTTI_ASSIGN(Graph global, builder.finish_graph());
  global = graph::rewrite::optimize(std::move(global), {.inline_regions = true});
  TUTTI_ASSIGN(global, graph::rewrite::fold_batch_norm(global));
  if (options.contributors > 1) {
    TUTTI_ASSIGN(global, graph::replicate(global, {options.contributors, 2}));
    TUTTI_TRY(check_independent_rows(global));
  }
  TUTTI_ASSIGN(graph::rewrite::PrecomputedGraph computed, graph::rewrite::precompute_state(global));
  for (const auto &entry : computed.entries) {
    result.state.push_back({entry.name, Arena::weights, entry.dtype, entry.dims, entry.name});
  }
  add_host_scalars(model, result.state);
  if (!computed.entries.empty()) result.prepare = std::make_shared<const Graph>(std::move(computed.prepare));
  result.rows_stand_alone = rows_stand_alone(computed.forward);
  result.forward = std::make_shared<const Graph>(std::move(computed.forward));
  return result;
}

}  // namespace tutti::impl::distribute
