// SPDX-License-Identifier: Apache-2.0
#include "estimator/model/saved_model.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "checkpoint/averaged_version.h"
#include "checkpoint/reader.h"
#include "graph/clone.h"
#include "graph/serialize.h"

namespace tutti::impl::estimator::model {

using base::Ref;
using base::Result;
using base::Status;
using checkpoint::WeightVersion;
using graph::GraphBuilder;
using graph::kNoValue;
using graph::ValueId;

namespace {

template <typename Map>
std::string listed_names(const Map &map) {
  std::vector<std::string> names;
  for (const auto &[name, value] : map)
    names.push_back(name);
  return base::join(names, ", ");
}

std::string shape_text(tensor::DType dtype, const graph::Dims &dims) {
  return base::concat(tensor::name(dtype), " ", graph::to_string(dims));
}

/// Sizes that both know are equal.
bool fits(const graph::Dims &expected, const graph::Dims &got) {
  if (expected.size() != got.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].is_constant() && got[i].is_constant() && expected[i] != got[i]) return false;
  }
  return true;
}

/// Everything that a value is computed from, and itself.
std::set<ValueId> needed_for(const graph::Graph &graph, ValueId value) {
  std::set<ValueId> needed;
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    if (next == kNoValue || !needed.insert(next).second) continue;
    const graph::NodeId producer = graph.value(next).producer;
    if (producer == graph::kNoNode) continue;
    const std::vector<ValueId> &inputs = graph.node(producer).inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return needed;
}

class Addition {
 public:
  Addition(GraphBuilder &builder, const SavedModel &saved, graph::Model model, Ref<WeightVersion> weights)
      : builder_(builder),
        saved_(saved),
        model_(std::move(model)),
        weights_(std::move(weights)),
        cloner_(model_.graph, builder) {}

  Result<ValueId> run() {
    TUTTI_ASSIGN(const ValueId output, find_output());
    const std::set<ValueId> needed = needed_for(model_.graph, output);
    TUTTI_TRY(map_features(needed));
    builder_.push_scope("model", true);
    for (const graph::VariableSpec &variable : model_.variables) {
      if (!needed.contains(variable.value)) continue;
      TUTTI_TRY(add_variable(variable));
    }
    Result<ValueId> made = cloner_.clone_value(output);
    builder_.pop_scope();
    return made;
  }

 private:
  /// The only output, or the only one of floating point; kNoValue where there are more of both.
  ValueId usual_output() const {
    if (model_.outputs.size() == 1) return model_.outputs.begin()->second;
    std::vector<ValueId> floating;
    for (const auto &[name, value] : model_.outputs)
      if (tensor::is_floating(model_.graph.value(value).dtype)) floating.push_back(value);
    return floating.size() == 1 ? floating.front() : kNoValue;
  }

  Result<ValueId> find_output() const {
    const std::string names = listed_names(model_.outputs);
    if (saved_.output.empty()) {
      const ValueId usual = usual_output();
      if (usual != kNoValue) return usual;
      return base::invalid_argument("it has several outputs, ", names, ": name one of them");
    }
    const auto found = model_.outputs.find(saved_.output);
    if (found != model_.outputs.end()) return found->second;
    return base::not_found("it has no output ", base::quoted(saved_.output), "; it has ", names);
  }

  /// That which the input stands for; null where there is no input.
  Result<const graph::InputSpec *> find_feature() const {
    std::vector<std::string> names;
    for (const graph::InputSpec &feature : model_.features)
      names.push_back(feature.name);
    if (saved_.input == kNoValue && saved_.feature.empty()) return nullptr;
    if (saved_.input == kNoValue)
      return base::invalid_argument("there is no value for its feature ", base::quoted(saved_.feature));
    if (saved_.feature.empty() && names.size() == 1) return &model_.features[0];
    if (saved_.feature.empty())
      return base::invalid_argument("it has several features, ", base::join(names, ", "),
                                    ": name the one that the value stands for");
    if (const graph::InputSpec *const feature = model_.find_feature(saved_.feature); feature != nullptr) return feature;
    return base::not_found("it has no feature ", base::quoted(saved_.feature), "; it has ", base::join(names, ", "));
  }

  Status map_features(const std::set<ValueId> &needed) {
    TUTTI_ASSIGN(const graph::InputSpec *const given, find_feature());
    for (const graph::InputSpec &feature : model_.features) {
      if (!needed.contains(feature.value)) continue;
      const graph::InputSpec *const own = builder_.model().find_feature(feature.name);
      TUTTI_TRY(map_feature(feature, &feature == given ? saved_.input : own != nullptr ? own->value : kNoValue));
    }
    return Status();
  }

  Status map_feature(const graph::InputSpec &feature, ValueId value) {
    const std::string expected =
        base::concat("its feature '", feature.name, "' is ", shape_text(feature.dtype, feature.dims));
    if (value == kNoValue) return base::not_found(expected, ": the dataset has no such feature, give a value for it");
    const tensor::DType dtype = builder_.dtype(value);
    const graph::Dims dims = builder_.dims(value);
    if (dtype != feature.dtype || !fits(feature.dims, dims))
      return base::invalid_argument(expected, ", got ", shape_text(dtype, dims));
    cloner_.map(feature.value, value);
    return Status();
  }

  Status add_variable(const graph::VariableSpec &variable) {
    const ValueId value = builder_.variable(variable.name, variable.dtype, variable.dims, {},
                                            {.trainable = variable.trainable, .aggregation = variable.aggregation});
    TUTTI_TRY(builder_.status());
    cloner_.map(variable.value, value);
    if (!saved_.has_weights) return Status();
    const int64_t index = weights_->find(checkpoint::StateRole::weight, variable.name);
    if (index < 0) return base::data_loss("it has no values of its variable '", variable.name, "'");
    TUTTI_ASSIGN(const tensor::Tensor tensor, weights_->read(static_cast<size_t>(index)));
    builder_.set_initial_value(base::concat(builder_.scope(), "/", variable.name), tensor);
    return builder_.status();
  }

  GraphBuilder &builder_;
  const SavedModel &saved_;
  const graph::Model model_;
  const Ref<WeightVersion> weights_;
  graph::NodeCloner cloner_;
};

Result<ValueId> add(GraphBuilder &builder, const SavedModel &saved) {
  TUTTI_ASSIGN(const std::vector<checkpoint::CheckpointName> names, checkpoint::list_checkpoints(saved.path));
  TUTTI_ASSIGN(checkpoint::Checkpoint checkpoint,
               checkpoint::read_checkpoint(names.empty() ? saved.path : names.back().path, {.slots = false}));
  if (checkpoint.graph_text.empty()) return base::failed_precondition("it contains no graph for predictions");
  TUTTI_ASSIGN(const base::Json json, base::Json::parse(checkpoint.graph_text));
  TUTTI_ASSIGN(graph::Model model, graph::model_from_json(json));
  return Addition(builder, saved, std::move(model), checkpoint::with_averages(std::move(checkpoint.state))).run();
}

}  // namespace

ValueId add_saved_model(GraphBuilder &builder, const SavedModel &saved) {
  if (!builder.ok()) return kNoValue;
  const Result<ValueId> made = add(builder, saved);
  if (made.ok() && builder.ok()) return *made;
  if (!made.ok()) builder.fail(made.status().wrap(base::concat("cannot use saved model '", saved.path, "'")));
  return kNoValue;
}

}  // namespace tutti::impl::estimator::model
