// SPDX-License-Identifier: Apache-2.0
//
// The registries of sources and transforms: looking up, checking parameters, describing.
#include <algorithm>
#include <utility>

#include "base/bounds_text.h"
#include "base/name_suggestions.h"
#include "data/pipeline/parameter_reader.h"
#include "data/pipeline/pipeline.h"

namespace tutti::impl::data {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;
using graph::Attribute;
using graph::Attributes;

namespace {

std::string_view type_name(ParameterType type) {
  switch (type) {
    case ParameterType::boolean:
      return "boolean";
    case ParameterType::i64:
      return "i64";
    case ParameterType::f64:
      return "f64";
    case ParameterType::string:
      return "string";
    case ParameterType::strings:
      return "strings";
    case ParameterType::ints:
      return "ints";
    case ParameterType::doubles:
      return "doubles";
  }
  return "invalid";
}

bool has_type(const Attribute &attribute, ParameterType type) {
  switch (type) {
    case ParameterType::boolean:
      return std::holds_alternative<bool>(attribute);
    case ParameterType::i64:
      return std::holds_alternative<int64_t>(attribute);
    case ParameterType::f64:
      return std::holds_alternative<double>(attribute) || std::holds_alternative<int64_t>(attribute);
    case ParameterType::string:
      return std::holds_alternative<std::string>(attribute);
    case ParameterType::strings:
      return std::holds_alternative<std::vector<std::string>>(attribute);
    case ParameterType::ints:
      return std::holds_alternative<std::vector<int64_t>>(attribute);
    case ParameterType::doubles:
      return std::holds_alternative<std::vector<double>>(attribute);
  }
  return false;
}

Status check_value(const ParameterDefinition &definition, const Attribute &attribute) {
  if (!has_type(attribute, definition.type)) {
    return base::invalid_argument("parameter '", definition.name, "': expected ", type_name(definition.type), ", got ",
                                  graph::kind_of(attribute));
  }
  const auto is_within = [&](auto value) {
    return static_cast<double>(value) >= definition.minimum && static_cast<double>(value) <= definition.maximum;
  };
  const auto all_within = [&](const auto &values) { return std::all_of(values.begin(), values.end(), is_within); };
  bool fits = true;
  if (const auto *integer = std::get_if<int64_t>(&attribute)) fits = is_within(*integer);
  if (const auto *number = std::get_if<double>(&attribute)) fits = is_within(*number);
  if (const auto *integers = std::get_if<std::vector<int64_t>>(&attribute)) fits = all_within(*integers);
  if (const auto *numbers = std::get_if<std::vector<double>>(&attribute)) fits = all_within(*numbers);
  if (fits) return Status();
  return base::invalid_argument(
      "parameter '", definition.name, "': expected ", definition.type >= ParameterType::ints ? "each to be " : "",
      base::bounds_text(definition.minimum, definition.maximum), ", got ", graph::to_string(attribute));
}

template <typename Definition>
std::vector<std::string> definition_names(std::span<const Definition> definitions) {
  std::vector<std::string> names;
  for (const Definition &definition : definitions)
    names.emplace_back(definition.name);
  return names;
}

const ParameterDefinition *find_in(std::span<const ParameterDefinition> definitions, std::string_view name) {
  for (const ParameterDefinition &definition : definitions) {
    if (name == definition.name) return &definition;
  }
  return nullptr;
}

template <typename Definition>
const Definition *find_in(std::span<const Definition> definitions, std::string_view name, int32_t revision) {
  const Definition *found = nullptr;
  for (const Definition &definition : definitions) {
    if (name == definition.name && (revision == 0 || revision == definition.revision)) found = &definition;
  }
  return found;
}

Json describe_definition(const ParameterDefinition &parameter) {
  JsonObject entry{{"name", parameter.name},
                   {"type", type_name(parameter.type)},
                   {"required", parameter.required},
                   {"documentation", parameter.documentation}};
  if (!parameter.required) {
    Result<Json> value = Json::parse(parameter.default_text);
    entry.emplace_back("default", value.ok() ? value.take() : Json());
  }
  if (parameter.minimum > -1e300) entry.emplace_back("minimum", parameter.minimum);
  if (parameter.maximum < 1e300) entry.emplace_back("maximum", parameter.maximum);
  return entry;
}

template <typename Definition>
Json describe_definition(std::span<const Definition> definitions) {
  JsonArray entries;
  for (const Definition &definition : definitions) {
    JsonArray parameters;
    for (const ParameterDefinition &parameter : definition.parameters)
      parameters.push_back(describe_definition(parameter));
    entries.emplace_back(JsonObject{{"name", definition.name},
                                    {"revision", definition.revision},
                                    {"documentation", definition.documentation},
                                    {"parameters", std::move(parameters)}});
  }
  return entries;
}

}  // namespace

Status check_parameters(std::span<const ParameterDefinition> definitions, const Attributes &attributes) {
  for (const auto &[name, value] : attributes) {
    const ParameterDefinition *const known = find_in(definitions, name);
    if (known == nullptr) {
      return base::invalid_argument("there is no parameter '", name, "'",
                                    base::but_there_are(name, definition_names(definitions)));
    }
    TUTTI_TRY(check_value(*known, value));
  }
  for (const ParameterDefinition &parameter : definitions) {
    if (parameter.required && attributes.find(parameter.name) == attributes.end()) {
      return base::invalid_argument("parameter '", parameter.name, "' is missing");
    }
  }
  return Status();
}

const TransformDefinition *find_transform(std::string_view name, int32_t revision) {
  return find_in(transform_definitions(), name, revision);
}

const SourceDefinition *find_source(std::string_view name, int32_t revision) {
  return find_in(source_definitions(), name, revision);
}

const ParameterDefinition *find_parameter(std::string_view name, int32_t revision, std::string_view parameter) {
  if (const auto *transform = find_transform(name, revision)) return find_in(transform->parameters, parameter);
  if (const auto *source = find_source(name, revision)) return find_in(source->parameters, parameter);
  return nullptr;
}

Json describe_transforms() { return describe_definition(transform_definitions()); }

Json describe_sources() { return describe_definition(source_definitions()); }

}  // namespace tutti::impl::data
