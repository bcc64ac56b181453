// SPDX-License-Identifier: Apache-2.0
#include "graph/model.h"

#include <fnmatch.h>

#include <cmath>

#include "graph/builder.h"
#include "graph/clone.h"
#include "graph/initializer.h"

namespace tutti::impl::graph {

Model::Model() = default;
Model::Model(const Model &other) = default;
Model::Model(Model &&other) noexcept = default;
Model &Model::operator=(const Model &other) = default;
Model &Model::operator=(Model &&other) noexcept = default;
Model::~Model() = default;

std::string_view name(Aggregation aggregation) {
  switch (aggregation) {
    case Aggregation::trained:
      return "trained";
    case Aggregation::aggregated:
      return "aggregated";
    case Aggregation::per_replica:
      return "per_replica";
  }
  return "unknown";
}

std::string_view name(SlotPer per) {
  switch (per) {
    case SlotPer::element:
      return "element";
    case SlotPer::row:
      return "row";
    case SlotPer::column:
      return "column";
  }
  return "unknown";
}

std::optional<SlotPer> slot_per(std::string_view text) {
  for (const SlotPer per : {SlotPer::element, SlotPer::row, SlotPer::column}) {
    if (text == name(per)) return per;
  }
  return std::nullopt;
}

base::Status AverageSpec::check() const {
  if (!(decay >= 0 && decay < 1)) {
    return base::invalid_argument("average_decay is ", decay, ", expected at least 0 and less than 1");
  }
  if (start < 0) return base::invalid_argument("average_start is ", start, ", expected at least 0");
  if (!is_on() && (has_ramp || start > 0)) {
    return base::invalid_argument(has_ramp ? "average_ramp" : "average_start", " is set without average_decay");
  }
  return {};
}

base::Status ClipSpec::check() const {
  for (const auto &[limit, number] : {std::pair("clip_value", value), std::pair("clip_norm", norm)}) {
    if (number >= 0 && std::isfinite(number)) continue;
    return base::invalid_argument(limit, " is ", number, ", expected a finite number of at least 0");
  }
  return {};
}

bool ParameterGroup::has(std::string_view variable) const {
  return fnmatch(pattern.c_str(), std::string(variable).c_str(), 0) == 0;
}

const ParameterGroup *TrainSpec::group_of(std::string_view variable) const {
  for (const ParameterGroup &group : groups) {
    if (group.has(variable)) return &group;
  }
  return nullptr;
}

const VariableSpec *Model::find_variable(std::string_view variable_name) const {
  for (const VariableSpec &variable : variables) {
    if (variable.name == variable_name) return &variable;
  }
  return nullptr;
}

const InputSpec *Model::find_feature(std::string_view feature_name) const {
  for (const InputSpec &feature : features) {
    if (feature.name == feature_name) return &feature;
  }
  return nullptr;
}

const SummarySpec *Model::find_summary(std::string_view summary_name) const {
  for (const SummarySpec &summary : summaries) {
    if (summary.name == summary_name) return &summary;
  }
  return nullptr;
}

base::Result<Model> predict_model(const Model &model) {
  if (model.outputs.empty()) return base::failed_precondition("the model has no outputs to predict");
  GraphBuilder builder;
  NodeCloner cloner(model.graph, builder);
  Model result;
  // Every feature stays, used or not: it is part of what a predictor is asked with.
  for (InputSpec feature : model.features) {
    TUTTI_ASSIGN(feature.value, cloner.clone_value(feature.value));
    result.features.push_back(std::move(feature));
  }
  for (const auto &[name, value] : model.outputs) {
    TUTTI_ASSIGN(result.outputs[name], cloner.clone_value(value));
  }
  for (const InputSpec &label : model.labels) {
    if (cloner.is_mapped(label.value)) {
      return base::failed_precondition("a predicted output depends on label '", label.name, "'");
    }
  }
  for (VariableSpec variable : model.variables) {
    if (!cloner.is_mapped(variable.value)) continue;
    variable.value = cloner.mapped(variable.value);
    // Its values are where the weights are.
    if (variable.initializer.name == kGivenValues) variable.initializer = {};
    result.variables.push_back(std::move(variable));
  }
  TUTTI_ASSIGN(result.graph, builder.finish_graph());
  return result;
}

}  // namespace tutti::impl::graph
