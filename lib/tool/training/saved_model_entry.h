// SPDX-License-Identifier: Apache-2.0
//
// Saved models among the layers of a configuration, which are parts of the model (tutti_graph_add_saved_model):
//
//   model: {saved_model: runs/first}
//   model:
//     - saved_model: {path: runs/first, output: logits, feature: image}
//     - dense: 3
#ifndef TUTTI_TOOL_TRAINING_SAVED_MODEL_ENTRY_H_
#define TUTTI_TOOL_TRAINING_SAVED_MODEL_ENTRY_H_

#include <tutti/tutti.hpp>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// Whether a layer, or the whole model, is one.
bool is_saved_model(const ConfigNode &layer);
/// Brings it into its full form: a map of path, which becomes absolute, output and feature.
void complete_saved_model(ConfigNode &layer);
/// Its output. `previous`: the result before it, or no value where it takes features of the data by their names.
tutti_value write_saved_model(const Graph &graph, const ConfigNode &layer, tutti_value previous);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_SAVED_MODEL_ENTRY_H_
