// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"

namespace tutti::impl::graph {

ValueId NodeCloner::mapped(ValueId from) const {
  const auto found = map_.find(from);
  return found == map_.end() ? kNoValue : found->second;
}

base::Result<std::vector<ValueId>> NodeCloner::clone_node(const Node &node) {
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) {
    if (input != kNoValue && !is_mapped(input)) {
      return base::internal_error("node '", node.scope_name, "' is copied before value ", input, " it needs");
    }
    inputs.push_back(input == kNoValue ? kNoValue : mapped(input));
  }
  const std::vector<ValueId> from = node.outputs;  // the source may move while the destination grows
  std::vector<ValueId> outputs = destination_.copy_node(source_, node, inputs);
  TUTTI_TRY(destination_.status());
  for (size_t i = 0; i < from.size(); ++i)
    map(from[i], outputs[i]);
  return outputs;
}

base::Result<ValueId> NodeCloner::clone_value(ValueId value) {
  if (is_mapped(value)) return mapped(value);
  if (!source_.contains(value)) return base::internal_error("value ", value, " cannot be copied: it does not exist");
  // An explicit stack: graphs may be deeper than the thread's stack.
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId next = open.back();
    if (is_mapped(next)) {
      open.pop_back();
      continue;
    }
    const NodeId producer = source_.value(next).producer;
    if (producer == kNoNode) return base::internal_error("parameter ", next, " of a region has no copy");
    const size_t before = open.size();
    for (const ValueId input : source_.node(producer).inputs) {
      if (input != kNoValue && !is_mapped(input)) open.push_back(input);
    }
    if (open.size() != before) continue;
    const Node node = source_.node(producer);
    TUTTI_TRY(clone_node(node));
    open.pop_back();
  }
  return mapped(value);
}

base::Result<std::vector<ValueId>> NodeCloner::inline_region(const Region &region, std::span<const ValueId> arguments) {
  if (region.parameters.size() != arguments.size()) {
    return base::internal_error("a region of ", region.parameters.size(), " parameters got ", arguments.size());
  }
  const Region copy = region;  // the source may move while the destination grows
  for (size_t i = 0; i < arguments.size(); ++i)
    map(copy.parameters[i], arguments[i]);
  for (const NodeId id : copy.nodes) {
    const Node node = source_.node(id);
    TUTTI_TRY(clone_node(node));
  }
  std::vector<ValueId> results;
  for (const ValueId result : copy.results)
    results.push_back(mapped(result));
  return results;
}

}  // namespace tutti::impl::graph
