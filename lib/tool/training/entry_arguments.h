// SPDX-License-Identifier: Apache-2.0
//
// Entries of the registries as configurations write them: `relu`, `dense: 128`, `dense: {units: 128, use_bias: false}`.
//
// Arguments are attributes and inputs by their names. An input is a number, the name of a value, or an entry that
// computes it: `add: {b: skip}`, `adam: {learning_rate: {cosine: {value: 0.1, steps: 1000}}}`; one of any number of
// values is a list. What need not be written is what the place stands for: a layer's first input is the result before
// it.
#ifndef TUTTI_TOOL_TRAINING_ENTRY_ARGUMENTS_H_
#define TUTTI_TOOL_TRAINING_ENTRY_ARGUMENTS_H_

#include <string>
#include <vector>

#include "tool/config/config_node.h"
#include "tool/training/registry_entry.h"

namespace tutti::tool {

/// Where entries stand.
struct EntryPlace {
  /// Which inputs need not be written: none, the first, or the first and those for labels and targets.
  enum class Given { nothing, first, first_and_labels };

  std::vector<std::string> kinds;  // the first one that has the name counts
  std::string what;                // "layer", as errors call them
  Given given = Given::nothing;
  std::vector<std::string> nested;  // kinds of entries that compute inputs
};

EntryPlace layer_place();
EntryPlace loss_place();
EntryPlace metric_place();
EntryPlace optimizer_place();
EntryPlace parameter_place();

bool is_label_input(const OpInput &input);

/// Brings a node into the form {NAME: {...}} with every attribute, and checks names and types of all that is in it.
/// Keys beside the name may be `beside`.
void complete_entry(ConfigNode &node, const EntryPlace &place, const std::vector<std::string> &beside = {});

/// Of a completed node: the member that names the entry.
const ConfigMember &entry_member(const ConfigNode &node, const std::vector<std::string> &beside = {});
const RegistryEntry &entry_of(const ConfigMember &member, const std::vector<std::string> &kinds);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_ENTRY_ARGUMENTS_H_
