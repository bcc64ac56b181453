// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/joined_step.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/dtype.h"

namespace tutti::impl::distribute {
namespace {

using graph::Graph;
using graph::ValueId;

bool is_index(const Graph &graph, ValueId value) {
  if (value == graph::kNoValue || !tensor::is_integer(graph.value(value).dtype)) return false;
  const std::string &op = graph.node(graph.value(value).producer).op;
  return op != "constant" && op != "run_scalar";
}

bool updates_weights(const graph::Node &node) {
  return node.op == "state_write" &&
         std::get<std::string>(node.attributes.find("entry")->second).rfind("report/", 0) != 0;
}

/// Updates of rows, and what passes indices on to them.
bool takes_any_index(const graph::Node &node) {
  constexpr std::string_view ops[] = {"sum_rows", "rows_at", "row_update", "reshape", "cast", "concat"};
  return std::ranges::find(ops, node.op) != std::end(ops);
}

/// May a node refuse its input, when no node before the first update had it too?
bool refuses_after_update(const Graph &graph) {
  std::set<ValueId> seen;
  bool updated = false;
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node &node = graph.node(id);
    updated = updated || updates_weights(node);
    if (updated && !node.regions.empty()) return true;
    if (takes_any_index(node)) continue;
    for (const ValueId input : node.inputs) {
      if (is_index(graph, input) && seen.insert(input).second && updated) return true;
    }
  }
  return false;
}

bool refuses_indices(const graph::Node &node) {
  return node.op == "gather" || node.op == "sparse_softmax_cross_entropy" || !node.regions.empty();
}

ValueId loss_of(const Graph &graph) {
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node &node = graph.node(id);
    if (node.op != "state_write") continue;
    if (std::get<std::string>(node.attributes.find("entry")->second) == "report/loss") return node.inputs[0];
  }
  return graph::kNoValue;
}

/// Is there an index that may be out of range without making the loss NaN? Only numbers with a fraction can be.
bool refuses_unseen_by_the_loss(const Graph &graph) {
  std::set<ValueId> seen;
  const std::vector<graph::NodeId> needed = graph::nodes_needed_for(graph, {loss_of(graph)});
  for (const graph::NodeId id : needed) {
    const graph::Node &node = graph.node(id);
    if (refuses_indices(node) && tensor::is_floating(graph.value(node.outputs[0]).dtype))
      seen.insert(node.inputs.begin(), node.inputs.end());
  }
  return std::ranges::any_of(graph.body().nodes, [&](graph::NodeId id) {
    const graph::Node &node = graph.node(id);
    return refuses_indices(node) && std::ranges::any_of(node.inputs, [&](ValueId input) {
             return is_index(graph, input) && !seen.contains(input);
           });
  });
}

}  // namespace

bool refuses_before_updates(const Graph &joined, bool by_the_loss) {
  return !refuses_after_update(joined) && !(by_the_loss && refuses_unseen_by_the_loss(joined));
}

}  // namespace tutti::impl::distribute
