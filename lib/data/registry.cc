// SPDX-License-Identifier: Apache-2.0
//
// The registries of sources and transforms: looking up, checking parameters, describing.
#include <utility>

#include "data/parameter_reader.h"
#include "data/pipeline.h"

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
  }
  return false;
}

Status check_value(const ParameterDefinition &definition, const Attribute &attribute) {
  if (!has_type(attribute, definition.type)) {
    return base::invalid_argument("parameter '", definition.name, "': expected ", type_name(definition.type), ", got ",
                                  graph::kind_of(attribute));
  }
  double value = 0;
  if (const int64_t *integer = std::get_if<int64_t>(&attribute)) {
    value = static_cast<double>(*integer);
  } else if (const double *number = std::get_if<double>(&attribute)) {
    value = *number;
  } else {
    return Status();
  }
  if (value >= definition.minimum && value <= definition.maximum) return Status();
  return base::invalid_argument("parameter '", definition.name, "': expected a number from ", definition.minimum,
                                " to ", definition.maximum, ", got ", graph::to_string(attribute));
}

template <typename Definition>
std::vector<std::string> names_of(std::span<const Definition> definitions) {
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

Json describe(const ParameterDefinition &parameter) {
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
Json describe(std::span<const Definition> definitions) {
  JsonArray entries;
  for (const Definition &definition : definitions) {
    JsonArray parameters;
    for (const ParameterDefinition &parameter : definition.parameters)
      parameters.push_back(describe(parameter));
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
                                    base::did_you_mean(name, names_of(definitions)));
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

Json describe_transforms() { return describe(transform_definitions()); }

Json describe_sources() { return describe(source_definitions()); }

}  // namespace tutti::impl::data
