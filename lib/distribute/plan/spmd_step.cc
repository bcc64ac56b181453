// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/spmd_step.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tutti::impl::distribute {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

static bool writes_any(const Node &node, std::span<const std::string_view> prefixes) {
  if (node.op != "state_write") return false;
  const auto &entry = std::get<std::string>(node.attributes.find("entry")->second);
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return entry.starts_with(prefix); });
}

/// Writes the sum of what the node would write; gives the node that makes it.
static NodeId reduce_what_is_written(Graph &graph, NodeId id) {
  const std::string entry = std::get<std::string>(graph.node(id).attributes.find("entry")->second);
  const ValueId part = graph.node(id).inputs[0];
  const ValueId total = graph.add_value({graph.value(part).dtype, graph.value(part).dims, graph::kNoNode, 0, ""});
  graph.mutable_node(id).inputs[0] = total;
  return graph.add_node(Node{"all_reduce", 1, "reduce/" + entry, 0, {part}, {total}, {{"label", entry}}, {}});
}

Graph with_reduced_writes(const Graph &accumulate, std::span<const std::string_view> prefixes) {
  Graph graph = accumulate.clone();
  const std::vector<NodeId> nodes = graph.body().nodes;
  std::vector<NodeId> order;
  for (const NodeId id : nodes) {
    if (writes_any(graph.node(id), prefixes)) order.push_back(reduce_what_is_written(graph, id));
    order.push_back(id);
  }
  graph.mutable_body().nodes = std::move(order);
  return graph;
}

}  // namespace tutti::impl::distribute
