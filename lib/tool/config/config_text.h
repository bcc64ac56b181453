// SPDX-License-Identifier: Apache-2.0
//
// A configuration as YAML for people, and as JSON.
#ifndef TUTTI_TOOL_CONFIG_CONFIG_TEXT_H_
#define TUTTI_TOOL_CONFIG_CONFIG_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// Maps and lists in blocks; what is in an item of a list stands in one line. Read again it gives the same tree.
std::string yaml_of(const ConfigNode &node);

/// Scalars as numbers and truth values where they are.
nlohmann::ordered_json json_of(const ConfigNode &node);
ConfigNode node_of(const nlohmann::ordered_json &value);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONFIG_CONFIG_TEXT_H_
