// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/mixed_graph.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/gpu/kernel/program_maker.h"
#include "graph/rewrite/rewrites.h"
#include "graph/rewrite/substitution.h"

namespace tutti::impl::backend::gpu {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;

namespace {

bool is_cross_entropy(std::string_view op) {
  return op == "softmax_cross_entropy" || op == "sparse_softmax_cross_entropy";
}

/// Does the kernel of the node convert the operand by its own dtype?
bool converts(const Node &node, size_t input) {
  if (node.op == "row_update") return false;
  if (node.op.ends_with("_update")) return input == 1;  // the gradient
  if (is_cross_entropy(node.op)) return input == 0;     // the logits
  if (node.op == "reshape" || node.op == "identity" || node.op == "stop_gradient") return false;
  return is_elementwise(node.op) || node.op == "reduce_sum" || node.op == "reduce_mean" || node.op == "reduce_max" ||
         node.op == "reduce_min" || node.op == "reduce_prod";
}

/// What a cast to f32 reads, if that has 16 bits.
ValueId widened_from(const Graph &graph, ValueId value) {
  if (value == kNoValue || graph.value(value).dtype != DType::f32) return kNoValue;
  const NodeId producer = graph.value(value).producer;
  if (producer == kNoNode || graph.node(producer).op != "cast") return kNoValue;
  const ValueId from = graph.node(producer).inputs[0];
  const DType dtype = graph.value(from).dtype;
  return dtype == DType::f16 || dtype == DType::bf16 ? from : kNoValue;
}

/// What reads a value: casts, and other shapes of it, which casts read.
struct Casts {
  std::vector<NodeId> casts;
  std::vector<ValueId> shapes;  // the value itself, too
};

/// Adds what reads the value; false where it is something else.
bool find_casts(const Graph &graph, ValueId value, DType dtype, Casts &found) {
  found.shapes.push_back(value);
  for (const auto &[name, result] : graph.results()) {
    if (result == value) return false;
  }
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node &node = graph.nodes()[id];
    if (std::find(node.inputs.begin(), node.inputs.end(), value) == node.inputs.end()) continue;
    if (node.op == "reshape") {
      if (!find_casts(graph, node.outputs[0], dtype, found)) return false;
    } else if (node.op == "cast" && graph.value(node.outputs[0]).dtype == dtype) {
      found.casts.push_back(static_cast<NodeId>(id));
    } else {
      return false;
    }
  }
  return true;
}

/// Gradients of cross entropies that go to products read and give what these do. Whether there were any.
bool keep_halves(Graph &graph) {
  graph::rewrite::Substitution substitution;
  for (const NodeId id : graph.body().nodes) {
    const Node &node = graph.node(id);
    if (!node.op.ends_with("_gradient") || !is_cross_entropy(node.op.substr(0, node.op.rfind('_')))) continue;
    const ValueId from = widened_from(graph, node.inputs[1]);
    if (from == kNoValue) continue;
    const DType dtype = graph.value(from).dtype;
    Casts found;
    if (!find_casts(graph, node.outputs[0], dtype, found)) continue;
    graph.mutable_node(id).inputs[1] = from;
    for (const ValueId shape : found.shapes)
      graph.mutable_value(shape).dtype = dtype;
    for (const NodeId cast : found.casts)
      substitution.replace(graph.node(cast).outputs[0], graph.node(cast).inputs[0]);
  }
  substitution.apply(graph);
  return !substitution.empty();
}

}  // namespace

Graph read_halves(Graph graph) {
  bool has_changed = keep_halves(graph);
  for (const NodeId id : graph.body().nodes) {
    Node &node = graph.mutable_node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId from = converts(node, i) ? widened_from(graph, node.inputs[i]) : kNoValue;
      if (from == kNoValue) continue;
      node.inputs[i] = from;
      has_changed = true;
    }
  }
  return has_changed ? graph::rewrite::eliminate_dead_code(std::move(graph)) : graph;
}

base::Result<Graph> mixed_graph(Graph graph, DType half) {
  TUTTI_ASSIGN(Graph mixed, graph::rewrite::mix_precision(graph, half));
  return read_halves(std::move(mixed));
}

}  // namespace tutti::impl::backend::gpu
