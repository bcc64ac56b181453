// SPDX-License-Identifier: Apache-2.0
#include "distribute/inline_calls.h"

#include <algorithm>

#include "graph/builder.h"
#include "graph/clone.h"

namespace tutti::impl::distribute {
namespace {

bool is_call(const graph::Node &node) {
  return node.op == "call" || node.op == "fusion" || node.op == "custom_gradient";
}

bool has_calls(const graph::Graph &graph) {
  const auto &nodes = graph.body().nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](graph::NodeId id) { return is_call(graph.node(id)); });
}

base::Result<graph::Graph> inline_once(const graph::Graph &graph) {
  graph::GraphBuilder builder;
  graph::NodeCloner cloner(graph, builder);
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node &node = graph.node(id);
    if (!is_call(node)) {
      TUTTI_TRY(cloner.clone_node(node));
      continue;
    }
    std::vector<graph::ValueId> arguments;
    for (const graph::ValueId input : node.inputs)
      arguments.push_back(cloner.mapped(input));
    TUTTI_ASSIGN(const std::vector<graph::ValueId> results, cloner.inline_region(node.regions[0], arguments));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      cloner.map(node.outputs[i], results[i]);
  }
  for (const auto &[name, value] : graph.results())
    builder.set_result(name, cloner.mapped(value));
  return builder.finish_graph();
}

}  // namespace

base::Result<graph::Graph> inline_calls(const graph::Graph &graph) {
  graph::Graph current = graph.clone();
  while (has_calls(current)) {
    TUTTI_ASSIGN(current, inline_once(current));
  }
  return current;
}

}  // namespace tutti::impl::distribute
