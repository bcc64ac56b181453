// SPDX-License-Identifier: Apache-2.0
//
// Well-known models by name with their sizes, as lists of layers.
//
//   model: {zoo: mlp, hidden: [256, 64], outputs: 10}
//   model: {zoo: resnet20, outputs: 10, input: [32, 32, 3]}
#ifndef TUTTI_TOOL_TRAINING_MODEL_ZOO_H_
#define TUTTI_TOOL_TRAINING_MODEL_ZOO_H_

#include <string>
#include <vector>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// The layers of what a node names: a name, or a map with the key `zoo` and sizes. Refuses unknown names and sizes.
ConfigNode zoo_layers(const ConfigNode &node);

/// "mlp: hidden=[128], activation=relu, dropout=0, outputs": each model with its sizes and their defaults.
std::vector<std::string> zoo_descriptions();

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_MODEL_ZOO_H_
