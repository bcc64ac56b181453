// SPDX-License-Identifier: Apache-2.0
#include "nn/registry.h"

#include <cmath>
#include <string>

#include "base/bounds_text.h"
#include "base/name_suggestions.h"
#include "base/text.h"
#include "nn/expansion.h"

namespace tutti::impl::nn {
namespace {

using graph::Attribute;
using graph::AttributeDefinition;

bool is_in_bounds(const AttributeDefinition &definition, double value) {
  return (definition.exclusive_minimum ? value > definition.minimum : value >= definition.minimum) &&
         (definition.exclusive_maximum ? value < definition.maximum : value <= definition.maximum);
}

/// "at least 0"; "more than 0 and less than 0.5".
std::string bounds_of(const AttributeDefinition &definition) {
  if (!definition.exclusive_minimum && !definition.exclusive_maximum)
    return base::bounds_text(definition.minimum, definition.maximum);
  std::string text;
  if (std::isfinite(definition.minimum))
    text = base::concat(definition.exclusive_minimum ? "more than " : "at least ", definition.minimum);
  if (std::isfinite(definition.maximum)) {
    text += base::concat(text.empty() ? "" : " and ", definition.exclusive_maximum ? "less than " : "at most ",
                         definition.maximum);
  }
  return text;
}

base::Status check_bounds(const AttributeDefinition &definition, double value) {
  if (is_in_bounds(definition, value)) return base::Status();
  return base::invalid_argument("attribute '", definition.name, "': expected ", bounds_of(definition), ", got ", value);
}

base::Status check_length(const AttributeDefinition &definition, const Attribute &value) {
  const auto *const integers = std::get_if<std::vector<int64_t>>(&value);
  const size_t count = integers != nullptr ? integers->size() : std::get<std::vector<double>>(value).size();
  if (count == static_cast<size_t>(definition.length)) return base::Status();
  return base::invalid_argument("attribute '", definition.name, "' has ", count, " elements, expected ",
                                definition.length);
}

base::Status check_attribute(const AttributeDefinition &definition, const Attribute &value) {
  if (const auto *number = std::get_if<int64_t>(&value);
      number != nullptr && definition.type == graph::AttributeType::enumeration) {
    return base::invalid_argument("attribute '", definition.name, "' is ", *number, ", expected one of ",
                                  graph::numbered_choices(definition));
  }
  if (!graph::holds(value, definition.type)) {
    return base::invalid_argument("attribute '", definition.name, "' must be of type ", definition.type, ", got ",
                                  graph::kind_of(value));
  }
  if (definition.length >= 0) TUTTI_TRY(check_length(definition, value));
  if (const auto *integer = std::get_if<int64_t>(&value)) return check_bounds(definition, double(*integer));
  if (const auto *number = std::get_if<double>(&value)) return check_bounds(definition, *number);
  if (const auto *list = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t number : *list)
      TUTTI_TRY(check_bounds(definition, double(number)));
  }
  if (definition.type != graph::AttributeType::enumeration) return base::Status();
  for (const std::string_view choice : definition.choices) {
    if (choice == std::get<std::string>(value)) return base::Status();
  }
  return base::invalid_argument("attribute '", definition.name, "' must be one of ",
                                base::join(definition.choices, ", "), "; got '", std::get<std::string>(value), "'");
}

base::Status check_attributes(const Definition &definition, const graph::Attributes &attributes) {
  for (const auto &[name, value] : attributes) {
    const AttributeDefinition *attribute = definition.find_attribute(name);
    if (attribute == nullptr) {
      std::vector<std::string> names;
      for (const AttributeDefinition &candidate : definition.attributes)
        names.emplace_back(candidate.name);
      return base::invalid_argument("unknown attribute '", name, "'", base::but_there_are(name, names));
    }
    TUTTI_TRY(check_attribute(*attribute, value));
  }
  for (const AttributeDefinition &attribute : definition.attributes) {
    if (attribute.required && attributes.find(attribute.name) == attributes.end())
      return base::invalid_argument("attribute '", attribute.name, "' is missing");
  }
  return base::Status();
}

/// What a value is called by whoever wrote the model: "label 'y'", or nothing for a result of ops.
std::string name_of(const graph::Model &model, ValueId value) {
  for (const graph::InputSpec &feature : model.features) {
    if (feature.value == value) return base::concat(" (feature '", feature.name, "')");
  }
  for (const graph::InputSpec &label : model.labels) {
    if (label.value == value) return base::concat(" (label '", label.name, "')");
  }
  return "";
}

/// No entry computes with texts, and a loss is of what the model computes.
base::Status check_dtype(const GraphBuilder &builder, const Definition &definition, size_t index, ValueId value) {
  const tensor::DType dtype = builder.dtype(value);
  const std::string input =
      base::concat("input '", definition.inputs[index].name, "'", name_of(builder.model(), value));
  if (index == 0 && definition.name.starts_with("loss_") && dtype != tensor::DType::bytes &&
      !tensor::is_floating(dtype))
    return base::invalid_argument(input, " is ", tensor::name(dtype), ", expected floating point: cast it");
  if (dtype != tensor::DType::bytes) return base::Status();
  return base::invalid_argument(input,
                                " is bytes, expected numbers; a CSV column has a type other than bytes where the "
                                "parameter 'columns' says so, as in \"age: f32\"");
}

/// Of a function: at least as many as its variadic input wants, and of the dtypes that the entry says.
base::Status check_function(const GraphBuilder &builder, const Definition &definition,
                            const std::vector<ValueId> &inputs) {
  const graph::InputDefinition *const last = definition.inputs.empty() ? nullptr : &definition.inputs.back();
  const size_t least = definition.inputs.size() - 1 + static_cast<size_t>(last != nullptr ? last->minimum_count : 1);
  if (last != nullptr && last->variadic && inputs.size() < least)
    return base::invalid_argument("got ", inputs.size(), " inputs, expected at least ", least);
  return graph::check_inputs(definition.inputs, builder.graph(), inputs);
}

base::Status check_inputs(const GraphBuilder &builder, const Definition &definition,
                          const std::vector<ValueId> &inputs) {
  const bool is_variadic = !definition.inputs.empty() && definition.inputs.back().variadic;
  if (inputs.size() > definition.inputs.size() && !is_variadic) {
    return base::invalid_argument("takes ", definition.inputs.size(), " inputs, got ", inputs.size());
  }
  for (size_t i = 0; i < definition.inputs.size(); ++i) {
    const graph::InputDefinition &input = definition.inputs[i];
    const bool given = i < inputs.size() && inputs[i] != kNoValue;
    if (!given && !input.optional && !input.variadic)
      return base::invalid_argument("input '", input.name, "' is missing");
    const bool takes_texts = definition.is_function && input.dtype_class == graph::DTypeClass::any;
    if (given && !takes_texts && builder.graph().contains(inputs[i]))
      TUTTI_TRY(check_dtype(builder, definition, i, inputs[i]));
  }
  return definition.is_function ? check_function(builder, definition, inputs) : base::Status();
}

}  // namespace

