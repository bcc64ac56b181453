// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline.h"

#include <utility>

#include "data/parameter_reader.h"

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

std::vector<std::string> names_of(const TransformDefinition &definition) {
  std::vector<std::string> names;
  for (const ParameterDefinition &parameter : definition.parameters)
    names.emplace_back(parameter.name);
  return names;
}

Status unknown_transform(std::string_view name, int32_t revision) {
  if (find_transform(name) != nullptr) {
    return base::invalid_argument("transform '", name, "' has no revision ", revision);
  }
  std::vector<std::string> names;
  for (const TransformDefinition &definition : transform_definitions())
    names.emplace_back(definition.name);
  return base::invalid_argument("there is no transform '", name, "'", base::did_you_mean(name, names));
}

}  // namespace

Status check_parameters(const TransformDefinition &definition, const Attributes &attributes) {
  const std::vector<std::string> names = names_of(definition);
  for (const auto &[name, value] : attributes) {
    bool known = false;
    for (const ParameterDefinition &parameter : definition.parameters) {
      if (name != parameter.name) continue;
      known = true;
      TUTTI_TRY(check_value(parameter, value));
    }
    if (!known) return base::invalid_argument("there is no parameter '", name, "'", base::did_you_mean(name, names));
  }
  for (const ParameterDefinition &parameter : definition.parameters) {
    if (parameter.required && attributes.find(parameter.name) == attributes.end()) {
      return base::invalid_argument("parameter '", parameter.name, "' is missing");
    }
  }
  return Status();
}

const TransformDefinition *find_transform(std::string_view name, int32_t revision) {
  const TransformDefinition *found = nullptr;
  for (const TransformDefinition &definition : transform_definitions()) {
    if (name == definition.name && (revision == 0 || revision == definition.revision)) found = &definition;
  }
  return found;
}

Json describe_transforms() {
  JsonArray transforms;
  for (const TransformDefinition &definition : transform_definitions()) {
    JsonArray parameters;
    for (const ParameterDefinition &parameter : definition.parameters) {
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
      parameters.emplace_back(std::move(entry));
    }
    transforms.emplace_back(JsonObject{{"name", definition.name},
                                       {"revision", definition.revision},
                                       {"documentation", definition.documentation},
                                       {"parameters", std::move(parameters)}});
  }
  return transforms;
}

Pipeline::Pipeline(Result<DatasetRef> source) {
  if (source.ok()) {
    dataset_ = source.take();
    if (dataset_ == nullptr) status_ = base::invalid_argument("a pipeline needs a source");
  } else {
    status_ = source.status();
  }
}

Pipeline &Pipeline::apply(std::string_view name, Attributes attributes, TransformArguments arguments,
                          int32_t revision) {
  if (!status_.ok()) return *this;
  ++applied_;
  const auto attempt = [&]() -> Result<DatasetRef> {
    const TransformDefinition *definition = find_transform(name, revision);
    if (definition == nullptr) return unknown_transform(name, revision);
    TUTTI_TRY(check_parameters(*definition, attributes));
    return definition->apply(dataset_, attributes, arguments);
  };
  Result<DatasetRef> result = attempt();
  if (result.ok()) {
    dataset_ = result.take();
  } else {
    status_ = result.status().wrap(base::concat("pipeline: transform ", applied_, " '", name, "' cannot be applied"));
  }
  return *this;
}

Pipeline &Pipeline::map(graph::SealedGraph graph) {
  TransformArguments arguments;
  arguments.graph = std::move(graph);
  return apply("map", {}, std::move(arguments));
}

Pipeline &Pipeline::shuffle(int64_t buffer_size) { return apply("shuffle", {{"buffer_size", buffer_size}}); }

Pipeline &Pipeline::batch(int64_t batch_size, bool drop_remainder) {
  return apply("batch", {{"batch_size", batch_size}, {"drop_remainder", drop_remainder}});
}

Pipeline &Pipeline::repeat(int64_t count) { return apply("repeat", {{"count", count}}); }

Pipeline &Pipeline::prefetch(int64_t buffer_size) { return apply("prefetch", {{"buffer_size", buffer_size}}); }

Pipeline &Pipeline::apply(const std::function<Result<DatasetRef>(DatasetRef)> &transformation) {
  if (!status_.ok()) return *this;
  ++applied_;
  Result<DatasetRef> result = transformation(dataset_);
  if (result.ok() && *result != nullptr) {
    dataset_ = result.take();
  } else {
    status_ = result.ok() ? base::invalid_argument("pipeline: transformation ", applied_, " gave no dataset")
                          : result.status().wrap(base::concat("pipeline: transformation ", applied_, " failed"));
  }
  return *this;
}

Result<ElementSpec> Pipeline::map_inputs() const {
  TUTTI_TRY(status_);
  ElementSpec spec = dataset_->spec();
  if (spec.is_batched()) return spec;
  for (ComponentSpec &component : spec.components) {
    component.dims.insert(component.dims.begin(), graph::Dim::symbol(graph::kBatchSymbol));
  }
  return spec;
}

Result<DatasetRef> Pipeline::build() const {
  TUTTI_TRY(status_);
  return dataset_;
}

}  // namespace tutti::impl::data
