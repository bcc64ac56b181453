// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/rewrite/rewrites.h"
#include "graph/rewrite/substitution.h"

namespace tutti::impl::graph::rewrite {

Graph inline_regions(Graph graph, const std::vector<std::string> &ops) {
  Substitution substitution;
  // Inner regions come first, so what is inlined has nothing left to inline.
  for_each_region(graph, [&](Region &region) {
    std::vector<NodeId> order;
    for (const NodeId id : region.nodes) {
      const Node &node = graph.node(id);
      if (node.regions.empty() || std::count(ops.begin(), ops.end(), node.op) == 0) {
        order.push_back(id);
        continue;
      }
      const Region &body = node.regions[0];
      for (size_t i = 0; i < body.parameters.size(); ++i)
        substitution.replace(body.parameters[i], node.inputs[i]);
      for (size_t i = 0; i < body.results.size(); ++i)
        substitution.replace(node.outputs[i], body.results[i]);
      order.insert(order.end(), body.nodes.begin(), body.nodes.end());
    }
    region.nodes = std::move(order);
  });
  substitution.apply(graph);
  return compact(graph);
}

}  // namespace tutti::impl::graph::rewrite
