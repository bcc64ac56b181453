// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"
#include "graph/op_registry.h"
#include "graph/rewrite/rewrites.h"
#include "graph/rewrite/substitution.h"
#include "graph/serialize.h"

namespace tutti::impl::graph::rewrite {
namespace {

constexpr int64_t kMaximumConstantBytes = 64 * 1024;  // larger ones are not compared

bool is_mergeable(const Node &node) {
  const OpDefinition *definition = find_op(node.op, node.revision);
  if (definition == nullptr || !node.regions.empty() || node.outputs.empty()) return false;
  if (definition->effect != Effect::pure && definition->effect != Effect::random) return false;
  const auto value = node.attributes.find("value");
  const auto *tensor = value == node.attributes.end() ? nullptr : std::get_if<tensor::Tensor>(&value->second);
  return tensor == nullptr || tensor->size_bytes() <= kMaximumConstantBytes;
}

// Equal text means equal results.
std::string key_of(const Node &node, const Substitution &substitution) {
  std::string key = base::concat(node.op, "/", node.revision);
  for (const ValueId input : node.inputs)
    key += base::concat(",", substitution.resolve(input));
  key += to_json(node.attributes).dump();
  const OpDefinition *definition = find_op(node.op, node.revision);
  if (definition->effect != Effect::random) return key;
  const auto random_key = node.attributes.find("key");
  const bool own = random_key == node.attributes.end() || std::get<int64_t>(random_key->second) == 0;
  return own ? key + base::concat("#", node.stable_id) : key;
}

}  // namespace

Graph merge_equal_nodes(Graph graph) {
  Substitution substitution;
  for_each_region(graph, [&](Region &region) {
    std::unordered_map<std::string, NodeId> first;
    std::vector<NodeId> kept;
    for (const NodeId id : region.nodes) {
      const Node &node = graph.node(id);
      if (is_mergeable(node)) {
        const auto [known, is_new] = first.emplace(key_of(node, substitution), id);
        if (!is_new) {
          const Node &same = graph.node(known->second);
          for (size_t i = 0; i < node.outputs.size(); ++i)
            substitution.replace(node.outputs[i], same.outputs[i]);
          continue;
        }
      }
      kept.push_back(id);
    }
    region.nodes = std::move(kept);
  });
  substitution.apply(graph);
  return compact(graph);
}

}  // namespace tutti::impl::graph::rewrite
