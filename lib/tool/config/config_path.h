// SPDX-License-Identifier: Apache-2.0
//
// Values of a configuration that a command line sets by their paths: optimizer.adam.learning_rate=0.01.
#ifndef TUTTI_TOOL_CONFIG_CONFIG_PATH_H_
#define TUTTI_TOOL_CONFIG_CONFIG_PATH_H_

#include <string>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// Sets what the path names: keys with a dot between them, and places in lists as in model[2].dense.units. Maps on the
/// way are made; a name on the way, as in `optimizer: adam`, becomes a map with this key. Throws UsageError, which
/// begins with the origin of the value, when a list is shorter.
void set_path(ConfigNode &config, const std::string &path, ConfigNode value);

/// "PATH=VALUE" of an option, where the value is YAML.
void set_by_option(ConfigNode &config, const std::string &option, const std::string &setting);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONFIG_CONFIG_PATH_H_
