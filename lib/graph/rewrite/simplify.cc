// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/rewrite/rewrites.h"
#include "graph/rewrite/substitution.h"

namespace tutti::impl::graph::rewrite {
namespace {

class Simplifier {
 public:
  explicit Simplifier(Graph &graph) : graph_(graph) {}

  void run() {
    for_each_region(graph_, [&](Region &region) {
      for (const NodeId id : region.nodes)
        visit(graph_.mutable_node(id));
    });
    substitution_.apply(graph_);
  }

 private:
  // What the node gives, when that is a value there is already; inputs are resolved.
  ValueId equal_value(const Node &node) const {
    if (node.op == "identity" || node.op == "stop_gradient") return node.inputs[0];
    const bool keeps =
        node.op == "reshape" || node.op == "broadcast_to" || node.op == "cast" || is_trivial_transpose(node);
    if (keeps && same_type(node.inputs[0], node.outputs[0])) return node.inputs[0];
    if ((node.op == "mul" || node.op == "div") && is_one(node.inputs[1]) && same_type(node.inputs[0], node.outputs[0]))
      return node.inputs[0];
    if (node.op == "mul" && is_one(node.inputs[0]) && same_type(node.inputs[1], node.outputs[0])) return node.inputs[1];
    if (node.op == "neg") {
      if (const Node *inner = producer(node.inputs[0], "neg")) return inner->inputs[0];
    }
    return kNoValue;
  }

  void visit(Node &node) {
    for (ValueId &input : node.inputs)
      input = substitution_.resolve(input);
    // A chain of reshapes is its last one.
    if (node.op == "reshape") {
      while (const Node *inner = producer(node.inputs[0], "reshape"))
        node.inputs[0] = inner->inputs[0];
    }
    if (node.op == "transpose") join_transposes(node);
    const ValueId equal = equal_value(node);
    if (equal != kNoValue) substitution_.replace(node.outputs[0], equal);
  }

  void join_transposes(Node &node) {
    const Node *inner = producer(node.inputs[0], "transpose");
    if (inner == nullptr) return;
    const std::vector<int64_t> &before = permutation_of(*inner);
    std::vector<int64_t> joined;
    for (const int64_t axis : permutation_of(node))
      joined.push_back(before[static_cast<size_t>(axis)]);
    node.attributes["permutation"] = joined;
    node.inputs[0] = inner->inputs[0];
  }

  // Shape inference has left every axis there, none negative.
  static const std::vector<int64_t> &permutation_of(const Node &node) {
    return std::get<std::vector<int64_t>>(node.attributes.at("permutation"));
  }

  static bool is_trivial_transpose(const Node &node) {
    return node.op == "transpose" && std::is_sorted(permutation_of(node).begin(), permutation_of(node).end());
  }

  bool same_type(ValueId a, ValueId b) const {
    return graph_.value(a).dtype == graph_.value(b).dtype && graph_.value(a).dims == graph_.value(b).dims;
  }

  const Node *producer(ValueId value, std::string_view op) const {
    const NodeId id = graph_.value(value).producer;
    return id != kNoNode && graph_.node(id).op == op ? &graph_.node(id) : nullptr;
  }

  // A scalar constant 1 of a floating point dtype.
  bool is_one(ValueId value) const {
    const Node *node = producer(value, "constant");
    if (node == nullptr) return false;
    const auto &constant = std::get<tensor::Tensor>(node->attributes.at("value"));
    if (constant.elements() != 1 || !tensor::is_floating(constant.dtype())) return false;
    bool one = false;
    tensor::visit_dtype(constant.dtype(),
                        [&]<typename T>(T) { one = static_cast<float>(*constant.data_as<T>()) == 1.0f; });
    if (constant.dtype() == tensor::DType::f64) one = *constant.data_as<double>() == 1.0;
    return one;
  }

  Graph &graph_;
  Substitution substitution_;
};

}  // namespace

Graph simplify(Graph graph) {
  Simplifier(graph).run();
  return eliminate_dead_code(std::move(graph));
}

}  // namespace tutti::impl::graph::rewrite
