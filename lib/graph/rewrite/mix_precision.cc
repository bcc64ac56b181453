// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
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
  kNarrow = 1,  ///< 16 bits: it is going to be a factor
  kEither = 2,  ///< what costs less: sums over it are f32, and no loss
  kExact = 4,   ///< f32
  kLoss = 8,    ///< f32, for it is summed up in a loss
};

constexpr float kLargestF16 = 65504;

/// Does f16 hold all that such elements may be, as far as they are finite? f32 says nothing about what it holds.
bool fits_f16(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::i16 || tensor::size_bytes(dtype) == 1;
}

/// Of a constant: is a finite element of it beyond the range of f16?
bool has_wide_element(const Node &node) {
  const auto found = node.attributes.find("value");
  const auto *const value = found == node.attributes.end() ? nullptr : std::get_if<tensor::Tensor>(&found->second);
  if (value == nullptr || value->dtype() != DType::f32) return false;
  const auto *const elements = value->data_as<float>();
  return std::any_of(elements, elements + value->elements(),
                     [](float x) { return std::isfinite(x) && std::fabs(x) > kLargestF16; });
}

/// Decides which values lie in memory in 16 bits.
class StoragePlan {
 public:
  StoragePlan(const Graph &graph, DType half)
      : graph_(graph), has_small_range_(half == DType::f16), uses_(graph.values().size()) {
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

  /// Does the node read and give 16 bits?
  bool runs_in_half(const Node &node) const {
    const PrecisionRule rule = precision_rule(node.op);
    if (rule.role == Role::product) return is_f32(node.outputs[0]);
    if (rule.role != Role::carry || !reads_half(node, rule)) return false;
    return rule.outputs == 0 || !is_exact(node.outputs[0]);
  }

  /// Does nobody take the value in 16 bits?
  bool is_exact(ValueId value) const { return (use(value).demand & (kNarrow | kEither)) == 0; }

  /// Does a node that reads f32 lead to nothing but what must not be rounded?
  bool asks_exact(const Node &node, size_t input) const {
    return (demand_on(node, precision_rule(node.op), input) & (kNarrow | kEither)) == 0;
  }

  /// Of a result of an elementwise node: does it lie in memory in 16 bits?
  bool is_stored_narrow(ValueId value) const {
    return is_f32(value) && use(value).is_half_made && !is_exact(value) && !is_passed_on(value);
  }

 private:
  struct Use {
    uint32_t demand = 0;
    bool is_half_made = false;      ///< could it have 16 bits for what it is made of?
    bool is_wide = false;           ///< may it be beyond the range of 16 bits?
    std::vector<NodeId> readers{};  ///< kNoNode for results and nodes that give nothing
  };

  Use &use(ValueId value) { return uses_[static_cast<size_t>(value)]; }
  const Use &use(ValueId value) const { return uses_[static_cast<size_t>(value)]; }
  static bool has_bit(uint32_t bits, size_t index) { return index < 32 && ((bits >> index) & 1) != 0; }

  /// Of a carrying node: are all its operands in 16 bits if they may be? One is enough where operands are joined.
  bool reads_half(const Node &node, const PrecisionRule &rule) const {
    size_t all = 0, narrow = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!has_bit(rule.inputs, i) || !is_f32(node.inputs[i])) continue;
      if (use(node.inputs[i]).is_wide) return false;
      ++all;
      narrow += use(node.inputs[i]).is_half_made ? 1 : 0;
    }
    return narrow != 0 && (narrow == all || node.op == "concat");
  }

  /// Are results possibly beyond the range of f16?
  bool gives_wide(const Node &node, const PrecisionRule &rule) const {
    if (node.op == "constant") return has_wide_element(node);
    if (rule.role == Role::product || rule.range == PrecisionRange::bounded) return false;
    if (node.op == "cast" && !fits_f16(graph_.value(node.inputs[0]).dtype)) return true;
    if (rule.range == PrecisionRange::grown && grows(node)) return true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool counts = node.inputs[i] != kNoValue && (rule.role != Role::carry || has_bit(rule.inputs, i));
      if (counts && use(node.inputs[i]).is_wide) return true;
    }
    return false;
  }

  bool grows(const Node &node) const {
    if (node.op == "mul") return node.inputs[0] == node.inputs[1];
    return !((node.op == "div" || node.op == "floor_divide") && is_scalar(node.inputs[1]));
  }

  /// Which results could have 16 bits for what they are made of.
  void go_forward(const Node &node) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) use(input).readers.push_back(node.outputs.empty() ? kNoNode : producer(node.outputs[0]));
    }
    const PrecisionRule rule = precision_rule(node.op);
    const bool is_wide = has_small_range_ && gives_wide(node, rule);
    for (const ValueId output : node.outputs)
      use(output).is_wide = is_wide;
    if (rule.role == Role::elementwise) {
      use(node.outputs[0]).is_half_made =
          is_f32(node.outputs[0]) && !is_scalar(node.outputs[0]) && !is_wide &&
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId x) { return use(x).is_half_made; });
    }
    const bool is_narrow = (rule.role == Role::product) || (rule.role == Role::carry && reads_half(node, rule));
    for (size_t i = 0; i < node.outputs.size() && is_narrow; ++i)
      use(node.outputs[i]).is_half_made = has_bit(rule.outputs, i) && is_f32(node.outputs[i]);
  }

  /// What the readers of a result ask, handed on to what it is made of: one that takes 16 bits decides.
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
        if (!has_bit(rule.inputs, input) || !reads_half(node, rule)) return kExact;
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
  const bool has_small_range_;  // of what is stored: f16
  std::vector<Use> uses_;       // by value
};

class PrecisionMixer {
 public:
  PrecisionMixer(const Graph &graph, DType half)
      : graph_(graph), half_(half), plan_(graph, half), cloner_(graph, builder_) {
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

  ValueId half_of(ValueId value) {
    ValueId &narrow = narrow_[static_cast<size_t>(value)];
    if (narrow == kNoValue) narrow = cast(exact_[static_cast<size_t>(value)], half_);
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
    if (node.op == "cast" && is_f32(node.inputs[0]) && graph_.value(node.outputs[0]).dtype == half_) {
      cloner_.map(node.outputs[0], half_of(node.inputs[0]));
      return builder_.status();
    }
    const bool is_narrow = plan_.runs_in_half(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!is_f32(input)) continue;
      const bool is_half = is_narrow && ((rule.inputs >> i) & 1) != 0;
      cloner_.map(input, is_half ? half_of(input) : f32_of(input, plan_.asks_exact(node, i)));
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
    const bool is_half = builder_.dtype(made) == half_;
    (is_half ? narrow_ : exact_)[static_cast<size_t>(output)] = made;
    if (!is_half && plan_.is_stored_narrow(output)) (void)half_of(output);
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
    if (plan_.is_stored_narrow(node.outputs[0])) (void)half_of(node.outputs[0]);
    return builder_.status();
  }

  const Graph &graph_;
  const DType half_;
  const StoragePlan plan_;
  GraphBuilder builder_;
  NodeCloner cloner_;
  std::string scope_;                              // of the node that needs a cast
  std::vector<ValueId> exact_, narrow_, widened_;  // by value: as made in f32, in 16 bits, and in f32 again
};

}  // namespace

Result<Graph> mix_precision(const Graph &graph, DType half) {
  if (half != DType::bf16 && half != DType::f16)
    return base::invalid_argument("mixed precision is in bf16 or f16, got ", tensor::name(half));
  return PrecisionMixer(graph, half).run();
}

}  // namespace tutti::impl::graph::rewrite
