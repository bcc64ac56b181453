// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/step_writes.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "distribute/plan/step_graphs.h"
#include "graph/replicate.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Placement;
using graph::ValueId;

const std::string &entry_of(const Node &node) { return std::get<std::string>(node.attributes.find("entry")->second); }

/// Moves every state_write right behind the node that makes its value, so that values are ready, and buckets complete,
/// as early as possible.
void move_writes_forward(Graph &graph) {
  std::unordered_map<NodeId, std::vector<NodeId>> writes_behind;
  std::vector<NodeId> others;
  for (const NodeId id : graph.body().nodes) {
    const Node &node = graph.node(id);
    const NodeId producer = node.op == "state_write" ? graph.value(node.inputs[0]).producer : graph::kNoNode;
    if (producer == graph::kNoNode) {
      others.push_back(id);
    } else {
      writes_behind[producer].push_back(id);
    }
  }
  std::vector<NodeId> order;
  for (const NodeId id : others) {
    order.push_back(id);
    const auto found = writes_behind.find(id);
    if (found != writes_behind.end()) order.insert(order.end(), found->second.begin(), found->second.end());
  }
  graph.mutable_body().nodes = std::move(order);
}

/// 0 gradients, 1 aggregates, 2 sums.
int section(const std::string &entry) {
  if (entry.rfind("gradient/", 0) == 0) return 0;
  return entry.rfind("aggregate/", 0) == 0 ? 1 : 2;
}

/// Where the f32 sum of the micro-batches lies that becomes the entry "gradient/...".
std::string accumulated_entry(const std::string &entry) { return "accumulated" + entry.substr(entry.find('/')); }

/// The entry that micro-batches write which are not the last.
std::string written_entry(const StepWrite &write) {
  return write.rounded ? accumulated_entry(write.entry) : write.entry;
}

/// Of what the graph writes, all of one arena.
Result<std::vector<StateSpec>> specs_in_order(const Graph &graph, const std::vector<StepWrite> &writes, Arena arena) {
  std::unordered_map<std::string, std::string> variables;
  for (const StepWrite &write : writes)
    variables[arena == Arena::accumulated ? written_entry(write) : write.entry] = write.variable;
  std::vector<StateSpec> specs;
  for (const NodeId id : graph.body().nodes) {
    const Node &node = graph.node(id);
    if (node.op != "state_write" || entry_of(node).rfind("rows/", 0) == 0)
      continue;  // passes to a graph it is joined to
    const graph::ValueInfo &info = graph.value(node.inputs[0]);
    const auto shape = graph::constant_shape(info.dims);
    if (!shape)
      return base::internal_error("state entry '", entry_of(node), "' has dims ", graph::to_string(info.dims));
    if (entry_of(node).rfind("report/", 0) == 0) continue;
    const bool is_accumulated = entry_of(node).rfind("accumulated/", 0) == 0;
    if (is_accumulated != (arena == Arena::accumulated)) continue;
    specs.push_back({entry_of(node), arena, info.dtype, *shape, variables[entry_of(node)]});
  }
  std::stable_sort(specs.begin(), specs.end(),
                   [](const StateSpec &a, const StateSpec &b) { return section(a.name) < section(b.name); });
  return specs;
}

graph::SealedGraph with_mode_add(const Graph &graph) {
  Graph copy = graph.clone();
  for (const NodeId id : copy.body().nodes) {
    Node &node = copy.mutable_node(id);
    if (node.op == "state_write") node.attributes.insert_or_assign("mode", std::string("add"));
  }
  return std::make_shared<const Graph>(std::move(copy));
}

/// In place of each write that accumulates a gradient: its sum with what is accumulated, rounded, as the gradient. The
/// nodes stand where the write stood.
graph::SealedGraph with_rounded_sums(const Graph &accumulate, const std::vector<StepWrite> &writes) {
  std::unordered_map<std::string, const StepWrite *> rounded;
  for (const StepWrite &write : writes) {
    if (write.rounded) rounded[written_entry(write)] = &write;
  }
  Graph graph = accumulate.clone();
  const std::vector<NodeId> nodes = graph.body().nodes;
  std::vector<NodeId> order;
  for (const NodeId id : nodes) {
    const auto found = graph.node(id).op == "state_write" ? rounded.find(entry_of(graph.node(id))) : rounded.end();
    if (found == rounded.end()) {
      order.push_back(id);
      continue;
    }
    const StepWrite &write = *found->second;
    const ValueId part = graph.node(id).inputs[0];
    const tensor::DType dtype = graph.value(part).dtype;
    const graph::Dims dims = graph.value(part).dims;  // values are added below
    const auto add_node = [&, at = graph.node(id).scope_name](const char *op, std::vector<ValueId> inputs,
                                                              tensor::DType result, graph::Attributes attributes) {
      const ValueId output = graph.add_value({result, dims, graph::kNoNode, 0, ""});
      order.push_back(graph.add_node({op, 1, at, 0, std::move(inputs), {output}, std::move(attributes), {}}));
      return output;
    };
    const ValueId before =
        add_node("state_read", {}, dtype, {{"entry", found->first}, {"dtype", dtype}, {"dims", dims}});
    const ValueId sum = add_node("add", {before, part}, dtype, {});
    const ValueId result = add_node("cast", {sum}, *write.rounded, {{"dtype", *write.rounded}});
    Node &node = graph.mutable_node(id);
    node.inputs[0] = result;
    node.attributes.insert_or_assign("entry", write.entry);
    node.attributes.insert_or_assign("mode", std::string("write"));
    order.push_back(id);
  }
  graph.mutable_body().nodes = std::move(order);
  return std::make_shared<const Graph>(std::move(graph));
}

