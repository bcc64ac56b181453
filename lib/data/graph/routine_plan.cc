// SPDX-License-Identifier: Apache-2.0
#include "data/graph/routine_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "backend/lowered_graph.h"
#include "base/text.h"
#include "graph/clone.h"
#include "graph/op_registry.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

namespace {

bool has_bytes(const Graph &graph, const std::vector<ValueId> &values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId value) {
    return value != kNoValue && graph.value(value).dtype == tensor::DType::bytes;
  });
}

bool has_program_form(const Node &node) {
  const graph::OpDefinition *const definition = graph::find_op(node.op, node.revision);
  return definition == nullptr || definition->program;
}

bool is_leaf(const Node &node) { return node.op == "input" || node.op == "constant"; }

bool wants_kernel(const Graph &graph, const Node &node) {
  return !has_program_form(node) || has_bytes(graph, node.inputs) || has_bytes(graph, node.outputs);
}

std::string value_name(ValueId value) { return base::concat("v", value); }

int32_t position_of(const std::vector<std::string> &names, const std::string &name) {
  return static_cast<int32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::vector<RoutinePlan::Axis> axes_of(const graph::Dims &dims, const std::vector<std::string> &symbols) {
  std::vector<RoutinePlan::Axis> axes;
  for (const graph::Dim &dim : dims) {
    RoutinePlan::Axis axis;
    const std::vector<std::string> mentioned = dim.symbols();
    const std::optional<int64_t> factor = mentioned.size() == 1 ? dim.factor_of(mentioned[0]) : std::nullopt;
    if (dim.is_constant()) {
      axis.constant = dim.constant();
    } else if (factor) {
      axis.symbol = position_of(symbols, mentioned[0]);
      axis.factor = *factor;
    }
    axes.push_back(axis);
  }
  return axes;
}

// Cuts a graph: each node gets a rank, even for programs and odd for kernels, the lowest that its inputs allow; nodes
// of one even rank are one program.
class Cutter {
 public:
  explicit Cutter(RoutinePlan &plan) : plan_(plan), graph_(*plan.graph), rank_of_(graph_.values().size(), 0) {}

  Status cut() {
    std::map<int32_t, std::vector<NodeId>> by_rank;
    for (const NodeId id : graph_.body().nodes) {
      const Node &node = graph_.node(id);
      if (is_leaf(node)) continue;
      const int32_t rank = rank_of(node);
      for (const ValueId output : node.outputs)
        rank_of_[static_cast<size_t>(output)] = rank;
      by_rank[rank].push_back(id);
    }
    for (const auto &[rank, nodes] : by_rank)
      TUTTI_TRY(rank % 2 == 0 ? add_program(nodes) : add_kernels(nodes));
    return Status();
  }

 private:
  int32_t rank_of(const Node &node) const {
    int32_t rank = 0;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) rank = std::max(rank, rank_of_[static_cast<size_t>(input)]);
    }
    const bool is_odd = rank % 2 != 0;
    return wants_kernel(graph_, node) == is_odd ? rank : rank + 1;
  }

  Status add_kernels(const std::vector<NodeId> &nodes) {
    for (const NodeId id : nodes) {
      const Node &node = graph_.node(id);
      const RoutineKernelFactory factory = find_routine_kernel(node.op);
      if (factory == nullptr) {
        return base::unimplemented(backend::describe(node), ": op '", node.op, "' does not take values of dtype bytes");
      }
      Result<RoutineKernel> kernel = factory({graph_, node});
      if (!kernel.ok()) return kernel.status().wrap(base::concat(backend::describe(node), ": cannot be run"));
      RoutinePlan::Step step;
      step.node = id;
      step.kernel = kernel.take();
      step.inputs = node.inputs;
      step.outputs = node.outputs;
      plan_.steps.push_back(std::move(step));
    }
    return Status();
  }

  // Is the value used outside of these nodes?
  bool leaves(ValueId value, const std::set<NodeId> &inside) const {
    for (const auto &[name, result] : graph_.results()) {
      if (result == value) return true;
    }
    for (const NodeId id : graph_.body().nodes) {
      const std::vector<ValueId> &inputs = graph_.node(id).inputs;
      if (inside.count(id) == 0 && std::find(inputs.begin(), inputs.end(), value) != inputs.end()) return true;
    }
    return false;
  }

  Status add_program(const std::vector<NodeId> &nodes) {
    RoutinePlan::Step step;
    graph::GraphBuilder builder;
    graph::NodeCloner cloner(graph_, builder);
    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    for (const NodeId id : nodes) {
      const Node &node = graph_.node(id);
      for (const ValueId input : node.inputs) {
        if (input == kNoValue || cloner.is_mapped(input)) continue;
        const graph::ValueInfo &info = graph_.value(input);
        if (info.producer != kNoNode && graph_.node(info.producer).op == "constant") {
          TUTTI_TRY(cloner.clone_node(graph_.node(info.producer)));
          continue;
        }
        cloner.map(input, builder.input(value_name(input), info.dtype, info.dims));
        step.inputs.push_back(input);
      }
      TUTTI_TRY(cloner.clone_node(node));
    }
    for (const NodeId id : nodes) {
      for (const ValueId output : graph_.node(id).outputs) {
        if (leaves(output, inside)) builder.set_result(value_name(output), cloner.mapped(output));
      }
    }
    TUTTI_ASSIGN(Graph program, builder.finish_graph());
    for (const auto &[name, value] : program.results())
      step.outputs.push_back(static_cast<ValueId>(std::stol(name.substr(1))));
    if (step.outputs.empty()) return Status();
    for (const std::string &symbol : graph::symbols_of(program))
      step.symbols.push_back(position_of(plan_.symbols, symbol));
    step.program = std::make_shared<const Graph>(std::move(program));
    plan_.steps.push_back(std::move(step));
    return Status();
  }

  RoutinePlan &plan_;
  const Graph &graph_;
  std::vector<int32_t> rank_of_;
};

