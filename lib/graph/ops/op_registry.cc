// SPDX-License-Identifier: Apache-2.0
#include "graph/op_registry.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/name_suggestions.h"
#include "base/text.h"
#include "graph/ops/attribute_reader.h"
#include "graph/ops/op_table.h"

namespace tutti::impl::graph {
namespace {

// Neither the table nor the index is ever destroyed: no static destructors in the library.
const std::vector<OpDefinition> &table() {
  static const auto *const definitions = new std::vector<OpDefinition>(ops::make_op_table());
  return *definitions;
}

using Index = std::map<std::pair<std::string_view, int32_t>, const OpDefinition *>;

const Index &index() {
  static const Index *const by_name = [] {
    Index made;
    for (const OpDefinition &definition : table())
      made.emplace(std::pair(definition.name, definition.revision), &definition);
    return new Index(std::move(made));
  }();
  return *by_name;
}

std::string place_of(const Node &node) {
  return node.scope_name.empty() ? base::concat("op '", node.op, "'")
                                 : base::concat("node '", node.scope_name, "' (", node.op, ")");
}

bool in_class(tensor::DType dtype, const InputDefinition &input) {
  switch (input.dtype_class) {
    case DTypeClass::any:
      return true;
    case DTypeClass::floating:
      return tensor::is_floating(dtype);
    case DTypeClass::number:
      return tensor::is_floating(dtype) || tensor::is_integer(dtype);
    case DTypeClass::integer:
      return tensor::is_integer(dtype);
    case DTypeClass::index:
      return dtype == tensor::DType::i32 || dtype == tensor::DType::i64;
    case DTypeClass::boolean:
      return dtype == tensor::DType::boolean;
    case DTypeClass::exactly:
      return dtype == input.dtype;
  }
  return false;
}

std::string_view class_text(const InputDefinition &input) {
  switch (input.dtype_class) {
    case DTypeClass::floating:
      return "a floating point dtype";
    case DTypeClass::number:
      return "a number dtype";
    case DTypeClass::integer:
      return "an integer dtype";
    case DTypeClass::index:
      return "i32 or i64";
    case DTypeClass::boolean:
      return "boolean";
    case DTypeClass::exactly:
      return tensor::name(input.dtype);
    case DTypeClass::any:
      break;
  }
  return "any dtype";
}

base::Status check_input_count(const OpDefinition &definition, const Node &node) {
  const size_t fixed = definition.inputs.size() - (definition.has_variadic_input() ? 1 : 0);
  size_t required = 0;
  for (const InputDefinition &input : definition.inputs) {
    if (input.variadic) {
      required += static_cast<size_t>(input.minimum_count);
    } else if (!input.optional) {
      ++required;
    }
  }
  const bool too_many = !definition.has_variadic_input() && node.inputs.size() > fixed;
  if (node.inputs.size() >= required && !too_many) return {};
  const std::string_view bound = definition.has_variadic_input() || required < fixed ? "at least " : "";
  std::string missing;
  // Of a variadic input, which is the last, a further one.
  size_t next = std::min(node.inputs.size(), definition.inputs.size() - 1);
  for (; !too_many && missing.empty() && next < definition.inputs.size(); ++next)
    if (!definition.inputs[next].optional)
      missing = base::concat(": input '", definition.inputs[next].name, "' is missing");
  return base::invalid_argument(place_of(node), ": got ", node.inputs.size(), " inputs, expected ", bound,
                                too_many ? fixed : required, missing);
}

base::Status check_node_inputs(const OpDefinition &definition, const Graph &graph, const Node &node) {
  TUTTI_TRY(check_input_count(definition, node));
  const base::Status status = check_inputs(definition.inputs, graph, node.inputs);
  return status.ok() ? status : base::invalid_argument(place_of(node), ": ", status.message());
}

template <typename T>
base::Status check_bounds(const AttributeDefinition &definition, const Node &node, T value) {
  const double number = static_cast<double>(value);
  const bool low = definition.exclusive_minimum ? number <= definition.minimum : number < definition.minimum;
  const bool high = definition.exclusive_maximum ? number >= definition.maximum : number > definition.maximum;
  if (!low && !high && number == number) return {};
  return base::invalid_argument(place_of(node), ": attribute '", definition.name, "' is ", value, ", expected ",
                                low ? (definition.exclusive_minimum ? "more than " : "at least ")
                                    : (definition.exclusive_maximum ? "less than " : "at most "),
                                low ? definition.minimum : definition.maximum);
}

template <typename T>
base::Status check_list(const AttributeDefinition &definition, const Node &node, const std::vector<T> &list) {
  if (definition.length >= 0 && list.size() != static_cast<size_t>(definition.length)) {
    return base::invalid_argument(place_of(node), ": attribute '", definition.name, "' has ", list.size(),
                                  " elements, expected ", definition.length);
  }
  if constexpr (std::is_arithmetic_v<T>) {
    for (const T value : list)
      TUTTI_TRY(check_bounds(definition, node, value));
  }
  return {};
}

base::Status check_attribute(const AttributeDefinition &definition, const Node &node, const Attribute &attribute) {
  if (const auto *number = std::get_if<int64_t>(&attribute);
      number != nullptr && definition.type == AttributeType::enumeration) {
    return base::invalid_argument(place_of(node), ": attribute '", definition.name, "' is ", *number,
                                  ", expected one of ", numbered_choices(definition));
  }
  if (!holds(attribute, definition.type)) {
    return base::invalid_argument(place_of(node), ": attribute '", definition.name, "' is of type ", kind_of(attribute),
                                  ", expected ", definition.type);
  }
  if (definition.type == AttributeType::enumeration) {
    const std::string &choice = std::get<std::string>(attribute);
    if (std::find(definition.choices.begin(), definition.choices.end(), choice) != definition.choices.end()) return {};
    return base::invalid_argument(place_of(node), ": attribute '", definition.name, "' is ", base::quoted(choice),
                                  ", expected one of ", base::join(definition.choices, ", "));
  }
  if (const auto *number = std::get_if<int64_t>(&attribute)) return check_bounds(definition, node, *number);
  if (const auto *number = std::get_if<double>(&attribute)) {
    if (definition.minimum == -std::numeric_limits<double>::infinity()) return {};
    return check_bounds(definition, node, *number);
  }
  if (const auto *list = std::get_if<std::vector<int64_t>>(&attribute)) return check_list(definition, node, *list);
  if (const auto *list = std::get_if<std::vector<double>>(&attribute)) return check_list(definition, node, *list);
  if (const auto *list = std::get_if<Dims>(&attribute)) return check_list(definition, node, *list);
  if (const auto *tensor = std::get_if<tensor::Tensor>(&attribute); tensor != nullptr && tensor->empty()) {
    return base::invalid_argument(place_of(node), ": attribute '", definition.name, "' holds no tensor");
  }
  if (const auto *dtype = std::get_if<tensor::DType>(&attribute); dtype != nullptr && !tensor::is_valid(*dtype)) {
    return base::invalid_argument(place_of(node), ": attribute '", definition.name, "' is not a dtype");
  }
  return {};
}

}  // namespace

base::Status check_inputs(std::span<const InputDefinition> definitions, const Graph &graph,
                          const std::vector<ValueId> &inputs) {
  std::map<char, size_t> matched;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputDefinition &input = definitions[std::min(i, definitions.size() - 1)];
    if (inputs[i] == kNoValue) {
      if (input.optional) continue;
      return base::invalid_argument("input '", input.name, "' is missing");
    }
    if (!graph.contains(inputs[i]))
      return base::invalid_argument("input '", input.name, "' is value ", inputs[i], ", which does not exist");
    const tensor::DType dtype = graph.value(inputs[i]).dtype;
    if (!in_class(dtype, input)) {
      return base::invalid_argument("input '", input.name, "' has dtype ", tensor::name(dtype), ", expected ",
                                    class_text(input));
    }
    if (input.match == 0) continue;
    const auto [first, is_first] = matched.emplace(input.match, i);
    const tensor::DType expected = graph.value(inputs[first->second]).dtype;
    if (!is_first && dtype != expected) {
      const InputDefinition &other = definitions[std::min(first->second, definitions.size() - 1)];
      return base::invalid_argument("input '", input.name, "' has dtype ", tensor::name(dtype), ", input '", other.name,
                                    "' has ", tensor::name(expected), "; they must be equal");
    }
  }
  return {};
}

