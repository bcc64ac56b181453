// SPDX-License-Identifier: Apache-2.0
#include "graph/autodiff.h"

#include <algorithm>

#include "base/text.h"
#include "graph/op_registry.h"

namespace tutti::impl::graph {

// ---- what a gradient rule sees ----

GradientContext::GradientContext(GraphBuilder &builder, const Node &node, std::vector<ValueId> output_gradients,
                                 std::vector<bool> needed)
    : builder_(builder),
      node_(node),
      output_gradients_(std::move(output_gradients)),
      needed_(std::move(needed)),
      input_gradients_(node.inputs.size(), kNoValue) {}

const ValueInfo &GradientContext::info(ValueId value) const { return builder_.graph().value(value); }

void GradientContext::set(size_t index, ValueId gradient) {
  if (index < needed_.size() && needed_[index]) input_gradients_[index] = gradient;
}

base::Status GradientContext::error(std::string_view text) const {
  return base::invalid_argument("gradient of node '", node_.scope_name, "' (", node_.op, "): ", text);
}

base::Status GradientContext::unimplemented(std::string_view text) const {
  return base::unimplemented("gradient of node '", node_.scope_name, "' (", node_.op, "): ", text);
}

// ---- the reverse sweep ----

namespace {

class ReverseSweep {
 public:
  explicit ReverseSweep(GraphBuilder &builder)
      : builder_(builder), nodes_(builder.region().nodes), values_(builder.graph().values().size()) {}

  base::Status run(std::span<const ValueId> targets, std::span<const ValueId> seeds, std::span<const ValueId> wrt) {
    TUTTI_TRY(check(targets, seeds, wrt));
    mark(wrt);
    TUTTI_TRY(seed(targets, seeds));
    for (auto id = nodes_.rbegin(); id != nodes_.rend(); ++id)
      TUTTI_TRY(visit(*id));
    return {};
  }

  ValueId gradient(ValueId value) const { return gradients_[static_cast<size_t>(value)]; }

 private:
  base::Status check_one(std::string_view what, ValueId value) const {
    if (!builder_.graph().contains(value))
      return base::invalid_argument(what, " of a gradient is value ", value, ", which does not exist");
    const ValueInfo &info = builder_.info(value);
    if (tensor::is_floating(info.dtype)) return {};
    return base::invalid_argument(what, " of a gradient has dtype ", tensor::name(info.dtype),
                                  ", expected floating point");
  }

  base::Status check(std::span<const ValueId> targets, std::span<const ValueId> seeds,
                     std::span<const ValueId> wrt) const {
    if (!seeds.empty() && seeds.size() != targets.size()) {
      return base::invalid_argument("a gradient has ", targets.size(), " targets but ", seeds.size(), " seeds");
    }
    for (const ValueId target : targets)
      TUTTI_TRY(check_one("a target", target));
    for (const ValueId variable : wrt)
      TUTTI_TRY(check_one("a variable", variable));
    for (size_t i = 0; i < seeds.size(); ++i) {
      if (seeds[i] == kNoValue) continue;
      TUTTI_TRY(check_one("a seed", seeds[i]));
      TUTTI_TRY(check_like(seeds[i], targets[i], "a seed of a gradient"));
    }
    return {};
  }

  base::Status check_like(ValueId gradient, ValueId value, std::string_view what) const {
    const ValueInfo &got = builder_.info(gradient), &expected = builder_.info(value);
    if (got.dtype == expected.dtype && got.dims == expected.dims) return {};
    return base::internal_error(what, " is ", tensor::name(got.dtype), " ", to_string(got.dims), ", expected ",
                                tensor::name(expected.dtype), " ", to_string(expected.dims));
  }

  // Which values depend on wrt in a differentiable way.
  void mark(std::span<const ValueId> wrt) {
    depends_.assign(values_, false);
    gradients_.assign(values_, kNoValue);
    for (const ValueId variable : wrt)
      depends_[static_cast<size_t>(variable)] = true;
    for (const NodeId id : nodes_) {
      const Node &node = builder_.graph().node(id);
      const bool reached =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return depends(input); });
      if (!reached || find_op(node.op, node.revision)->differentiability == Differentiability::none) continue;
      for (const ValueId output : node.outputs) {
        if (tensor::is_floating(builder_.info(output).dtype)) depends_[static_cast<size_t>(output)] = true;
      }
    }
  }

