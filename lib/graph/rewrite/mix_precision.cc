// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/clone.h"
#include "graph/rewrite/precision_rules.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::graph::rewrite {
namespace {

using base::Result;
using base::Status;
using tensor::DType;
using Role = PrecisionRole;

/// What the readers of a value ask of it, any number of these.
enum Demand : uint32_t {
  kNarrow = 1,  ///< bf16: it is going to be a factor
  kEither = 2,  ///< what costs less: sums over it are f32, and no loss
  kExact = 4,   ///< f32
  kLoss = 8,    ///< f32, for it is summed up in a loss
};

/// Decides which values lie in memory as bf16.
class StoragePlan {
 public:
  explicit StoragePlan(const Graph &graph) : graph_(graph), uses_(graph.values().size()) {
    for (const NodeId id : graph.body().nodes)
      go_forward(graph.node(id));
    for (const auto &[name, value] : graph.results()) {
      use(value).demand |= kExact;
      use(value).readers.push_back(kNoNode);
    }
    const std::vector<NodeId> &nodes = graph.body().nodes;
    for (size_t i = nodes.size(); i-- > 0;)
      go_backward(graph.node(nodes[i]));
  }

  bool is_f32(ValueId value) const { return value != kNoValue && graph_.value(value).dtype == DType::f32; }
  bool is_scalar(ValueId value) const {
    const Dims &dims = graph_.value(value).dims;
    return std::all_of(dims.begin(), dims.end(), [](const Dim &dim) { return dim == 1; });
  }

  /// Does the node read and give bf16?
  bool runs_narrow(const Node &node) const {
    const PrecisionRule rule = precision_rule(node.op);
    if (rule.role == Role::product) return is_f32(node.outputs[0]);
    if (rule.role != Role::carry || !reads_bf16(node, rule)) return false;
    return rule.outputs == 0 || !is_exact(node.outputs[0]);
  }

  /// Does nobody take the value in bf16?
  bool is_exact(ValueId value) const { return (use(value).demand & (kNarrow | kEither)) == 0; }

  /// Does a node that reads f32 lead to nothing but what must not be rounded?
  bool asks_exact(const Node &node, size_t input) const {
    return (demand_on(node, precision_rule(node.op), input) & (kNarrow | kEither)) == 0;
  }

  /// Of a result of an elementwise node: does it lie in memory as bf16?
  bool is_stored_narrow(ValueId value) const {
    return is_f32(value) && use(value).is_bf16_made && !is_exact(value) && !is_passed_on(value);
  }

 private:
  struct Use {
    uint32_t demand = 0;
    bool is_bf16_made = false;      ///< could it be bf16 for what it is made of?
    std::vector<NodeId> readers{};  ///< kNoNode for results and nodes that give nothing
  };

  Use &use(ValueId value) { return uses_[static_cast<size_t>(value)]; }
  const Use &use(ValueId value) const { return uses_[static_cast<size_t>(value)]; }
  static bool has_bit(uint32_t bits, size_t index) { return index < 32 && ((bits >> index) & 1) != 0; }

  /// Of a carrying node: are all its operands bf16 if they may be? One is enough where operands are joined.
  bool reads_bf16(const Node &node, const PrecisionRule &rule) const {
    size_t all = 0, narrow = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!has_bit(rule.inputs, i) || !is_f32(node.inputs[i])) continue;
      ++all;
      narrow += use(node.inputs[i]).is_bf16_made ? 1 : 0;
    }
    return narrow != 0 && (narrow == all || node.op == "concat");
  }

  /// Which results could be bf16 for what they are made of.
  void go_forward(const Node &node) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) use(input).readers.push_back(node.outputs.empty() ? kNoNode : producer(node.outputs[0]));
    }
    const PrecisionRule rule = precision_rule(node.op);
    if (rule.role == Role::elementwise) {
      use(node.outputs[0]).is_bf16_made =
          is_f32(node.outputs[0]) && !is_scalar(node.outputs[0]) &&
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId x) { return use(x).is_bf16_made; });
    }
    const bool is_narrow = (rule.role == Role::product) || (rule.role == Role::carry && reads_bf16(node, rule));
    for (size_t i = 0; i < node.outputs.size() && is_narrow; ++i)
      use(node.outputs[i]).is_bf16_made = has_bit(rule.outputs, i) && is_f32(node.outputs[i]);
  }

  /// What the readers of a result ask, handed on to what it is made of: one that takes bf16 decides.
  uint32_t passed_demand(ValueId output) const {
    const uint32_t demand = use(output).demand;
    return (demand & (kNarrow | kEither)) != 0 ? demand & (kNarrow | kEither) : demand;
  }

  uint32_t demand_on(const Node &node, const PrecisionRule &rule, size_t input) const {
    const ValueId output = node.outputs.empty() ? kNoValue : node.outputs[0];
    switch (rule.role) {
      case Role::product:
        return has_bit(rule.inputs, input) ? kNarrow : kExact;
      case Role::carry:
        if (!has_bit(rule.inputs, input) || !reads_bf16(node, rule)) return kExact;
        return rule.outputs == 0 ? kEither : passed_demand(output);
      case Role::elementwise:
        return is_f32(output) ? passed_demand(output) : kEither;
      case Role::reduce:
        if (is_scalar(output)) return kLoss;
        return use(output).demand == 0 || (passed_demand(output) & kLoss) == 0 ? kEither : kLoss;
      case Role::loss:
        return kLoss;
      case Role::keep:
        break;
    }
    return kExact;
  }

  void go_backward(const Node &node) {
    const PrecisionRule rule = precision_rule(node.op);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_f32(node.inputs[i])) use(node.inputs[i]).demand |= demand_on(node, rule, i);
    }
  }

  /// Is the only reader an elementwise node that computes it in passing?
  bool is_passed_on(ValueId value) const {
    const std::vector<NodeId> &readers = use(value).readers;
    if (readers.empty() || readers.front() == kNoNode) return false;
    if (std::any_of(readers.begin(), readers.end(), [&](NodeId one) { return one != readers.front(); })) return false;
    const Node &reader = graph_.node(readers.front());
    return precision_rule(reader.op).role == Role::elementwise &&
           graph_.value(reader.outputs[0]).dims == graph_.value(value).dims;
  }

  NodeId producer(ValueId value) const { return graph_.value(value).producer; }

  const Graph &graph_;
  std::vector<Use> uses_;  // by value
};

