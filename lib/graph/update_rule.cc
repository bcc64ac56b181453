// SPDX-License-Identifier: Apache-2.0
#include "graph/update_rule.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <variant>

#include "base/text.h"
#include "graph/clone.h"
#include "graph/op_registry.h"

namespace tutti::impl::graph {

namespace {

/// "m, v" → m and v.
std::vector<std::string> split_names(const std::string &text) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    size_t first = begin, last = end;
    while (first < last && text[first] == ' ')
      ++first;
    while (last > first && text[last - 1] == ' ')
      --last;
    names.push_back(text.substr(first, last - first));
    begin = end + 1;
  }
  return names;
}

base::Result<std::vector<SlotSpec>> make_slots(const std::string &list, const std::vector<double> &initial) {
  std::vector<SlotSpec> slots;
  std::set<std::string> seen;
  for (std::string &name : split_names(list)) {
    if (name.empty() || name == "average" || name.find('/') != std::string::npos || !seen.insert(name).second) {
      return base::invalid_argument("attribute 'slots': ", base::quoted(list),
                                    ": expected different names without '/', and not 'average', separated by commas");
    }
    slots.push_back({std::move(name), 0});
  }
  if (!initial.empty() && initial.size() != slots.size()) {
    return base::invalid_argument("attribute 'initial' has ", initial.size(), " values for ", slots.size(),
                                  " slots, expected one for each or none");
  }
  for (size_t i = 0; i < initial.size(); ++i)
    slots[i].initial = initial[i];
  return slots;
}

/// An attribute that has been checked, or its default.
template <typename T>
const T &get(const OpDefinition &definition, const Node &node, std::string_view name) {
  return std::get<T>(*resolve_attribute(definition, node, name));
}

/// Does the op compute each element of its result of the same element of its inputs?
bool is_elementwise(const Node &node) {
  const OpDefinition *const definition = find_op(node.op, node.revision);
  // One op of each family.
  constexpr std::string_view families[] = {"neg", "add", "equal", "select", "cast", "is_finite"};
  return definition != nullptr &&
         std::ranges::any_of(families, [&](std::string_view one) { return find_op(one)->infer == definition->infer; });
}

bool reduces_everything(const Graph &graph, const Node &node) {
  return find_op(node.op, node.revision)->infer == find_op("reduce_sum")->infer &&
         graph.value(node.outputs[0]).dims.empty();
}

}  // namespace

base::Result<RuleSettings> RuleSettings::from(const Node &rule) {
  TUTTI_ASSIGN(const OpDefinition *const op, require_op(rule.op, std::max(rule.revision, 1)));
  TUTTI_TRY(check_attributes(*op, rule));
  RuleSettings settings;
  TUTTI_ASSIGN(settings.slots,
               make_slots(get<std::string>(*op, rule, "slots"), get<std::vector<double>>(*op, rule, "initial")));
  settings.weight_decay = get<double>(*op, rule, "weight_decay");
  settings.dtype = get<tensor::DType>(*op, rule, "dtype");
  settings.clip = {get<double>(*op, rule, "clip_value"), get<double>(*op, rule, "clip_norm")};
  settings.average = {get<double>(*op, rule, "average_decay"), get<bool>(*op, rule, "average_ramp"),
                      get<int64_t>(*op, rule, "average_start")};
  if (settings.dtype != tensor::DType::f32 && settings.dtype != tensor::DType::f64)
    return base::invalid_argument("attribute 'dtype' is ", tensor::name(settings.dtype), ", expected f32 or f64");
  return settings;
}

base::Result<std::vector<ValueInfo>> rule_parameters(const Node &rule) {
  TUTTI_ASSIGN(const RuleSettings settings, RuleSettings::from(rule));
  const Dims elements{Dim::symbol(std::string(kElementsSymbol))};
  std::vector<ValueInfo> parameters(at(RuleParameter::slots) + settings.slots.size(),
                                    {settings.dtype, elements, kNoNode, 0, ""});
  for (const RuleParameter scalar : {RuleParameter::learning_rate, RuleParameter::weight_decay})
    parameters[at(scalar)].dims = {};
  parameters[at(RuleParameter::iteration)] = {tensor::DType::i64, {}, kNoNode, 0, ""};
  return parameters;
}

tensor::DType rule_dtype(const Graph &graph, const Node &rule) {
  return graph.value(rule.regions[0].parameters[at(RuleParameter::weight)]).dtype;
}

base::Result<size_t> rule_for(const Model &model, const VariableSpec &variable) {
  const tensor::DType dtype = variable.dtype == tensor::DType::f64 ? tensor::DType::f64 : tensor::DType::f32;
  const std::vector<NodeId> &rules = model.train->optimizer.rules;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (rule_dtype(model.graph, model.graph.node(rules[i])) == dtype) return i;
  }
  return base::invalid_argument("variable '", variable.name, "' is ", tensor::name(variable.dtype),
                                ", and the optimizer has no rule of update for ", tensor::name(dtype));
}

RuleNeeds needs_of(const Graph &graph, const Node &rule) {
  const Region &region = rule.regions[0];
  const Dims elements = graph.value(region.parameters[at(RuleParameter::weight)]).dims;
  std::unordered_set<ValueId> arrays;
  for (const ValueId parameter : region.parameters) {
    if (graph.value(parameter).dims == elements) arrays.insert(parameter);
  }
  RuleNeeds needs;
  for (const NodeId id : region.nodes) {
    const Node &node = graph.node(id);
    const bool has_array = std::ranges::any_of(node.inputs, [&](ValueId input) { return arrays.contains(input); });
    const bool makes_array =
        std::ranges::any_of(node.outputs, [&](ValueId output) { return graph.value(output).dims == elements; });
    if (!has_array && !makes_array) continue;
    if (is_elementwise(node)) {
      if (makes_array) arrays.insert(node.outputs[0]);
      needs.whole = needs.whole || !makes_array;  // an outer product, say
      needs.flat = needs.flat || !makes_array || !has_array;
    } else {
      needs.whole = true;
      needs.flat = needs.flat || !reduces_everything(graph, node);
    }
    for (const ValueId output : node.outputs) {
      if (needs.flat) arrays.insert(output);
    }
  }
  return needs;
}

base::Result<std::vector<ValueId>> inline_rule(const Graph &graph, const Node &rule, GraphBuilder &destination,
                                               std::span<const ValueId> arguments) {
  const Region &region = rule.regions[0];
  if (region.parameters.size() != arguments.size()) {
    return base::internal_error("rule '", rule.scope_name, "' has ", region.parameters.size(), " parameters, got ",
                                arguments.size());
  }
  NodeCloner cloner(graph, destination);
  for (size_t i = 0; i < arguments.size(); ++i)
    cloner.map(region.parameters[i], arguments[i]);
  const Dim elements = element_count(destination.dims(arguments[at(RuleParameter::weight)]));
  for (const NodeId id : region.nodes) {
    Node node = graph.node(id);
    for (auto &[name, attribute] : node.attributes) {
      if (const auto *const dims = std::get_if<Dims>(&attribute))
        attribute = substitute(*dims, {{std::string(kElementsSymbol), elements}});
    }
    // Of arrays with more axes than one, all.
    if (reduces_everything(graph, node)) node.attributes.erase("axes");
    TUTTI_TRY(cloner.clone_node(node));
  }
  std::vector<ValueId> results;
  for (const ValueId result : region.results)
    results.push_back(cloner.mapped(result));
  return results;
}

}  // namespace tutti::impl::graph