// The step that alone reads a value, and that once; -1 where there is none or the value is a result.
int32_t only_reader(const RoutinePlan &plan, ValueId value) {
  if (plan.result_of_value[static_cast<size_t>(value)] >= 0) return -1;
  int32_t reader = -1;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const ValueId input : plan.steps[i].inputs) {
      if (input != value) continue;
      if (reader >= 0) return -1;
      reader = static_cast<int32_t>(i);
    }
  }
  return reader;
}

// Tells kernels which part of their images is read.
Status find_windows(RoutinePlan &plan) {
  for (RoutinePlan::Step &step : plan.steps) {
    if (step.program != nullptr) continue;
    const int32_t index = only_reader(plan, step.outputs[0]);
    if (index < 0) continue;
    const RoutinePlan::Step &reader = plan.steps[static_cast<size_t>(index)];
    if (reader.program != nullptr || reader.inputs[0] != step.outputs[0]) continue;
    const Node &node = plan.graph->node(reader.node);
    const RoutineWindowFactory factory = find_routine_window(node.op);
    if (factory == nullptr) continue;
    TUTTI_ASSIGN(step.window_read, factory({*plan.graph, node}));
    if (step.window_read != nullptr) step.reader = index;
  }
  return Status();
}

}  // namespace

bool needs_routine(const Graph &graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node &node) { return wants_kernel(graph, node); });
}

Result<std::shared_ptr<const RoutinePlan>> RoutinePlan::create(graph::SealedGraph graph) {
  const auto plan = std::make_shared<RoutinePlan>();
  plan->graph = std::move(graph);
  const Graph &all = *plan->graph;
  const std::set<NodeId> top(all.body().nodes.begin(), all.body().nodes.end());
  for (size_t id = 0; id < all.nodes().size(); ++id) {
    const Node &node = all.nodes()[id];
    if (top.count(static_cast<NodeId>(id)) == 0 && wants_kernel(all, node)) {
      return base::unimplemented(backend::describe(node), ": op '", node.op,
                                 "' runs per element on the host, which no region of another op can");
    }
  }
  for (const auto &[name, value] : all.inputs())
    plan->inputs.push_back(value);
  plan->result_of_value.assign(all.values().size(), -1);
  for (const auto &[name, value] : all.results()) {
    plan->result_of_value[static_cast<size_t>(value)] = static_cast<int32_t>(plan->results.size());
    plan->results.push_back(value);
  }
  plan->symbols = graph::symbols_of(all);
  for (const graph::ValueInfo &info : all.values())
    plan->axes.push_back(axes_of(info.dims, plan->symbols));
  TUTTI_TRY(Cutter(*plan).cut());
  TUTTI_TRY(find_windows(*plan));
  return std::shared_ptr<const RoutinePlan>(plan);
}

}  // namespace tutti::impl::data