  bool depends(ValueId value) const { return value != kNoValue && depends_[static_cast<size_t>(value)]; }

  base::Status seed(std::span<const ValueId> targets, std::span<const ValueId> seeds) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!depends(targets[i])) continue;
      ValueId start = seeds.empty() ? kNoValue : seeds[i];
      if (start == kNoValue) {
        const Dims dims = builder_.dims(targets[i]);
        builder_.push_root_scope("gradient");
        start = builder_.broadcast_to(builder_.constant(1, builder_.dtype(targets[i])), dims);
        builder_.pop_scope();
      }
      TUTTI_TRY(accumulate(targets[i], start));
    }
    return builder_.status();
  }

  base::Status accumulate(ValueId value, ValueId gradient) {
    ValueId &sum = gradients_[static_cast<size_t>(value)];
    sum = sum == kNoValue ? gradient : builder_.add(sum, gradient);
    return builder_.status();
  }

  base::Status visit(NodeId id) {
    const Node node = builder_.graph().node(id);
    std::vector<ValueId> output_gradients;
    bool flows = false;
    for (const ValueId output : node.outputs) {
      output_gradients.push_back(depends(output) ? gradient(output) : kNoValue);
      flows = flows || output_gradients.back() != kNoValue;
    }
    std::vector<bool> needed;
    for (const ValueId input : node.inputs)
      needed.push_back(depends(input));
    if (!flows || std::find(needed.begin(), needed.end(), true) == needed.end()) return {};
    const OpDefinition *definition = find_op(node.op, node.revision);
    if (definition->differentiability == Differentiability::none) return {};
    GradientContext context(builder_, node, std::move(output_gradients), std::move(needed));
    if (definition->gradient == nullptr) return context.unimplemented("the op has no gradient");
    builder_.push_root_scope("gradient/" + node.scope_name);
    base::Status status = definition->gradient(context);
    if (status.ok()) status = builder_.status();
    if (status.ok()) status = collect(node, context);
    builder_.pop_scope();
    return status;
  }

  base::Status collect(const Node &node, const GradientContext &context) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId gradient = context.input_gradients()[i];
      if (gradient == kNoValue) continue;
      TUTTI_TRY(
          check_like(gradient, node.inputs[i],
                     base::concat("the gradient of input #", i, " of node '", node.scope_name, "' (", node.op, ")")));
      TUTTI_TRY(accumulate(node.inputs[i], gradient));
    }
    return {};
  }

  GraphBuilder &builder_;
  const std::vector<NodeId> nodes_;  // before the first gradient node
  const size_t values_;
  std::vector<bool> depends_;
  std::vector<ValueId> gradients_;
};

}  // namespace

base::Result<std::vector<ValueId>> gradients(GraphBuilder &builder, std::span<const ValueId> targets,
                                             std::span<const ValueId> seeds, std::span<const ValueId> wrt) {
  TUTTI_TRY(builder.status());
  ReverseSweep sweep(builder);
  TUTTI_TRY(sweep.run(targets, seeds, wrt));
  std::vector<ValueId> result;
  for (const ValueId variable : wrt)
    result.push_back(sweep.gradient(variable));
  return result;
}

base::Result<std::vector<ValueId>> gradients_or_zeros(GraphBuilder &builder, std::span<const ValueId> targets,
                                                      std::span<const ValueId> seeds, std::span<const ValueId> wrt) {
  TUTTI_ASSIGN(std::vector<ValueId> result, gradients(builder, targets, seeds, wrt));
  builder.push_root_scope("gradient");
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] != kNoValue) continue;
    const Dims dims = builder.dims(wrt[i]);
    result[i] = builder.broadcast_to(builder.constant(0, builder.dtype(wrt[i])), dims);
  }
  builder.pop_scope();
  TUTTI_TRY(builder.status());
  return result;
}

}  // namespace tutti::impl::graph
