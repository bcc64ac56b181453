// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/pipeline.h"

#include <utility>

#include "data/pipeline/fingerprint.h"
#include "data/pipeline/parameter_reader.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::Attributes;

namespace {

template <typename Definition>
Status unknown(std::string_view what, std::span<const Definition> definitions, std::string_view name,
               int32_t revision) {
  std::vector<std::string> names;
  for (const Definition &definition : definitions) {
    if (name == definition.name) return base::invalid_argument(what, " '", name, "' has no revision ", revision);
    names.emplace_back(definition.name);
  }
  return base::invalid_argument("there is no ", what, " '", name, "'", base::did_you_mean(name, names));
}

}  // namespace

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
  if (dataset_ == nullptr) return begin(name, attributes, revision);
  ++applied_;
  const auto attempt = [&]() -> Result<DatasetRef> {
    if (const TransformDefinition *definition = find_transform(name, revision)) {
      TUTTI_TRY(check_parameters(definition->parameters, attributes));
      std::shared_ptr<const Recipe> recipe = make_recipe(*definition, dataset_, attributes, arguments);
      TUTTI_ASSIGN(DatasetRef made, definition->apply(dataset_, attributes, arguments));
      // What changes nothing may give its input.
      if (made->recipe() == nullptr && made != dataset_) made->set_recipe(std::move(recipe));
      return made;
    }
    if (find_source(name) != nullptr) {
      return base::failed_precondition("it is a source, and the pipeline has one already");
    }
    return unknown("transform", transform_definitions(), name, revision);
  };
  Result<DatasetRef> result = attempt();
  if (result.ok()) {
    dataset_ = result.take();
  } else {
    status_ = result.status().wrap(base::concat("pipeline: transform ", applied_, " '", name, "' cannot be applied"));
  }
  return *this;
}

Pipeline &Pipeline::begin(std::string_view name, const Attributes &attributes, int32_t revision) {
  const auto attempt = [&]() -> Result<DatasetRef> {
    if (const SourceDefinition *definition = find_source(name, revision)) {
      TUTTI_TRY(check_parameters(definition->parameters, attributes));
      TUTTI_ASSIGN(DatasetRef made, definition->make(attributes, services_));
      made->set_recipe(make_recipe(*definition, attributes, services_));
      return made;
    }
    if (find_transform(name) != nullptr) {
      return base::failed_precondition("it is a transform, and the pipeline has no source yet");
    }
    return unknown("source", source_definitions(), name, revision);
  };
  Result<DatasetRef> result = attempt();
  if (result.ok()) {
    dataset_ = result.take();
  } else {
    const bool is_source = find_source(name) != nullptr;
    status_ = result.status().wrap(is_source ? base::concat("pipeline: source '", name, "' failed")
                                             : base::concat("pipeline: it cannot begin with '", name, "'"));
  }
  return *this;
}

Status Pipeline::check_source() const {
  TUTTI_TRY(status_);
  return dataset_ != nullptr ? Status() : base::failed_precondition("the pipeline has no source");
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
  if (status_ = check_source(); !status_.ok()) return *this;
  ++applied_;
  Result<DatasetRef> result = transformation(dataset_);
  if (result.ok() && *result != nullptr) {
    dataset_ = result.take();
  } else {
    status_ = result.ok() ? base::invalid_argument("pipeline: transformation ", applied_, " returned no dataset")
                          : result.status().wrap(base::concat("pipeline: transformation ", applied_, " failed"));
  }
  return *this;
}

Result<ElementSpec> Pipeline::map_inputs() const {
  TUTTI_TRY(check_source());
  ElementSpec spec = dataset_->spec();
  for (size_t i = 0; i < spec.components.size(); ++i) {
    ComponentSpec &component = spec.components[i];
    // Dimensions that are not known need not be equal.
    for (size_t axis = 0; axis < component.dims.size(); ++axis) {
      if (component.dims[axis] == unknown_dim()) {
        component.dims[axis] = graph::Dim::symbol(base::concat(kUnknownSymbol, ".", i, ".", axis));
      }
    }
    if (!spec.is_batched()) component.dims.insert(component.dims.begin(), graph::Dim::symbol(graph::kBatchSymbol));
  }
  return spec;
}

Result<DatasetRef> Pipeline::build() const {
  TUTTI_TRY(check_source());
  return dataset_;
}

}  // namespace tutti::impl::data
