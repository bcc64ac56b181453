// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/rewrite/rewrites.h"
#include "graph/rewrite/substitution.h"

namespace tutti::impl::graph::rewrite {
namespace {

const tensor::Tensor *constant_of(const Graph &graph, ValueId value) {
  if (value == kNoValue) return nullptr;
  const NodeId producer = graph.value(value).producer;
  if (producer == kNoNode || graph.node(producer).op != "constant") return nullptr;
  return std::get_if<tensor::Tensor>(&graph.node(producer).attributes.at("value"));
}

// One result, pure, constant shape within the limit, all inputs constant.
bool can_fold(const Graph &graph, const Node &node, int64_t limit_bytes) {
  const OpDefinition *definition = find_op(node.op, node.revision);
  if (definition == nullptr || definition->effect != Effect::pure || node.op == "constant" || node.op == "run_scalar")
    return false;
  if (node.outputs.size() != 1 || !node.regions.empty()) return false;
  const ValueInfo &info = graph.value(node.outputs[0]);
  const Dim count = element_count(info.dims);
  const int64_t size = static_cast<int64_t>(tensor::size_bytes(info.dtype));
  if (!count.is_constant() || info.dtype == tensor::DType::bytes || count.constant() > limit_bytes / size) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return constant_of(graph, input) != nullptr; });
}

}  // namespace

Graph fold_constants(Graph graph, Evaluator &evaluator, int64_t limit_bytes) {
  for_each_region(graph, [&](Region &region) {
    for (const NodeId id : region.nodes) {
      const Node &node = graph.node(id);
      if (!can_fold(graph, node, limit_bytes)) continue;
      std::vector<tensor::Tensor> inputs;
      for (const ValueId input : node.inputs)
        inputs.push_back(*constant_of(graph, input));
      base::Result<std::vector<tensor::Tensor>> made = evaluator.evaluate(graph, node, inputs);
      if (!made.ok() || made->size() != 1) continue;
      const ValueInfo &info = graph.value(node.outputs[0]);
      const auto extents = (*made)[0].shape().extents();
      if ((*made)[0].dtype() != info.dtype || Dims(extents.begin(), extents.end()) != info.dims) continue;
      // The node itself becomes the constant.
      Node &folded = graph.mutable_node(id);
      folded.op = "constant";
      folded.revision = 1;
      folded.inputs.clear();
      folded.attributes = {{"value", std::move((*made)[0])}};
    }
  });
  return eliminate_dead_code(std::move(graph));
}

Graph optimize(Graph graph, const OptimizeOptions &options) {
  graph = simplify(std::move(graph));
  if (options.evaluator != nullptr) graph = fold_constants(std::move(graph), *options.evaluator);
  graph = eliminate_dead_code(merge_equal_nodes(std::move(graph)));
  return options.inline_regions ? simplify(inline_regions(std::move(graph))) : graph;
}

}  // namespace tutti::impl::graph::rewrite
