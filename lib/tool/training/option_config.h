// SPDX-License-Identifier: Apache-2.0
//
// Options of the library's schemas (options.h) as maps of a configuration.
#ifndef TUTTI_TOOL_TRAINING_OPTION_CONFIG_H_
#define TUTTI_TOOL_TRAINING_OPTION_CONFIG_H_

#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// Refuses keys that none of the schemas has, and values of another type or out of bounds.
void check_options(const ConfigNode &map, const std::vector<std::string> &schemas);

/// Sets every key that is not there to its default, but for those in `open`, whose defaults depend on others.
void complete_options(ConfigNode &map, const std::vector<std::string> &schemas, const std::vector<std::string> &open);

/// The options of one schema that somebody has written.
Options options_of(const ConfigNode *map, const std::string &schema);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_OPTION_CONFIG_H_
