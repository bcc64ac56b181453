// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "graph/builder.h"
#include "graph/clone.h"
#include "graph/rewrite/known_from_state.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::graph::rewrite {
namespace {

using base::Result;
using base::Status;
using tensor::DType;

/// A linear layer in front of a normalisation.
struct LinearLayer {
  const Node *product = nullptr;  ///< conv2d or matmul
  ValueId bias = kNoValue;
};

class BatchNormFolder {
 public:
  explicit BatchNormFolder(const Graph &graph)
      : graph_(graph), cloner_(graph, builder_), known_(known_from_state(graph)), uses_(graph.values().size(), 0) {}

  Result<Graph> run() {
    count_uses();
    for (const NodeId id : graph_.body().nodes)
      find_layer(graph_.node(id));
    for (const NodeId id : graph_.body().nodes) {
      const Node &node = graph_.node(id);
      const auto layer = layers_.find(&node);
      if (layer != layers_.end()) {
        TUTTI_TRY(fold(node, layer->second));
      } else if (absorbed_.count(&node) == 0) {
        TUTTI_TRY(cloner_.clone_node(node));
      }
    }
    for (const auto &[name, value] : graph_.results())
      builder_.set_result(name, cloner_.mapped(value));
    return builder_.finish_graph();
  }

 private:
  void count_uses() {
    for (const NodeId id : graph_.body().nodes) {
      for (const ValueId input : graph_.node(id).inputs) {
        if (input != kNoValue) ++uses_[static_cast<size_t>(input)];
      }
    }
    for (const auto &[name, value] : graph_.results())
      ++uses_[static_cast<size_t>(value)];
  }

  bool is_known(ValueId value) const { return value == kNoValue || known_[static_cast<size_t>(value)] != 0; }
  size_t rank(ValueId value) const { return graph_.value(value).dims.size(); }

  /// The node that makes a value which nothing else uses; null else.
  const Node *only_producer(ValueId value) const {
    const NodeId id = graph_.value(value).producer;
    return id != kNoNode && uses_[static_cast<size_t>(value)] == 1 ? &graph_.node(id) : nullptr;
  }

  static bool flag(const Node &node, const char *name) {
    const auto found = node.attributes.find(name);
    return found != node.attributes.end() && std::get<bool>(found->second);
  }

  /// The last axis of the kernel counts the channels of the result.
  bool is_linear(const Node &node) const {
    if (node.op == "conv2d") return is_known(node.inputs[1]) && (node.inputs.size() < 3 || is_known(node.inputs[2]));
    return node.op == "matmul" && is_known(node.inputs[1]) && rank(node.inputs[1]) == 2 && !flag(node, "transpose_b");
  }

  void find_layer(const Node &norm) {
    if (norm.op != "batch_norm_inference") return;
    const DType dtype = graph_.value(norm.inputs[0]).dtype;
    if (dtype != DType::f32 && dtype != DType::f64) return;
    for (size_t i = 1; i < norm.inputs.size(); ++i) {
      if (!is_known(norm.inputs[i]) || graph_.value(norm.inputs[i]).dtype != dtype) return;
    }
    const Node *last = only_producer(norm.inputs[0]);
    LinearLayer layer{last, kNoValue};
    const Node *add = nullptr;
    if (last != nullptr && last->op == "add") {
      add = last;
      const size_t bias = rank(add->inputs[0]) == 1 ? 0 : 1;
      layer.bias = add->inputs[bias];
      layer.product = only_producer(add->inputs[1 - bias]);
      if (!is_known(layer.bias) || graph_.value(layer.bias).dims != graph_.value(norm.inputs[1]).dims) return;
    }
    if (layer.product == nullptr || !is_linear(*layer.product)) return;
    if (layer.product->op == "conv2d" && layer.product->inputs.size() > 2 && layer.product->inputs[2] != kNoValue) {
      if (layer.bias != kNoValue) return;
      layer.bias = layer.product->inputs[2];
    }
    layers_[&norm] = layer;
    absorbed_.insert(layer.product);
    if (add != nullptr) absorbed_.insert(add);
  }

  /// kernel · a and (bias − mean) · a + offset, a = scale / sqrt(variance + epsilon), in f64.
  Status fold(const Node &norm, const LinearLayer &layer) {
    const Node &product = *layer.product;
    const DType dtype = graph_.value(norm.inputs[0]).dtype;
    const auto wide = [&](ValueId value) { return builder_.cast(cloner_.mapped(value), DType::f64); };
    builder_.push_scope(norm.scope_name, true);
    const auto epsilon = norm.attributes.find("epsilon");
    const double minimum = epsilon == norm.attributes.end() ? 0.001 : std::get<double>(epsilon->second);
    const ValueId rstd = builder_.unary("rsqrt", builder_.add_scalar(wide(norm.inputs[4]), minimum));
    const ValueId a = builder_.mul(wide(norm.inputs[1]), rstd);
    ValueId shift = wide(norm.inputs[3]);
    shift = layer.bias == kNoValue ? builder_.neg(shift) : builder_.sub(wide(layer.bias), shift);
    shift = builder_.cast(builder_.add(builder_.mul(shift, a), wide(norm.inputs[2])), dtype);
    const ValueId kernel = builder_.mul(cloner_.mapped(product.inputs[1]), builder_.cast(a, dtype));
    const ValueId x = cloner_.mapped(product.inputs[0]);
    ValueId y = kNoValue;
    if (product.op == "conv2d") {
      y = builder_.op("conv2d", {x, kernel, shift}, product.attributes);
    } else {
      y = builder_.add(builder_.op("matmul", {x, kernel}, product.attributes), shift);
    }
    builder_.pop_scope();
    cloner_.map(norm.outputs[0], y);
    return builder_.status();
  }

  const Graph &graph_;
  GraphBuilder builder_;
  NodeCloner cloner_;
  std::vector<char> known_;
  std::vector<int32_t> uses_;
  std::map<const Node *, LinearLayer> layers_;  // by normalisation
  std::set<const Node *> absorbed_;
};

}  // namespace

Result<Graph> fold_batch_norm(const Graph &graph) { return BatchNormFolder(graph).run(); }

}  // namespace tutti::impl::graph::rewrite
