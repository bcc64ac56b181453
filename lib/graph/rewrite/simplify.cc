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
    if (node.op == "add") join_pieces(node);
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

  // dy of a slice_gradient that takes up all of its result but along one axis.
  struct Piece {
    ValueId dy = kNoValue;
    int64_t axis = -1;
    Dim begin = 0, end = 0;
  };

  // The gradients of slices that make up a whole, side by side: their sum puts them there. A zero loses its sign in
  // the sum and keeps it side by side.
  void join_pieces(Node &node) {
    const std::vector<Piece> pieces = pieces_of(node);
    if (pieces.empty()) return;
    const int64_t axis = pieces[0].axis;
    const Dim whole = graph_.value(node.outputs[0]).dims[static_cast<size_t>(axis)];
    std::vector<ValueId> joined;
    Dim end = 0;
    while (joined.size() < pieces.size()) {
      const Piece *next = nullptr;
      for (const Piece &piece : pieces) {
        if (piece.axis == axis && piece.begin == end && piece.end != end) next = &piece;
      }
      if (next == nullptr) return;
      joined.push_back(next->dy);
      end = next->end;
    }
    if (end != whole) return;
    node.op = "concat";
    node.revision = 1;
    node.attributes = {{"axis", axis}};
    node.inputs = std::move(joined);
  }

  // What a sum, perhaps of sums, is made of; none unless it is pieces of its own shape alone, and not many.
  std::vector<Piece> pieces_of(const Node &sum) const {
    constexpr size_t kMostPieces = 16;
    std::vector<Piece> pieces;
    std::vector<ValueId> parts = sum.inputs;
    while (!parts.empty()) {
      const ValueId part = substitution_.resolve(parts.back());
      parts.pop_back();
      if (!same_type(part, sum.outputs[0]) || pieces.size() + parts.size() >= kMostPieces) return {};
      if (const Node *inner = producer(part, "add")) {
        parts.insert(parts.end(), inner->inputs.begin(), inner->inputs.end());
      } else {
        const Node *gradient = producer(part, "slice_gradient");
        if (gradient == nullptr) return {};
        pieces.push_back(piece_of(*gradient));
        if (pieces.back().axis < 0) return {};
      }
    }
    return pieces;
  }

  // Its axis is -1 where there is none.
  Piece piece_of(const Node &gradient) const {
    const auto &begin = std::get<Dims>(gradient.attributes.at("begin"));
    const auto strides = gradient.attributes.find("strides");
    Piece piece;
    piece.dy = gradient.inputs[0];
    if (strides != gradient.attributes.end()) {
      for (const int64_t stride : std::get<std::vector<int64_t>>(strides->second)) {
        if (stride != 1) return piece;
      }
    }
    const Dims &part = graph_.value(gradient.inputs[0]).dims, &all = graph_.value(gradient.outputs[0]).dims;
    for (size_t i = 0; i < all.size(); ++i) {
      if (begin[i] == 0 && part[i] == all[i]) continue;
      if (piece.axis >= 0 || !begin[i].is_constant()) return Piece{};
      piece.axis = static_cast<int64_t>(i);
      piece.begin = begin[i];
      piece.end = begin[i] + part[i];
    }
    return piece;
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
