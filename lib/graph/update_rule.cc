// SPDX-License-Identifier: Apache-2.0
#include "graph/update_rule.h"

#include <algorithm>
#include <map>
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

/// What each slot has a value for.
base::Status set_extents(const std::string &list, RuleView view, std::vector<SlotSpec> &slots) {
  const std::vector<std::string> extents = split_names(list);
  if (!extents.empty() && extents.size() != slots.size()) {
    return base::invalid_argument("attribute 'slots_per' has ", extents.size(), " words for ", slots.size(),
                                  " slots, expected one for each or none");
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    const std::optional<SlotPer> per = slot_per(extents[i]);
    if (!per) {
      return base::invalid_argument("attribute 'slots_per': ", base::quoted(extents[i]),
                                    ": expected element, row or column");
    }
    if (*per != SlotPer::element && view != RuleView::stack) {
      return base::invalid_argument("slot '", slots[i].name, "' has a value for each ", extents[i],
                                    ", expected attribute 'view' to be stack");
    }
    slots[i].per = *per;
  }
  return {};
}

RuleView view_of(std::string_view name) {
  if (name == "vector") return RuleView::vector;
  if (name == "matrix") return RuleView::matrix;
  return name == "stack" ? RuleView::stack : RuleView::wide_matrix;
}

base::Result<std::vector<SlotSpec>> make_slots(const std::string &list, const std::vector<double> &initial) {
  std::vector<SlotSpec> slots;
  std::set<std::string> seen;
  for (std::string &name : split_names(list)) {
    if (name.empty() || name == "average" || name.find('/') != std::string::npos || !seen.insert(name).second) {
      return base::invalid_argument("attribute 'slots': ", base::quoted(list),
                                    ": expected different names without '/', and not 'average', separated by commas");
    }
    slots.push_back({.name = std::move(name)});
  }
  if (!initial.empty() && initial.size() != slots.size()) {
    return base::invalid_argument("attribute 'initial' has ", initial.size(), " values for ", slots.size(),
                                  " slots, expected one for each or none");
  }
  for (size_t i = 0; i < initial.size(); ++i)
    slots[i].initial = initial[i];
  return slots;
}

/// What the arrays of a rule have so many of along each axis.
std::vector<std::string_view> symbols_of(RuleView view) {
  if (view == RuleView::vector) return {kElementsSymbol};
  if (view == RuleView::stack) return {kMatricesSymbol, kRowsSymbol, kColumnsSymbol};
  return {kRowsSymbol, kColumnsSymbol};
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
  settings.view = view_of(get<std::string>(*op, rule, "view"));
  TUTTI_TRY(set_extents(get<std::string>(*op, rule, "slots_per"), settings.view, settings.slots));
  settings.weight_decay = get<double>(*op, rule, "weight_decay");
  settings.dtype = get<tensor::DType>(*op, rule, "dtype");
  settings.lazy = get<bool>(*op, rule, "lazy");
  settings.keeps_unreached = get<bool>(*op, rule, "keeps_unreached");
  settings.clip = {get<double>(*op, rule, "clip_value"), get<double>(*op, rule, "clip_norm")};
  settings.average = {get<double>(*op, rule, "average_decay"), get<bool>(*op, rule, "average_ramp"),
                      get<int64_t>(*op, rule, "average_start")};
  if (settings.dtype != tensor::DType::f32 && settings.dtype != tensor::DType::f64)
    return base::invalid_argument("attribute 'dtype' is ", tensor::name(settings.dtype), ", expected f32 or f64");
  return settings;
}

base::Result<std::vector<ValueInfo>> rule_parameters(const Node &rule) {
  TUTTI_ASSIGN(const RuleSettings settings, RuleSettings::from(rule));
  Dims dims;
  for (const std::string_view symbol : symbols_of(settings.view))
    dims.push_back(Dim::symbol(symbol));
  std::vector<ValueInfo> parameters(at(RuleParameter::slots) + settings.slots.size(),
                                    {settings.dtype, dims, kNoNode, 0, ""});
  for (const RuleParameter scalar : {RuleParameter::learning_rate, RuleParameter::weight_decay})
    parameters[at(scalar)].dims = {};
  parameters[at(RuleParameter::iteration)] = {tensor::DType::i64, {}, kNoNode, 0, ""};
  for (size_t i = 0; i < settings.slots.size(); ++i)
    parameters[at(RuleParameter::slots) + i].dims = slot_dims(settings.slots[i].per, dims);
  return parameters;
}

tensor::DType rule_dtype(const Graph &graph, const Node &rule) {
  return graph.value(rule.regions[0].parameters[at(RuleParameter::weight)]).dtype;
}

