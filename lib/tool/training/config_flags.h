// SPDX-License-Identifier: Apache-2.0
//
// The configuration that a command line names, with what its options change.
#ifndef TUTTI_TOOL_TRAINING_CONFIG_FLAGS_H_
#define TUTTI_TOOL_TRAINING_CONFIG_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "tool/command/command.h"
#include "tool/config/config_node.h"

namespace tutti::tool {

struct ConfigRequest {
  std::string path;                                        // a file, the folder of a run, or "" = options alone
  std::vector<std::function<void(ConfigNode &)>> changes;  // in the order of the options
};

/// "PATH=VALUE" options of every command that reads configurations. The request lives as long as the command.
void add_set_option(Command &command, ConfigRequest &request);
/// --devices and --batch, the latter of `data.<name>`.
void add_device_options(Command &command, ConfigRequest &request, const std::string &name);
/// Those with which a training needs no file.
void add_training_options(Command &command, ConfigRequest &request);

/// The completed configuration.
ConfigNode load_config(const ConfigRequest &request);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_CONFIG_FLAGS_H_
