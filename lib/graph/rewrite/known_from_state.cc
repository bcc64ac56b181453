// SPDX-License-Identifier: Apache-2.0
#include "graph/rewrite/known_from_state.h"

#include <algorithm>
#include <string>

#include "graph/op_registry.h"

namespace tutti::impl::graph::rewrite {
namespace {

bool reads_weight(const Node &node) {
  return node.op == "state_read" && std::get<std::string>(node.attributes.at("entry")).rfind("weight/", 0) == 0;
}

bool is_pure(const Node &node) {
  const OpDefinition *definition = find_op(node.op, node.revision);
  return definition != nullptr && definition->effect == Effect::pure && node.regions.empty() && node.op != "input" &&
         node.op != "run_scalar";
}

bool has_fixed_shape(const ValueInfo &value) {
  return std::all_of(value.dims.begin(), value.dims.end(), [](const Dim &dim) { return dim.is_constant(); });
}

}  // namespace

std::vector<char> known_from_state(const Graph &graph) {
  std::vector<char> known(graph.values().size(), 0);
  for (const NodeId id : graph.body().nodes) {
    const Node &node = graph.node(id);
    const bool inputs_known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return input == kNoValue || known[static_cast<size_t>(input)] != 0;
    });
    if (!reads_weight(node) && !(is_pure(node) && inputs_known)) continue;
    for (const ValueId output : node.outputs)
      known[static_cast<size_t>(output)] = has_fixed_shape(graph.value(output)) ? 1 : 0;
  }
  return known;
}

}  // namespace tutti::impl::graph::rewrite
