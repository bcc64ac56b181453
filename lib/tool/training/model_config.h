// SPDX-License-Identifier: Apache-2.0
//
// What a configuration says of a model: its layers, outputs, loss, metrics and optimizer.
//
//   model:
//     - flatten
//     - dense: {units: 128, activation: relu}
//     - dense: 10
//   loss: sparse_softmax_cross_entropy
//   metrics: [accuracy]
//   optimizer: {adam: {learning_rate: 0.001}}
//
// Each item of `model` has the result of the item before it as its first input, the first item the feature. With
// `as: NAME` its own result gets a name, by which other items take it: `- add: skip`; `as: [y, state]` names several.
// `outputs` maps names of
// predictions to values; without it the last result has the name that the loss gives to its first input, and where that
// are logits of classes, `class` is the largest.
#ifndef TUTTI_TOOL_TRAINING_MODEL_CONFIG_H_
#define TUTTI_TOOL_TRAINING_MODEL_CONFIG_H_

#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// The keys of a configuration that are about the model.
std::vector<std::string> model_keys();

/// Brings these keys into their full form, with every default. A model of the zoo becomes its layers.
void complete_model(ConfigNode &config);

/// The components that a model may use, by their roles.
struct ModelComponents {
  std::vector<std::string> features, labels, weights;
};
ModelComponents components_of(const Dataset &dataset);

/// Writes the model of a completed configuration for a mode. Throws UsageError with the place of what is wrong.
void write_model(const Graph &graph, int32_t mode, const ConfigNode &config, const ModelComponents &components);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_MODEL_CONFIG_H_