std::string numbered_choices(const AttributeDefinition &definition) {
  std::string text;
  for (size_t i = 0; i < definition.choices.size(); ++i)
    text += base::concat(i == 0 ? "" : ", ", i + 1, " (", definition.choices[i], ")");
  return text;
}

base::Status check_attributes(const OpDefinition &definition, const Node &node) {
  for (const auto &[name, attribute] : node.attributes) {
    const AttributeDefinition *known = definition.find_attribute(name);
    if (known == nullptr) {
      std::vector<std::string> names;
      for (const AttributeDefinition &one : definition.attributes)
        names.emplace_back(one.name);
      return base::invalid_argument(place_of(node), ": unknown attribute ", base::quoted(name),
                                    base::but_there_are(name, names));
    }
    TUTTI_TRY(check_attribute(*known, node, attribute));
  }
  for (const AttributeDefinition &one : definition.attributes) {
    if (one.required && node.attributes.find(one.name) == node.attributes.end()) {
      return base::invalid_argument(place_of(node), ": attribute '", one.name, "' is required");
    }
  }
  return {};
}

const AttributeDefinition *OpDefinition::find_attribute(std::string_view attribute_name) const {
  for (const AttributeDefinition &attribute : attributes) {
    if (attribute.name == attribute_name) return &attribute;
  }
  return nullptr;
}

