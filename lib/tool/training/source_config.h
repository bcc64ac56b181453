// SPDX-License-Identifier: Apache-2.0
//
// What a configuration says of a source of examples:
//
//   source: csv:train.csv          # files, or KIND:FILE; a list for several
//   format: csv                    # where names do not tell it
//   types: {y: i64, "*": f32}      # of the columns of CSV files, by name or pattern; or one for all; column_types.h
//                                  # says which types the others have
//   settings: {delimiter: ";"}     # parameters of the source, as 'tutti dataset --set' takes them
//   example_features: ["x: f32"]   # of examples in TFRecord files
#ifndef TUTTI_TOOL_TRAINING_SOURCE_CONFIG_H_
#define TUTTI_TOOL_TRAINING_SOURCE_CONFIG_H_

#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"
#include "tool/dataset/dataset_source.h"

namespace tutti::tool {

/// The keys above.
std::vector<std::string> source_keys();

/// Checks them, makes paths absolute, and names the format and the types of columns.
void complete_source(ConfigNode &data);

/// Of a completed one, without types.
SourceRequest source_of(const ConfigNode &data);

/// Of `types`, a map or one for all: the name itself comes before patterns, and these in their order; "" = none has it.
std::string type_of_column(const ConfigNode &types, const std::string &column);

/// The request with types of the columns that its files have; null: as it is.
SourceRequest typed_columns(SourceRequest request, const ConfigNode *types, const Context &context);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_SOURCE_CONFIG_H_
