// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "graph/builder.h"
#include "graph/clone.h"
#include "graph/rewrite/known_from_state.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::graph::rewrite {
namespace {

using base::Result;
using base::Status;

bool is_view(const Node &node) {
  return node.op == "identity" || node.op == "stop_gradient" || node.op == "reshape" || node.op == "state_read";
}

class Precomputer {
 public:
  explicit Precomputer(const Graph &graph) : graph_(graph), known_(known_from_state(graph)) {}

  Result<PrecomputedGraph> run() {
    find_worth();
    find_frontier();
    PrecomputedGraph result;
    if (frontier_.empty()) {
      result.forward = graph_.clone();
      return result;
    }
    GraphBuilder prepare, forward;
    NodeCloner beforehand(graph_, prepare), every_call(graph_, forward);
    for (const ValueId value : frontier_) {
      const ValueInfo &info = graph_.value(value);
      PrecomputedGraph::Entry entry{base::concat("derived/", result.entries.size()), info.dtype, {}};
      for (const Dim &dim : info.dims)
        entry.dims.push_back(dim.constant());
      TUTTI_ASSIGN(const ValueId computed, beforehand.clone_value(value));
      prepare.state_write(computed, entry.name);
      every_call.map(value, forward.state_read(entry.name, info.dtype, info.dims));
      result.entries.push_back(std::move(entry));
    }
    TUTTI_TRY(clone_calls(every_call));
    for (const auto &[name, value] : graph_.results())
      forward.set_result(name, every_call.mapped(value));
    TUTTI_ASSIGN(result.prepare, prepare.finish_graph());
    TUTTI_ASSIGN(result.forward, forward.finish_graph());
    return result;
  }

 private:
  bool is_known(ValueId value) const { return value != kNoValue && known_[static_cast<size_t>(value)] != 0; }
  bool is_worth(ValueId value) const { return is_known(value) && worth_[static_cast<size_t>(value)] != 0; }

  /// Values for which something of the state is computed, not only looked at.
  void find_worth() {
    worth_.assign(graph_.values().size(), 0);
    std::vector<char> of_state(graph_.values().size(), 0);
    for (const NodeId id : graph_.body().nodes) {
      const Node &node = graph_.node(id);
      bool state = node.op == "state_read", worth = false;
      for (const ValueId input : node.inputs) {
        state |= input != kNoValue && of_state[static_cast<size_t>(input)] != 0;
        worth |= is_worth(input);
      }
      for (const ValueId output : node.outputs) {
        of_state[static_cast<size_t>(output)] = state ? 1 : 0;
        worth_[static_cast<size_t>(output)] = worth || (state && !is_view(node)) ? 1 : 0;
      }
    }
  }

  void add_to_frontier(ValueId value, std::vector<char> &seen) {
    if (value == kNoValue || !is_worth(value) || seen[static_cast<size_t>(value)] != 0) return;
    seen[static_cast<size_t>(value)] = 1;
    frontier_.push_back(value);
  }

  bool is_left(const Node &node) const { return node.outputs.empty() || !is_known(node.outputs[0]); }

  /// Worthwhile values that a call uses.
  void find_frontier() {
    std::vector<char> seen(graph_.values().size(), 0);
    for (const NodeId id : graph_.body().nodes) {
      const Node &node = graph_.node(id);
      if (!is_left(node)) continue;
      for (const ValueId input : node.inputs)
        add_to_frontier(input, seen);
    }
    for (const auto &[name, value] : graph_.results())
      add_to_frontier(value, seen);
  }

  /// Nodes of a call in their order; what they need of the weights beside the entries comes along.
  Status clone_calls(NodeCloner &cloner) const {
    for (const NodeId id : graph_.body().nodes) {
      const Node &node = graph_.node(id);
      if (!is_left(node)) continue;
      for (const ValueId input : node.inputs) {
        if (input != kNoValue) TUTTI_TRY(cloner.clone_value(input));
      }
      TUTTI_TRY(cloner.clone_node(node));
    }
    for (const auto &[name, value] : graph_.results())
      TUTTI_TRY(cloner.clone_value(value));
    return Status();
  }

  const Graph &graph_;
  std::vector<char> known_, worth_;
  std::vector<ValueId> frontier_;
};

}  // namespace

Result<PrecomputedGraph> precompute_state(const Graph &graph) { return Precomputer(graph).run(); }

}  // namespace tutti::impl::graph::rewrite
