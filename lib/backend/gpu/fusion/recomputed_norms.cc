// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/recomputed_norms.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/rewrite/substitution.h"

namespace tutti::impl::backend::gpu {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

namespace {

bool is_gradient(const Node &node) { return node.op.ends_with("_gradient"); }

bool is_norm(const Node &node) { return node.op == "batch_norm_training" || node.op == "batch_norm_inference"; }

/// Of a node that reads or writes state.
const std::string &entry_of(const Node &node) { return std::get<std::string>(node.attributes.at("entry")); }

struct Recomputed {
  int32_t norm = -1;
  std::vector<int32_t> chain;    // the casts and the relu behind it
  std::vector<int32_t> readers;  // what reads it late, in order
};

class Finder {
 public:
  explicit Finder(const LoweredGraph &lowered) : lowered_(lowered), readers_(lowered.values().size()) {
    for (int32_t step = 0; step < lowered.step_count(); ++step) {
      for (const ValueId input : lowered.step(step).inputs) {
        if (input != kNoValue) readers_[static_cast<size_t>(input)].push_back(step);
      }
    }
    for (const LoweredPort &port : lowered.outputs())
      readers_[static_cast<size_t>(port.value)].push_back(lowered.step_count());
  }

  std::optional<Recomputed> find(int32_t norm, int64_t least_bytes) const {
    Recomputed found{norm, chain_behind(norm), {}};
    const ValueId made = lowered_.step(found.chain.empty() ? norm : found.chain.back()).outputs[0];
    if (lowered_.value(made).bytes < least_bytes) return std::nullopt;
    for (const int32_t reader : readers(made)) {
      if (reader == lowered_.step_count()) return std::nullopt;
      if (is_gradient(lowered_.step(reader)) && !finds_sign_in_x(reader, norm)) found.readers.push_back(reader);
    }
    if (found.readers.empty() || !is_there(norm, found.readers)) return std::nullopt;
    return found;
  }

 private:
  const std::vector<int32_t> &readers(ValueId value) const { return readers_[static_cast<size_t>(value)]; }

  /// What reads the value beside such gradients of relu, if it is one step.
  std::optional<int32_t> only_reader(ValueId value, int32_t norm) const {
    std::optional<int32_t> only;
    for (const int32_t reader : readers(value)) {
      if (reader < lowered_.step_count() && finds_sign_in_x(reader, norm)) continue;
      if (only) return std::nullopt;
      only = reader;
    }
    return only;
  }

  std::vector<int32_t> chain_behind(int32_t norm) const {
    std::vector<int32_t> chain;
    std::optional<int32_t> next = only_reader(lowered_.step(norm).outputs[0], norm);
    while (next && *next < lowered_.step_count()) {
      const Node &node = lowered_.step(*next);
      if (node.op != "relu" && node.op != "cast") break;
      chain.push_back(*next);
      next = only_reader(node.outputs[0], norm);
    }
    return chain;
  }

  /// Is it a gradient of relu that goes, cast perhaps, to the gradient of the normalisation alone?
  bool finds_sign_in_x(int32_t step, int32_t norm) const {
    const Node &forward = lowered_.step(norm);
    if (lowered_.step(step).op != "relu_gradient" || forward.op != "batch_norm_training") return false;
    for (;;) {
      const std::vector<int32_t> &next = readers(lowered_.step(step).outputs[0]);
      if (next.size() != 1 || next.front() == lowered_.step_count()) return false;
      step = next.front();
      if (lowered_.step(step).op != "cast") break;
    }
    const Node &gradient = lowered_.step(step);
    return gradient.op == "batch_norm_training_gradient" && gradient.inputs[1] == forward.inputs[0] &&
           gradient.inputs[3] == forward.outputs[1];
  }

  /// Is x kept until then for another, and has nothing changed what the normalisation read?
  bool is_there(int32_t norm, const std::vector<int32_t> &late) const {
    const Node &node = lowered_.step(norm);
    const std::vector<int32_t> &of_x = readers(node.inputs[0]);
    if (std::none_of(of_x.begin(), of_x.end(), [&](int32_t step) { return step > late.front(); })) return false;
    for (int32_t between = norm; between < late.front(); ++between) {
      if (changes_operand(lowered_.step(between), node)) return false;
    }
    return true;
  }

