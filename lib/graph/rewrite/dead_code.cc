// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/rewrite/rewrites.h"
#include "graph/rewrite/substitution.h"

namespace tutti::impl::graph::rewrite {
namespace {

class LiveNodes {
 public:
  explicit LiveNodes(Graph &graph) : graph_(graph), live_(graph.values().size(), false) {}

  void run() {
    for (const auto &[name, value] : graph_.results())
      mark(value);
    sweep(graph_.mutable_body());
  }

 private:
  void mark(ValueId value) {
    if (value != kNoValue) live_[static_cast<size_t>(value)] = true;
  }

  // Does something besides giving its outputs.
  bool acts(const Node &node) const {
    const OpDefinition *definition = find_op(node.op, node.revision);
    if (definition == nullptr || definition->effect == Effect::collective || node.op == "input" || node.outputs.empty())
      return true;
    for (const Region &region : node.regions) {
      for (const NodeId id : region.nodes) {
        if (graph_.node(id).op != "input" && acts(graph_.node(id))) return true;
      }
    }
    return false;
  }

  // Last node first: an input marked by a dropped node never counts.
  void sweep(Region &region) {
    for (const ValueId result : region.results)
      mark(result);
    std::vector<NodeId> kept;
    for (auto id = region.nodes.rbegin(); id != region.nodes.rend(); ++id) {
      Node &node = graph_.mutable_node(*id);
      const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                    [&](ValueId v) { return live_[static_cast<size_t>(v)]; });
      if (!used && !acts(node)) continue;
      kept.push_back(*id);
      for (const ValueId input : node.inputs)
        mark(input);
      for (Region &inner : node.regions)
        sweep(inner);
    }
    std::reverse(kept.begin(), kept.end());
    region.nodes = std::move(kept);
  }

  Graph &graph_;
  std::vector<bool> live_;
};

}  // namespace

Graph eliminate_dead_code(Graph graph) {
  LiveNodes(graph).run();
  return compact(graph);
}

}  // namespace tutti::impl::graph::rewrite
