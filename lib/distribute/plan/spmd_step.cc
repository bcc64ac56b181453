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

Graph with_reduced_writes(const Graph &accumulate, std::span<const std::string_view> prefixes) {
  Graph graph = accumulate.clone();
  const std::vector<NodeId> nodes = graph.body().nodes;
  std::vector<NodeId> order;
  for (const NodeId id : nodes) {
    if (graph.node(id).op == "state_write") {
      const std::string entry = std::get<std::string>(graph.node(id).attributes.find("entry")->second);
      const bool is_reduced =
          std::ranges::any_of(prefixes, [&](std::string_view prefix) { return entry.rfind(prefix, 0) == 0; });
      if (is_reduced) {
        const ValueId part = graph.node(id).inputs[0];
        const ValueId total = graph.add_value({graph.value(part).dtype, graph.value(part).dims, graph::kNoNode, 0, ""});
        order.push_back(
            graph.add_node(Node{"all_reduce", 1, "reduce/" + entry, 0, {part}, {total}, {{"label", entry}}, {}}));
        graph.mutable_node(id).inputs[0] = total;
      }
    }
    order.push_back(id);
  }
  graph.mutable_body().nodes = std::move(order);
  return graph;
}

}  // namespace tutti::impl::distribute
