// SPDX-License-Identifier: Apache-2.0
//
// What a configuration says of devices: `context`, the options of that schema, and `strategy`:
//
//   strategy: auto                                        # several processes where a launcher started them
//   strategy: {one_device: {device: cpu:0}}
//   strategy: {mirrored: {devices: [cpu:0, cpu:1]}}       # without devices: all of the context
//   strategy: {central_storage: {storage: cpu:0, devices: [cuda:0, cuda:1]}}
//   strategy: {multi_worker: {workers: "a:4000,b:4000", worker: 0}}     # options of the schema "cluster"
#ifndef TUTTI_TOOL_TRAINING_DEVICE_CONFIG_H_
#define TUTTI_TOOL_TRAINING_DEVICE_CONFIG_H_

#include <string>
#include <tutti/tutti.hpp>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// Checks both and brings them into their full form.
void complete_devices(ConfigNode &config);

/// "2": so many devices; "cpu:0,cpu:1": these.
void set_devices(ConfigNode &config, const std::string &devices, const std::string &option);

/// Warnings go to standard error.
Context make_context(const ConfigNode &config);
/// For global batches of so many rows.
Strategy make_strategy(const ConfigNode &config, const Context &context, int64_t batch);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_DEVICE_CONFIG_H_
