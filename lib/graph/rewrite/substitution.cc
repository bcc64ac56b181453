// SPDX-License-Identifier: Apache-2.0
#include "graph/rewrite/substitution.h"

namespace tutti::impl::graph::rewrite {
namespace {

void visit_regions(Graph &graph, Region &region, const std::function<void(Region &)> &visit) {
  for (const NodeId id : region.nodes) {
    for (Region &inner : graph.mutable_node(id).regions)
      visit_regions(graph, inner, visit);
  }
  visit(region);
}

class Compactor {
 public:
  explicit Compactor(const Graph &source) : source_(source), values_(source.values().size(), kNoValue) {}

  Graph run() {
    target_.mutable_body() = copy(source_.body());
    for (const auto &[name, value] : source_.results())
      target_.set_result(name, renamed(value));
    return std::move(target_);
  }

 private:
  ValueId renamed(ValueId value) const { return value == kNoValue ? kNoValue : values_[static_cast<size_t>(value)]; }

  std::vector<ValueId> renamed(const std::vector<ValueId> &list) const {
    std::vector<ValueId> result;
    for (const ValueId value : list)
      result.push_back(renamed(value));
    return result;
  }

  std::vector<ValueId> define(const std::vector<ValueId> &list) {
    for (const ValueId value : list) {
      ValueInfo info = source_.value(value);
      info.producer = kNoNode;
      values_[static_cast<size_t>(value)] = target_.add_value(std::move(info));
    }
    return renamed(list);
  }

  Region copy(const Region &region) {
    Region result;
    result.parameters = define(region.parameters);
    for (const NodeId id : region.nodes) {
      const Node &node = source_.node(id);
      Node made;
      made.op = node.op;
      made.revision = node.revision;
      made.scope_name = node.scope_name;
      made.stable_id = node.stable_id;
      made.attributes = node.attributes;
      made.inputs = renamed(node.inputs);
      for (const Region &inner : node.regions)
        made.regions.push_back(copy(inner));
      made.outputs = define(node.outputs);
      result.nodes.push_back(target_.add_node(std::move(made)));
    }
    result.results = renamed(region.results);
    return result;
  }

  const Graph &source_;
  Graph target_;
  std::vector<ValueId> values_;
};

}  // namespace

ValueId Substitution::resolve(ValueId value) const {
  for (auto found = map_.find(value); found != map_.end(); found = map_.find(value))
    value = found->second;
  return value;
}

void Substitution::apply(Graph &graph) const {
  if (map_.empty()) return;
  for_each_region(graph, [&](Region &region) {
    for (const NodeId id : region.nodes) {
      for (ValueId &input : graph.mutable_node(id).inputs)
        input = resolve(input);
    }
    for (ValueId &result : region.results)
      result = resolve(result);
  });
  const auto results = graph.results();
  for (const auto &[name, value] : results)
    graph.set_result(name, resolve(value));
}

void for_each_region(Graph &graph, const std::function<void(Region &)> &visit) {
  visit_regions(graph, graph.mutable_body(), visit);
}

Graph compact(const Graph &graph) { return Compactor(graph).run(); }

}  // namespace tutti::impl::graph::rewrite