const OpDefinition *find_op(std::string_view name, int32_t revision) {
  const auto found = index().find(std::pair(name, revision));
  return found == index().end() ? nullptr : found->second;
}

const OpDefinition *find_op(std::string_view name) {
  auto after = index().lower_bound(std::pair(name, std::numeric_limits<int32_t>::max()));
  if (after == index().begin()) return nullptr;
  --after;
  return after->first.first == name ? after->second : nullptr;
}

std::span<const OpDefinition> all_ops() { return table(); }

base::Result<const OpDefinition *> require_op(std::string_view name, int32_t revision) {
  if (const OpDefinition *found = find_op(name, revision)) return found;
  if (const OpDefinition *newest = find_op(name)) {
    return base::unimplemented("op '", name, "' is known up to revision ", newest->revision, ", not in revision ",
                               revision);
  }
  std::vector<std::string> names;
  for (const OpDefinition &definition : table())
    names.emplace_back(definition.name);
  return base::unimplemented("unknown op ", base::quoted(name), base::did_you_mean(name, names));
}

base::Status check_node(const OpDefinition &definition, const Graph &graph, const Node &node) {
  TUTTI_TRY(check_node_inputs(definition, graph, node));
  TUTTI_TRY(check_attributes(definition, node));
  if (node.regions.size() != definition.regions.size()) {
    return base::invalid_argument(place_of(node), ": has ", node.regions.size(), " regions, expected ",
                                  definition.regions.size());
  }
  return {};
}

const Attribute *resolve_attribute(const OpDefinition &definition, const Node &node, std::string_view name) {
  const auto set = node.attributes.find(name);
  if (set != node.attributes.end()) return &set->second;
  const AttributeDefinition *known = definition.find_attribute(name);
  return known == nullptr || known->required ? nullptr : &known->default_value;
}

}  // namespace tutti::impl::graph

namespace tutti::impl::graph::ops {

base::Result<const OpDefinition *> definition_of(const Node &node, std::string_view op) {
  if (node.op != op) return base::internal_error(place_of(node), ": read as '", op, "'");
  return require_op(op, node.revision);
}

base::Result<const Attribute *> checked_attribute(const OpDefinition &definition, const Node &node,
                                                  std::string_view name) {
  const Attribute *attribute = resolve_attribute(definition, node, name);
  if (attribute == nullptr) return base::invalid_argument(place_of(node), ": attribute '", name, "' is required");
  TUTTI_TRY(check_attribute(*definition.find_attribute(name), node, *attribute));
  return attribute;
}

base::Status read_choice(const OpDefinition &definition, const Node &node, std::string_view name, size_t *choice) {
  TUTTI_ASSIGN(const Attribute *const attribute, checked_attribute(definition, node, name));
  const std::vector<std::string_view> &choices = definition.find_attribute(name)->choices;
  *choice = static_cast<size_t>(std::find(choices.begin(), choices.end(), std::get<std::string>(*attribute)) -
                                choices.begin());
  return {};
}

}  // namespace tutti::impl::graph::ops