class PrecisionMixer {
 public:
  explicit PrecisionMixer(const Graph &graph) : graph_(graph), plan_(graph), cloner_(graph, builder_) {
    for (std::vector<ValueId> *list : {&exact_, &narrow_, &widened_})
      list->assign(graph.values().size(), kNoValue);
  }

  Result<Graph> run() {
    for (const NodeId id : graph_.body().nodes)
      TUTTI_TRY(add(graph_.node(id)));
    for (const auto &[name, value] : graph_.results()) {
      scope_ = name;
      builder_.set_result(name, is_f32(value) ? f32_of(value, true) : cloner_.mapped(value));
    }
    return builder_.finish_graph();
  }

 private:
  bool is_f32(ValueId value) const { return plan_.is_f32(value); }

  ValueId cast(ValueId value, DType dtype) {
    builder_.push_root_scope(scope_);
    const ValueId made = builder_.cast(value, dtype);
    builder_.pop_scope();
    return made;
  }

  ValueId bf16_of(ValueId value) {
    ValueId &narrow = narrow_[static_cast<size_t>(value)];
    if (narrow == kNoValue) narrow = cast(exact_[static_cast<size_t>(value)], DType::bf16);
    return narrow;
  }

  /// `is_exact`: not what was rounded, if there is anything else.
  ValueId f32_of(ValueId value, bool is_exact) {
    const auto at = static_cast<size_t>(value);
    if (exact_[at] != kNoValue && (is_exact || !plan_.is_stored_narrow(value))) return exact_[at];
    if (widened_[at] == kNoValue) widened_[at] = cast(narrow_[at], DType::f32);
    return widened_[at];
  }

  Status add(const Node &node) {
    const PrecisionRule rule = precision_rule(node.op);
    scope_ = node.scope_name;
    if (node.op == "cast" && is_f32(node.inputs[0]) && graph_.value(node.outputs[0]).dtype == DType::bf16) {
      cloner_.map(node.outputs[0], bf16_of(node.inputs[0]));
      return builder_.status();
    }
    const bool is_narrow = plan_.runs_narrow(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!is_f32(input)) continue;
      const bool is_bf16 = is_narrow && ((rule.inputs >> i) & 1) != 0;
      cloner_.map(input, is_bf16 ? bf16_of(input) : f32_of(input, plan_.asks_exact(node, i)));
    }
    if (node.op == "conv2d" && is_narrow && node.inputs.size() > 2 && node.inputs[2] != kNoValue)
      return add_biased(node);
    TUTTI_TRY(cloner_.clone_node(node).status());
    for (const ValueId output : node.outputs)
      keep(output);
    return builder_.status();
  }

  /// What a result is, and its rounded form if that is what is stored.
  void keep(ValueId output) {
    if (!is_f32(output)) return;
    const ValueId made = cloner_.mapped(output);
    const bool is_bf16 = builder_.dtype(made) == DType::bf16;
    (is_bf16 ? narrow_ : exact_)[static_cast<size_t>(output)] = made;
    if (!is_bf16 && plan_.is_stored_narrow(output)) (void)bf16_of(output);
  }

  /// A convolution and the addition of its bias, which is not rounded.
  Status add_biased(const Node &node) {
    const ValueId bias = f32_of(node.inputs[2], true);
    Node plain = node;
    plain.inputs.pop_back();
    TUTTI_TRY(cloner_.clone_node(plain).status());
    const ValueId product = cast(cloner_.mapped(node.outputs[0]), DType::f32);
    builder_.push_root_scope(scope_);
    const ValueId sum = builder_.add(product, bias);
    builder_.pop_scope();
    const auto at = static_cast<size_t>(node.outputs[0]);
    exact_[at] = sum;
    if (plan_.is_stored_narrow(node.outputs[0])) (void)bf16_of(node.outputs[0]);
    return builder_.status();
  }

  const Graph &graph_;
  const StoragePlan plan_;
  GraphBuilder builder_;
  NodeCloner cloner_;
  std::string scope_;                              // of the node that needs a cast
  std::vector<ValueId> exact_, narrow_, widened_;  // by value: as made in f32, in bf16, and in f32 again
};

}  // namespace

Result<Graph> mix_precision(const Graph &graph) { return PrecisionMixer(graph).run(); }

}  // namespace tutti::impl::graph::rewrite
