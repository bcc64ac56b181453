// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "graph/builder.h"
#include "graph/clone.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::graph::rewrite {
namespace {

using base::Result;
using base::Status;

const std::string &entry_of(const Node &node) { return std::get<std::string>(node.attributes.find("entry")->second); }

/// Positions are those of nodes of the first graph; a node of the second lies behind its position.
class Joiner {
 public:
  Joiner(const Graph &first, const Graph &second, std::span<const std::string_view> passing)
      : first_(first), second_(second), passing_(passing) {}

  Result<Graph> run() {
    born_.assign(first_.values().size(), kStart);
    last_use_.assign(first_.values().size(), kStart);
    TUTTI_TRY(scan_first());
    find_overwriting();
    behind_.resize(first_.body().nodes.size() + 1);
    GraphBuilder builder(first_.clone());
    TUTTI_TRY(place_second(builder));
    TUTTI_ASSIGN(Graph joined, builder.finish_graph());
    order(joined);
    return eliminate_dead_code(merge_equal_nodes(std::move(joined)));
  }

 private:
  static constexpr int64_t kStart = -1;

  const Node &first_node(int64_t position) const {
    return first_.node(first_.body().nodes[static_cast<size_t>(position)]);
  }

  bool is_passing(const std::string &entry) const {
    return std::any_of(passing_.begin(), passing_.end(),
                       [&](std::string_view prefix) { return entry.rfind(prefix, 0) == 0; });
  }

  void use(const Node &node, int64_t position) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) last_use_[static_cast<size_t>(input)] = position;
    }
    for (const Region &region : node.regions) {
      for (const NodeId id : region.nodes)
        use(first_.node(id), position);
    }
  }

  Status scan_first() {
    for (int64_t position = 0; position < static_cast<int64_t>(first_.body().nodes.size()); ++position) {
      const Node &node = first_node(position);
      if (node.op == "state_write") {
        if (!handed_over_.emplace(entry_of(node), node.inputs[0]).second)
          return base::invalid_argument("state entry '", entry_of(node), "' is written twice");
        if (is_passing(entry_of(node))) continue;
      }
      if (node.op == "state_read") read_.emplace(entry_of(node), node.outputs[0]);
      for (const ValueId output : node.outputs)
        born_[static_cast<size_t>(output)] = position;
      use(node, position);
    }
    return Status();
  }

  /// Until where an entry that is read has to keep its value. Kernels may read it as late as a node that uses what was
  /// made of it, when they compute both.
  int64_t end_of_reading(const std::string &entry) const {
    const auto found = read_.find(entry);
    if (found == read_.end()) return kStart;
    int64_t end = last_use_[static_cast<size_t>(found->second)];
    for (int64_t position = 0; position <= last_use_[static_cast<size_t>(found->second)]; ++position) {
      const Node &node = first_node(position);
      if (std::find(node.inputs.begin(), node.inputs.end(), found->second) == node.inputs.end()) continue;
      for (const ValueId output : node.outputs)
        end = std::max(end, last_use_[static_cast<size_t>(output)]);
    }
    return end;
  }

  /// What makes a new value of an entry may do so in its place.
  void find_overwriting() {
    for (const NodeId id : second_.body().nodes) {
      const Node &node = second_.node(id);
      if (node.op != "state_write") continue;
      const NodeId producer = second_.value(node.inputs[0]).producer;
      const int64_t end = end_of_reading(entry_of(node));
      for (const NodeId one : {id, producer}) {
        if (one == kNoNode) continue;
        int64_t &bound = not_before_.try_emplace(one, kStart).first->second;
        bound = std::max(bound, end);
      }
    }
  }

  /// The value of the first graph that a state_read of the second stands for; kNoValue when it reads state.
  Result<ValueId> known_value(const Node &node) const {
    if (node.op != "state_read") return kNoValue;
    const auto handed_over = handed_over_.find(entry_of(node));
    const auto read = read_.find(entry_of(node));
    const bool is_handed_over = handed_over != handed_over_.end();
    if (!is_handed_over && read == read_.end()) return kNoValue;
    const ValueId value = is_handed_over ? handed_over->second : read->second;
    const ValueInfo &has = first_.value(value), &wants = second_.value(node.outputs[0]);
    if (has.dims == wants.dims && has.dtype == wants.dtype) return value;
    if (!is_handed_over) return kNoValue;
    return base::invalid_argument("state entry '", entry_of(node), "' is written as ", tensor::name(has.dtype),
                                  to_string(has.dims), " and read as ", tensor::name(wants.dtype),
                                  to_string(wants.dims));
  }

  Status place_second(GraphBuilder &builder) {
    NodeCloner cloner(second_, builder);
    std::unordered_map<ValueId, int64_t> born;  // of the second's values
    for (const NodeId id : second_.body().nodes) {
      const Node &node = second_.node(id);
      TUTTI_ASSIGN(const ValueId known, known_value(node));
      if (known != kNoValue) {
        cloner.map(node.outputs[0], known);
        born[node.outputs[0]] = born_[static_cast<size_t>(known)];
        continue;
      }
      const auto bound = not_before_.find(id);
      int64_t position = bound == not_before_.end() ? kStart : bound->second;
      for (const ValueId input : node.inputs) {
        if (input != kNoValue) position = std::max(position, born[input]);
      }
      TUTTI_TRY(cloner.clone_node(node).status());
      for (const ValueId output : node.outputs)
        born[output] = position;
      behind_[static_cast<size_t>(position - kStart)].push_back(placed_++);
    }
    return builder.status();
  }

  bool is_dropped(const Node &node) const { return node.op == "state_write" && is_passing(entry_of(node)); }

  void order(Graph &joined) const {
    const std::vector<NodeId> nodes = joined.body().nodes;
    const size_t first_count = first_.body().nodes.size();
    std::vector<NodeId> order;
    for (size_t i = 0; i <= first_count; ++i) {
      if (i > 0 && !is_dropped(joined.node(nodes[i - 1]))) order.push_back(nodes[i - 1]);
      for (const size_t placed : behind_[i])
        order.push_back(nodes[first_count + placed]);
    }
    joined.mutable_body().nodes = std::move(order);
  }

  const Graph &first_, &second_;
  const std::span<const std::string_view> passing_;
  std::unordered_map<std::string, ValueId> handed_over_, read_;  // by entry
  std::vector<int64_t> born_, last_use_;                         // of the first's values
  std::unordered_map<NodeId, int64_t> not_before_;               // of the second's nodes
  std::vector<std::vector<size_t>> behind_;                      // nodes of the second by position, from the start on
  size_t placed_ = 0;
};

}  // namespace

Result<Graph> join_programs(const Graph &first, const Graph &second, std::span<const std::string_view> passing) {
  return Joiner(first, second, passing).run();
}

}  // namespace tutti::impl::graph::rewrite
