// SPDX-License-Identifier: Apache-2.0
//
// Functions, layers, losses, metrics, optimizers and schedules: entries of nn.yaml that are expanded into ops of a
// graph under construction. The table is generated (generate_table.py); the expansions are hand-written, one file per
// kind or family. A function is used as an op is, has a name without its kind, and no variables.
//
//   ValueId y = nn::expand(builder, "layer_dense", 1, {x}, {{"units", int64_t{10}}}, {.training = true});
//
// To add one: an entry in nn.yaml and expand_<kind>_<name>() in a source of this folder.
//
// Threads: the table is constant; an expansion belongs to its builder's thread.
#ifndef TUTTI_NN_REGISTRY_H_
#define TUTTI_NN_REGISTRY_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/op_registry.h"

namespace tutti::impl::nn {

class Expansion;

/// Adds the entry's ops to a graph and gives its value; kNoValue for entries that have none (metrics, optimizers).
/// Mistakes are left in the builder (GraphBuilder::fail).
using ExpandFunction = graph::ValueId (*)(Expansion &expansion);

struct Definition {
  std::string_view name;  ///< "layer_dense"; of a function "clip"
  int32_t revision = 1;
  std::string_view doc;
  bool is_function = false;
  std::vector<graph::InputDefinition> inputs;  ///< `weights` and other optional ones last; or a variadic one
  std::vector<graph::AttributeDefinition> attributes;
  ExpandFunction expand = nullptr;

  const graph::AttributeDefinition *find_attribute(std::string_view attribute_name) const;
};

/// What an expansion depends on beside its inputs.
struct ExpansionMode {
  bool training = false;  ///< dropout drops, batch norm uses the batch's statistics
};

/// Null when there is no such entry, or not in that revision.
const Definition *find_definition(std::string_view name, int32_t revision);
/// All entries, in the order of nn.yaml.
std::span<const Definition> all_definitions();

/// Checks inputs and attributes against the entry and expands it. An error is left in the builder, with the builder's
/// scope, the entry and what is wrong; the result is then kNoValue. `further`: receives the outputs behind the first.
graph::ValueId expand(graph::GraphBuilder &builder, std::string_view name, int32_t revision,
                      const std::vector<graph::ValueId> &inputs, graph::Attributes attributes, ExpansionMode mode,
                      std::vector<graph::ValueId> *further = nullptr);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_REGISTRY_H_
