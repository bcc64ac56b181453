// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/mixed_graph.h"

#include <utility>

#include "backend/gpu/program_maker.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::backend::gpu {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;

namespace {

/// Does the kernel of the node convert the operand by its own dtype?
bool converts(const Node &node, size_t input) {
  if (node.op.ends_with("_update")) return input == 1;  // the gradient
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

}  // namespace

Graph read_halves(Graph graph) {
  bool has_changed = false;
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

base::Result<Graph> mixed_graph(Graph graph) {
  TUTTI_ASSIGN(Graph mixed, graph::rewrite::mix_precision(graph));
  return read_halves(std::move(mixed));
}

}  // namespace tutti::impl::backend::gpu