/// What is equal on all contributors is added by the first alone.
Result<Graph> add_writes(Graph graph, const std::vector<StepWrite> &writes, const StepWriteOptions &options) {
  const bool several = options.contributors > 1 || options.accumulation > 1;
  TUTTI_ASSIGN(const std::vector<Placement> placements, graph::place(graph, several));
  graph::GraphBuilder builder(std::move(graph));
  for (const StepWrite &write : writes) {
    ValueId value = write.value;
    const Placement placement = placements[static_cast<size_t>(value)];
    if (several && placement == Placement::varying) {
      return base::invalid_argument("state entry '", write.entry,
                                    "' comes from statistics that were declared per_replica, which are not combined");
    }
    if (several && placement == Placement::replicated) {
      value = builder.mul(value, builder.run_scalar("first_flag", builder.dtype(value)));
    }
    builder.state_write(value, written_entry(write));
  }
  return builder.finish_graph();
}

}  // namespace

Result<AccumulateGraphs> seal_with_writes(graph::GraphBuilder builder, const std::vector<StepWrite> &writes,
                                          const StepWriteOptions &options) {
  TUTTI_ASSIGN(Graph global, builder.finish_graph());
  TUTTI_ASSIGN(global, add_writes(std::move(global), writes, options));
  global = graph::rewrite::optimize(std::move(global), {.inline_regions = true});
  move_writes_forward(global);
  TUTTI_ASSIGN(Graph local, graph::replicate(global, {options.contributors, options.accumulation}));
  move_writes_forward(local);
  AccumulateGraphs graphs;
  graphs.add = with_mode_add(local);
  const bool rounds = std::any_of(writes.begin(), writes.end(), [](const StepWrite &one) { return one.rounded; });
  if (rounds) graphs.last = with_rounded_sums(*graphs.add, writes);
  TUTTI_ASSIGN(graphs.specs, specs_in_order(rounds ? *graphs.last : local, writes, Arena::partials));
  TUTTI_ASSIGN(const std::vector<StateSpec> accumulated, specs_in_order(local, writes, Arena::accumulated));
  graphs.specs.insert(graphs.specs.end(), accumulated.begin(), accumulated.end());
  graphs.write = std::make_shared<const Graph>(std::move(local));
  return graphs;
}

Result<graph::SealedGraph> mark_buckets(const graph::SealedGraph &accumulate, const StatePlan &plan) {
  const std::vector<Bucket> &buckets = plan.buckets();
  if (buckets.size() < 2) return accumulate;
  // A bucket is complete behind the last write of an entry of it, and not before the buckets in front of it are.
  std::unordered_map<std::string, size_t> bucket_of;
  for (size_t b = 0; b < buckets.size(); ++b) {
    for (int32_t i = 0; i < buckets[b].entry_count; ++i) {
      bucket_of[plan.entries()[static_cast<size_t>(buckets[b].first_entry + i)].name] = b;
    }
  }
  Graph graph = accumulate->clone();
  const std::vector<NodeId> nodes = graph.body().nodes;
  std::vector<size_t> complete_at(buckets.size(), 0);
  for (size_t position = 0; position < nodes.size(); ++position) {
    const Node &node = graph.node(nodes[position]);
    if (node.op != "state_write") continue;
    const auto bucket = bucket_of.find(entry_of(node));
    if (bucket != bucket_of.end()) complete_at[bucket->second] = position;
  }
  for (size_t b = 1; b < buckets.size(); ++b)
    complete_at[b] = std::max(complete_at[b], complete_at[b - 1]);

  std::vector<NodeId> order;
  size_t next = 0;
  const auto add_mark = [&](size_t bucket) {
    const std::string label = "bucket/" + std::to_string(bucket);
    const ValueId nothing = graph.add_value({tensor::DType::f32, {graph::Dim(0)}, graph::kNoNode, 0, ""});
    const ValueId same = graph.add_value({tensor::DType::f32, {graph::Dim(0)}, graph::kNoNode, 0, ""});
    Node constant{"constant", 1, label + "/nothing", 0, {}, {nothing}, {}, {}};
    constant.attributes["value"] = *tensor::Tensor::zeros(tensor::DType::f32, tensor::Shape({0}));
    order.push_back(graph.add_node(std::move(constant)));
    order.push_back(graph.add_node({"all_reduce", 1, label, 0, {nothing}, {same}, {{"label", label}}, {}}));
  };
  for (size_t position = 0; position < nodes.size(); ++position) {
    order.push_back(nodes[position]);
    while (next + 1 < buckets.size() && complete_at[next] == position && position + 1 < nodes.size())
      add_mark(next++);
  }
  graph.mutable_body().nodes = std::move(order);
  return graph::SealedGraph(std::make_shared<const Graph>(std::move(graph)));
}

StateSpec report_spec(const graph::GraphBuilder &builder, const std::string &name, ValueId value) {
  return {"report/" + name, Arena::report, builder.dtype(value),
          graph::constant_shape(builder.dims(value)).value_or(std::vector<int64_t>()), ""};
}

}  // namespace tutti::impl::distribute
