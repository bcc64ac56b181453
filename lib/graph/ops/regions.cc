// SPDX-License-Identifier: Apache-2.0
//
// Ops that own regions: shape and gradient rules.
#include "graph/autodiff.h"
#include "graph/clone.h"
#include "graph/ops/rules.h"
#include "graph/update_rule.h"

namespace tutti::impl::graph::ops {
namespace {

std::string describe(const ValueInfo &info) {
  return base::concat(tensor::name(info.dtype), " ", to_string(info.dims));
}

base::Status require_like(const InferContext &context, std::string_view what, size_t position, ValueId value,
                          const ValueInfo &expected) {
  if (value == kNoValue) return context.error(base::concat(what, " #", position, " is missing"));
  const ValueInfo &info = context.graph().value(value);
  if (info.dtype == expected.dtype && info.dims == expected.dims) return {};
  return context.error(base::concat(what, " #", position, " is ", describe(info), ", expected ", describe(expected)));
}

// The parameters of a region are like the node's inputs from `first` on.
base::Status require_parameters(const InferContext &context, const Region &region, size_t first) {
  if (region.parameters.size() + first != context.input_count()) {
    return context.error(base::concat("its region has ", region.parameters.size(), " parameters, expected ",
                                      context.input_count() - first));
  }
  for (size_t i = 0; i < region.parameters.size(); ++i) {
    TUTTI_TRY(require_like(context, "parameter", i, region.parameters[i], context.input(first + i)));
  }
  return {};
}

base::Status add_results(InferContext &context, const Region &region) {
  for (const ValueId result : region.results) {
    if (result == kNoValue) return context.error("a result of its region is missing");
    const ValueInfo info = context.graph().value(result);
    context.add_output(info.dtype, info.dims);
  }
  return {};
}

}  // namespace

base::Status infer_call(InferContext &context) {
  const Region &body = context.node().regions[0];
  TUTTI_TRY(require_parameters(context, body, 0));
  return add_results(context, body);
}

base::Status infer_custom_gradient(InferContext &context) {
  const Region &forward = context.node().regions[0], &backward = context.node().regions[1];
  TUTTI_TRY(require_parameters(context, forward, 0));
  TUTTI_TRY(add_results(context, forward));
  std::vector<ValueInfo> expected;
  for (size_t i = 0; i < context.input_count(); ++i)
    expected.push_back(context.input(i));
  for (int round = 0; round < 2; ++round)
    expected.insert(expected.end(), context.outputs().begin(), context.outputs().end());
  if (backward.parameters.size() != expected.size()) {
    return context.error(base::concat("its backward region has ", backward.parameters.size(), " parameters, expected ",
                                      expected.size()));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    TUTTI_TRY(require_like(context, "parameter of the backward region", i, backward.parameters[i], expected[i]));
  }
  if (backward.results.size() != context.input_count()) {
    return context.error(base::concat("its backward region has ", backward.results.size(),
                                      " results, expected one for each of ", context.input_count(), " inputs"));
  }
  for (size_t i = 0; i < backward.results.size(); ++i) {
    if (backward.results[i] == kNoValue) continue;  // no gradient for this input
    TUTTI_TRY(require_like(context, "result of the backward region", i, backward.results[i], context.input(i)));
  }
  return {};
}

base::Status infer_scan(InferContext &context) {
  TUTTI_ASSIGN(const ScanAttributes attributes, ScanAttributes::from(context.node()));
  const Region &body = context.node().regions[0];
  const size_t states = static_cast<size_t>(attributes.states), sequences = static_cast<size_t>(attributes.sequences);
  if (states > context.input_count() || sequences > context.input_count() - states ||
      body.parameters.size() != context.input_count()) {
    return context.error(base::concat("has ", context.input_count(), " inputs and ", body.parameters.size(),
                                      " region parameters for ", states, " states and ", sequences, " sequences"));
  }
  const size_t axis = static_cast<size_t>(attributes.axis);
  Dim length;
  for (size_t i = 0; i < context.input_count(); ++i) {
    ValueInfo expected = context.input(i);
    if (i >= states && i < states + sequences) {
      if (axis >= expected.dims.size()) return context.input_error(i, base::concat("has no axis ", axis));
      if (i == states) length = expected.dims[axis];
      if (expected.dims[axis] != length)
        return context.inputs_error(states, i, base::concat("must have equal lengths along axis ", axis));
      expected.dims.erase(expected.dims.begin() + attributes.axis);
    }
    TUTTI_TRY(require_like(context, "region parameter", i, body.parameters[i], expected));
  }
  if (body.results.size() < states)
    return context.error(base::concat("its region has ", body.results.size(), " results for ", states, " states"));
  for (size_t i = 0; i < body.results.size(); ++i) {
    if (i < states) TUTTI_TRY(require_like(context, "new state", i, body.results[i], context.input(i)));
    if (body.results[i] == kNoValue) return context.error("a result of its region is missing");
    ValueInfo info = context.graph().value(body.results[i]);
    if (i >= states) {
      if (axis > info.dims.size())
        return context.error(base::concat("stacked result ", to_string(info.dims), " cannot have axis ", axis));
      info.dims.insert(info.dims.begin() + attributes.axis, length);
    }
    context.add_output(info.dtype, std::move(info.dims));
  }
  return {};
}

base::Status infer_cond(InferContext &context) {
  TUTTI_TRY(require_scalar(context, 0));
  const Region &first = context.node().regions[0], &second = context.node().regions[1];
  TUTTI_TRY(require_parameters(context, first, 1));
  TUTTI_TRY(require_parameters(context, second, 1));
  TUTTI_TRY(add_results(context, first));
  if (second.results.size() != first.results.size()) {
    return context.error(
        base::concat("its regions have ", first.results.size(), " and ", second.results.size(), " results"));
  }
  for (size_t i = 0; i < second.results.size(); ++i) {
    TUTTI_TRY(require_like(context, "result of the second region", i, second.results[i],
                           context.graph().value(first.results[i])));
  }
  return {};
}

base::Status infer_update_rule(InferContext &context) {
  TUTTI_TRY(require_scalar(context, 0));
  const Node &node = context.node();
  const auto settings = RuleSettings::from(node);
  if (!settings.ok()) return context.error(settings.status().message());
  TUTTI_ASSIGN(const std::vector<ValueInfo> own, rule_parameters(node));
  const Region &rule = node.regions[0];
  if (rule.parameters.size() + 1 != own.size() + context.input_count()) {
    return context.error(base::concat("its region has ", rule.parameters.size(), " parameters, expected ",
                                      own.size() + context.input_count() - 1));
  }
  for (size_t i = 0; i < rule.parameters.size(); ++i) {
    const ValueInfo &expected = i < own.size() ? own[i] : context.input(1 + i - own.size());
    TUTTI_TRY(require_like(context, "region parameter", i, rule.parameters[i], expected));
  }
  if (rule.results.size() != 1 + settings->slots.size()) {
    return context.error(base::concat("its region has ", rule.results.size(), " results, expected ",
                                      1 + settings->slots.size(), ": the new weight and each slot's new value"));
  }
  for (size_t i = 0; i < rule.results.size(); ++i)
    TUTTI_TRY(require_like(context, "result", i, rule.results[i], own[i == 0 ? 0 : at(RuleParameter::slots) + i - 1]));
  return {};
}

// The region is computed again and differentiated where it then stands.
base::Status gradient_call(GradientContext &context) {
  GraphBuilder &b = context.builder();
  // Fresh names for the inputs: one of them may depend on another, but not through this node.
  std::vector<ValueId> arguments, targets, seeds, wrt;
  for (const ValueId input : context.node().inputs)
    arguments.push_back(b.unary("identity", input));
  TUTTI_TRY(b.status());
  NodeCloner cloner(b.graph(), b);
  TUTTI_ASSIGN(const std::vector<ValueId> again, cloner.inline_region(context.node().regions[0], arguments));
  for (size_t i = 0; i < again.size(); ++i) {
    if (context.output_gradient(i) == kNoValue) continue;
    targets.push_back(again[i]);
    seeds.push_back(context.output_gradient(i));
  }
  std::vector<size_t> positions;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (!context.needs(i)) continue;
    positions.push_back(i);
    wrt.push_back(arguments[i]);
  }
  TUTTI_ASSIGN(const std::vector<ValueId> made, gradients(b, targets, seeds, wrt));
  for (size_t i = 0; i < positions.size(); ++i)
    context.set(positions[i], made[i]);
  return {};
}

base::Status gradient_custom_gradient(GradientContext &context) {
  GraphBuilder &b = context.builder();
  const Node &node = context.node();
  std::vector<ValueId> arguments = node.inputs;
  arguments.insert(arguments.end(), node.outputs.begin(), node.outputs.end());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ValueId gradient = context.output_gradient(i);
    if (gradient == kNoValue) {
      const Dims dims = b.dims(node.outputs[i]);
      gradient = b.broadcast_to(b.constant(0, b.dtype(node.outputs[i])), dims);
    }
    arguments.push_back(gradient);
  }
  NodeCloner cloner(b.graph(), b);
  TUTTI_ASSIGN(const std::vector<ValueId> made, cloner.inline_region(node.regions[1], arguments));
  for (size_t i = 0; i < made.size(); ++i) {
    if (context.needs(i) && made[i] != kNoValue) context.set(i, made[i]);
  }
  return {};
}

}  // namespace tutti::impl::graph::ops