  bool changes_operand(const Node &change, const Node &node) const {
    const bool is_update = change.op.ends_with("_update");
    if (!is_update && change.op != "state_write") return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      const NodeId producer = lowered_.graph().value(input).producer;
      if (is_update || producer == kNoNode) return is_update && change.inputs[0] == input;
      const Node &read = lowered_.graph().node(producer);
      return read.op == "state_read" && entry_of(read) == entry_of(change);
    });
  }

  const LoweredGraph &lowered_;
  std::vector<std::vector<int32_t>> readers_;  // by value: steps; the step count for results
};

/// A node like the other, whose outputs are new, with one output or as many as the other.
Node copy_of(Graph &graph, const Node &node, std::vector<ValueId> inputs) {
  Node copy;
  copy.op = node.op;
  copy.revision = node.revision;
  copy.scope_name = node.scope_name + "/again";
  copy.stable_id = node.stable_id;
  copy.inputs = std::move(inputs);
  copy.attributes = node.attributes;
  graph::ValueInfo info = graph.value(node.outputs[0]);
  info.name.clear();
  copy.outputs = {graph.add_value(std::move(info))};
  return copy;
}

/// The normalisation with the statistics that it had.
Node norm_again(Graph &graph, const Node &node) {
  if (node.op == "batch_norm_inference") return copy_of(graph, node, node.inputs);
  Node copy = copy_of(graph, node, {node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[1], node.outputs[2]});
  copy.op = "batch_norm_inference";
  copy.attributes.erase("statistics");
  return copy;
}

/// Adds the nodes to the table and gives them in order; what reads them late does so from then on.
std::vector<NodeId> add_again(Graph &graph, const std::vector<NodeId> &steps, const Recomputed &found) {
  const auto node_at = [&](int32_t step) -> const Node & { return graph.node(steps[static_cast<size_t>(step)]); };
  const ValueId before = node_at(found.chain.empty() ? found.norm : found.chain.back()).outputs[0];
  Node copy = norm_again(graph, Node(node_at(found.norm)));
  ValueId made = copy.outputs[0];
  std::vector<NodeId> added = {graph.add_node(std::move(copy))};
  for (const int32_t step : found.chain) {
    copy = copy_of(graph, Node(node_at(step)), {made});
    made = copy.outputs[0];
    added.push_back(graph.add_node(std::move(copy)));
  }
  for (const int32_t reader : found.readers) {
    std::vector<ValueId> &inputs = graph.mutable_node(steps[static_cast<size_t>(reader)]).inputs;
    std::replace(inputs.begin(), inputs.end(), before, made);
  }
  return added;
}

}  // namespace

base::Status recompute_norms(LoweredGraph &lowered, int64_t least_bytes) {
  std::vector<Recomputed> all;
  const Finder finder(lowered);
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    if (!is_norm(lowered.step(step))) continue;
    std::optional<Recomputed> found = finder.find(step, least_bytes);
    if (found) all.push_back(std::move(*found));
  }
  if (all.empty()) return {};
  Graph graph = lowered.graph().clone();
  std::vector<std::vector<NodeId>> before(lowered.steps().size());
  for (const Recomputed &found : all) {
    std::vector<NodeId> &place = before[static_cast<size_t>(found.readers.front())];
    const std::vector<NodeId> added = add_again(graph, lowered.steps(), found);
    place.insert(place.end(), added.begin(), added.end());
  }
  std::vector<NodeId> order;
  for (size_t step = 0; step < before.size(); ++step) {
    order.insert(order.end(), before[step].begin(), before[step].end());
    order.push_back(lowered.steps()[step]);
  }
  graph.mutable_body().nodes = std::move(order);
  return lowered.replace_graph(graph::rewrite::compact(graph));
}

}  // namespace tutti::impl::backend::gpu
