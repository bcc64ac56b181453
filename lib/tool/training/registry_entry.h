// SPDX-License-Identifier: Apache-2.0
//
// What a model can be made of: every public entry of the library's registries (lib/graph/ops/ops.yaml, lib/nn/nn.yaml)
// with its inputs and attributes. The table is generated; graph.h takes entries by these names.
#ifndef TUTTI_TOOL_TRAINING_REGISTRY_ENTRY_H_
#define TUTTI_TOOL_TRAINING_REGISTRY_ENTRY_H_

#include <string>
#include <vector>

#include "tool/dataset/op_signature.h"

namespace tutti::tool {

struct RegistryEntry {
  std::string kind;       // "op", "function", "layer", "loss", "metric", "optimizer", "schedule" or "parameter"
  std::string name;       // "dense"
  OpSignature signature;  // its name is that in the registry, "layer_dense"
};

/// All of them, by kind and name.
const std::vector<RegistryEntry> &registry_entries();

/// The first of the kinds that has an entry of this name; null when none has.
const RegistryEntry *find_entry(const std::vector<std::string> &kinds, const std::string &name);
/// The names of all entries of these kinds, without doubles.
std::vector<std::string> entry_names(const std::vector<std::string> &kinds);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_REGISTRY_ENTRY_H_