const AttributeDefinition *Definition::find_attribute(std::string_view attribute_name) const {
  for (const AttributeDefinition &attribute : attributes) {
    if (attribute.name == attribute_name) return &attribute;
  }
  return nullptr;
}

const Definition *find_definition(std::string_view name, int32_t revision) {
  for (const Definition &definition : all_definitions()) {
    if (definition.name == name && definition.revision == revision) return &definition;
  }
  return nullptr;
}

ValueId expand(GraphBuilder &builder, std::string_view name, int32_t revision, const std::vector<ValueId> &inputs,
               graph::Attributes attributes, ExpansionMode mode, std::vector<ValueId> *further) {
  if (!builder.ok()) return kNoValue;
  const Definition *definition = find_definition(name, revision);
  if (definition == nullptr) {
    std::vector<std::string> names;
    for (const Definition &candidate : all_definitions())
      names.emplace_back(candidate.name);
    return builder.fail(
        base::invalid_argument("there is no '", name, "' of revision ", revision, base::did_you_mean(name, names)));
  }
  // Of a function the ops are in a scope of its own; layers open theirs themselves.
  if (definition->is_function) builder.push_scope(name, true);
  Expansion expansion(builder, *definition, inputs, attributes, mode);
  base::Status status = check_inputs(builder, *definition, inputs);
  if (status.ok()) status = check_attributes(*definition, attributes);
  const ValueId value = status.ok() ? definition->expand(expansion) : expansion.fail(status.message());
  if (definition->is_function) builder.pop_scope();
  if (further != nullptr) *further = expansion.further();
  return value;
}

}  // namespace tutti::impl::nn
