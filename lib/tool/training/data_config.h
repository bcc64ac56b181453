// SPDX-License-Identifier: Apache-2.0
//
// What a configuration says of data: `data.train`, and `data.evaluate`, which has the keys of `data.train` where it has
// none of its own.
//
//   data:
//     train: {source: "csv:train.csv", types: f32, label: y, batch: 64, shuffle: 1000}
//     evaluate: {source: "csv:test.csv"}        # or {fraction: 0.1}: the last tenth of the training data
//
// Keys of the source: source_config.h. Elements go through: source, split, skip, take, cache, shuffle, map, select,
// roles, repeat, batch, prefetch.
#ifndef TUTTI_TOOL_TRAINING_DATA_CONFIG_H_
#define TUTTI_TOOL_TRAINING_DATA_CONFIG_H_

#include <optional>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"
#include "tool/dataset/dataset_source.h"
#include "tool/dataset/preparation.h"

namespace tutti::tool {

/// Checks `data` and brings it into its full form; paths become absolute.
void complete_data(ConfigNode &config);

/// Whether a completed configuration has data of this name, "train" or "evaluate".
bool has_data(const ConfigNode &config, const std::string &name);

/// Batches of `data.<name>`. Throws UsageError and tutti::Error.
Dataset open_data(const ConfigNode &config, const std::string &name, const Context &context);

/// How `data.<name>` reads and prepares examples, for the examples of other files that have no labels: what only makes
/// labels is left out.
struct UnlabelledData {
  SourceRequest source;  // without paths
  Preparation preparation;
  std::optional<ConfigNode> types;  // of columns
};
UnlabelledData unlabelled_data(const ConfigNode &config, const std::string &name);

/// Reads `data.evaluate` from these files in place of its own.
void replace_source(ConfigNode &config, const std::string &name, const std::vector<std::string> &paths,
                    const std::string &option);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_DATA_CONFIG_H_