namespace {

bool may_be_matrix(const Model &model, const VariableSpec &variable) {
  const ParameterGroup *const group = model.train->group_of(variable.name);
  return variable.dims.size() >= 2 && (group == nullptr || !group->as_vectors);
}

/// The dims with the first of them multiplied, so that there are `rank`.
std::vector<int64_t> as_rank(std::vector<int64_t> dims, size_t rank) {
  if (dims.size() < rank) dims.insert(dims.begin(), 1);
  const auto kept = dims.end() - static_cast<std::ptrdiff_t>(rank);
  for (auto more = dims.begin(); more != kept; ++more)
    *kept *= *more;
  return {kept, dims.end()};
}

/// How well a rule of the right dtype is for a variable; 0 = not at all.
int fit(RuleView view, const Model &model, const VariableSpec &variable) {
  if (view == RuleView::vector) return 1;
  if (!may_be_matrix(model, variable)) return 0;
  if (view != RuleView::wide_matrix) return 2;
  const std::vector<int64_t> matrix = as_rank(variable.dims, 2);
  return matrix[0] < matrix[1] ? 3 : 0;
}

}  // namespace

base::Result<size_t> rule_for(const Model &model, const VariableSpec &variable) {
  const tensor::DType dtype = variable.dtype == tensor::DType::f64 ? tensor::DType::f64 : tensor::DType::f32;
  const std::vector<NodeId> &rules = model.train->optimizer.rules;
  int best = 0;
  size_t chosen = 0;
  for (size_t i = 0; i < rules.size(); ++i) {
    const Node &rule = model.graph.node(rules[i]);
    if (rule_dtype(model.graph, rule) != dtype) continue;
    TUTTI_ASSIGN(const RuleSettings settings, RuleSettings::from(rule));
    const int now = fit(settings.view, model, variable);
    if (now > best) best = now, chosen = i;
  }
  if (best > 0) return chosen;
  return base::invalid_argument("variable '", variable.name, "' is ", tensor::name(variable.dtype), " ",
                                to_string(to_dims(variable.dims)), ", and the optimizer has no rule of update for ",
                                tensor::name(dtype), may_be_matrix(model, variable) ? "" : " vectors");
}

std::vector<SlotSpec> slots_for(const Model &model, const VariableSpec &variable) {
  const OptimizerSpec &optimizer = model.train->optimizer;
  if (!optimizer.has_rules()) return optimizer.slots;
  const base::Result<size_t> rule = rule_for(model, variable);
  if (!rule.ok()) return {};
  base::Result<RuleSettings> settings = RuleSettings::from(model.graph.node(optimizer.rules[*rule]));
  return settings.ok() ? std::move(settings->slots) : std::vector<SlotSpec>();
}

std::optional<std::vector<int64_t>> matrix_of(const Model &model, const VariableSpec &variable) {
  if (!model.train->optimizer.has_rules()) return std::nullopt;
  const base::Result<size_t> rule = rule_for(model, variable);
  if (!rule.ok()) return std::nullopt;
  const Node &node = model.graph.node(model.train->optimizer.rules[*rule]);
  const size_t rank = model.graph.value(node.regions[0].parameters[at(RuleParameter::weight)]).dims.size();
  return rank > 1 ? std::optional(as_rank(variable.dims, rank)) : std::nullopt;
}

bool is_stack(const Model &model, const VariableSpec &variable) {
  const std::optional<std::vector<int64_t>> dims = matrix_of(model, variable);
  return dims && dims->size() == symbols_of(RuleView::stack).size();
}

RuleNeeds needs_of(const Graph &graph, const Node &rule) {
  const Region &region = rule.regions[0];
  const Dims elements = graph.value(region.parameters[at(RuleParameter::weight)]).dims;
  std::unordered_set<ValueId> arrays;
  for (const ValueId parameter : region.parameters) {
    if (graph.value(parameter).dims == elements) arrays.insert(parameter);
  }
  RuleNeeds needs;
  if (elements.size() > 1) return {.whole = true};
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
  const Dims &dims = destination.dims(arguments[at(RuleParameter::weight)]);
  const Dims &written = graph.value(region.parameters[at(RuleParameter::weight)]).dims;
  std::map<std::string, Dim, std::less<>> sizes{{std::string(kElementsSymbol), element_count(dims)}};
  for (size_t axis = 0; written.size() > 1 && axis < written.size(); ++axis)
    sizes.insert_or_assign(written[axis].symbols().at(0), dims.at(axis));
  for (const NodeId id : region.nodes) {
    Node node = graph.node(id);
    for (auto &[name, attribute] : node.attributes) {
      if (const auto *const of_rule = std::get_if<Dims>(&attribute)) attribute = substitute(*of_rule, sizes);
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
