// SPDX-License-Identifier: Apache-2.0
#include "backend/attention_views.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace tutti::impl::backend {

using graph::Node;
using graph::ValueId;

namespace {

struct Use {
  const Node *node;
  size_t input;
};

bool is_attention(std::string_view op) {
  return op == "attention" || op == "attention_gradient" || op == "dropout_attention" ||
         op == "dropout_attention_gradient";
}

/// Is input `index` of an attention, or of its gradient, q, k or v?
bool is_factor(const Use &use) {
  if (!is_attention(use.node->op)) return false;
  const size_t first = use.node->op.ends_with("_gradient") ? 1 : 0;
  return use.input >= first && use.input < first + 3;
}

/// Nodes whose results lie in memory that is not theirs alone.
bool lends_memory(std::string_view op) {
  static constexpr std::string_view kOps[] = {"input",   "constant",      "state_read", "identity",
                                              "reshape", "stop_gradient", "all_reduce"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

class Finder {
 public:
  Finder(const LoweredGraph &lowered, const std::function<bool(const Node &)> &reads_views)
      : lowered_(lowered), reads_views_(reads_views), uses_(lowered.values().size()) {
    // Of nodes inside regions, and of results, it is known only that they use a value.
    std::vector<bool> is_step(lowered.graph().nodes().size());
    for (const graph::NodeId id : lowered.steps())
      is_step[static_cast<size_t>(id)] = true;
    for (size_t id = 0; id < is_step.size(); ++id) {
      const Node &node = lowered.graph().nodes()[id];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != graph::kNoValue)
          uses_[static_cast<size_t>(node.inputs[i])].push_back({is_step[id] ? &node : nullptr, i});
      }
      for (const graph::Region &region : node.regions) {
        for (const ValueId result : region.results)
          uses_[static_cast<size_t>(result)].push_back({nullptr, 0});
      }
    }
    for (const LoweredPort &port : lowered.outputs())
      uses_[static_cast<size_t>(port.value)].push_back({nullptr, 0});
  }

  /// Of a slice along the last of three axes that attention alone reads.
  std::optional<HeadView> view_of(const Node &slice) const {
    const LoweredValue &all = lowered_.value(slice.inputs[0]), &part = lowered_.value(slice.outputs[0]);
    const graph::NodeId producer = lowered_.graph().value(slice.inputs[0]).producer;
    if (all.dims.size() != 3 || part.elements == 0 || producer == graph::kNoNode ||
        lends_memory(lowered_.graph().node(producer).op))
      return std::nullopt;
    const auto begin = lowered_.evaluate(std::get<graph::Dims>(slice.attributes.at("begin")));
    if (!begin.ok() || part.dims[0] != all.dims[0] || part.dims[1] != all.dims[1] || !has_unit_strides(slice))
      return std::nullopt;
    if (uses(slice.outputs[0]).empty()) return std::nullopt;
    for (const Use &use : uses(slice.outputs[0])) {
      if (use.node == nullptr || use.node->op != "reshape" || !are_heads(part, use.node->outputs[0]))
        return std::nullopt;
    }
    return HeadView{slice.inputs[0], (*begin)[2], all.dims[2]};
  }

  const std::vector<Use> &uses(ValueId value) const { return uses_[static_cast<size_t>(value)]; }

 private:
  static bool has_unit_strides(const Node &slice) {
    const auto found = slice.attributes.find("strides");
    if (found == slice.attributes.end()) return true;
    const auto &strides = std::get<std::vector<int64_t>>(found->second);
    return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
  }

  /// Is `value` the channels of a slice as heads, for attention alone?
  bool are_heads(const LoweredValue &part, ValueId value) const {
    const std::vector<int64_t> &dims = lowered_.value(value).dims;
    if (dims.size() != 4 || dims[0] != part.dims[0] || dims[1] != part.dims[1] || dims[2] * dims[3] != part.dims[2])
      return false;
    const std::vector<Use> &uses_of_heads = uses(value);
    return std::all_of(uses_of_heads.begin(), uses_of_heads.end(), [&](const Use &use) {
      return use.node != nullptr && is_factor(use) && reads_views_(*use.node);
    });
  }

  const LoweredGraph &lowered_;
  const std::function<bool(const Node &)> &reads_views_;
  std::vector<std::vector<Use>> uses_;
};

bool has_attention(const LoweredGraph &lowered) {
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    if (is_attention(lowered.step(step).op)) return true;
  }
  return false;
}

}  // namespace

AttentionViews AttentionViews::find(const LoweredGraph &lowered, int64_t alignment_bytes,
                                    const std::function<bool(const Node &)> &reads_views) {
  AttentionViews found;
  if (!has_attention(lowered)) return found;
  const Finder finder(lowered, reads_views);
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    const Node &node = lowered.step(step);
    if (node.op != "slice") continue;
    const std::optional<HeadView> view = finder.view_of(node);
    const auto bytes = static_cast<int64_t>(tensor::size_bytes(lowered.value(node.outputs[0]).dtype));
    if (!view || view->offset * bytes % alignment_bytes != 0 || view->pitch * bytes % alignment_bytes != 0) continue;
    found.views_[node.outputs[0]] = *view;
    for (const Use &use : finder.uses(node.outputs[0]))
      found.views_[use.node->outputs[0]] = *view;
  }
  return found;
}

}  // namespace tutti::impl::backend
