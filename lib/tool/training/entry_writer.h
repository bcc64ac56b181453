// SPDX-License-Identifier: Apache-2.0
//
// Writes completed entries (entry_arguments.h) into a graph.
#ifndef TUTTI_TOOL_TRAINING_ENTRY_WRITER_H_
#define TUTTI_TOOL_TRAINING_ENTRY_WRITER_H_

#include <functional>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"
#include "tool/training/entry_arguments.h"

namespace tutti::tool {

class EntryWriter {
 public:
  /// The values that a name or pattern stands for; refuses the node of an unknown one.
  using Named = std::function<std::vector<tutti_value>(const ConfigNode &name)>;
  /// What an input is that is not written; no value for an optional one.
  using Unwritten = std::function<tutti_value(const OpInput &input, size_t index)>;

  EntryWriter(Graph graph, Named named) : graph_(graph), named_(std::move(named)) {}

  /// The entry's first `outputs` outputs. What the library refuses is a UsageError with the place of the node.
  std::vector<tutti_value> write(const ConfigNode &node, const EntryPlace &place, const Unwritten &unwritten,
                                 const std::vector<std::string> &beside = {}, size_t outputs = 1) const;
  /// The value of an input as configurations write it; 0 = the type of numbers is f32.
  tutti_value value_of(const ConfigNode &node, const EntryPlace &place, int32_t dtype = 0) const;
  /// Throws a UsageError with this place if the graph has an error.
  void check(const ConfigNode &node) const;

 private:
  std::vector<tutti_value> inputs_of(const OpSignature &signature, const EntryPlace &place, const ConfigNode &arguments,
                                     const Unwritten &unwritten) const;
  std::vector<tutti_value> written_input(const OpInput &input, const EntryPlace &place, const ConfigNode &value) const;
  int32_t dtype_beside(const std::vector<std::vector<tutti_value>> &all) const;
  void set_attribute(const OpAttribute &attribute, const ConfigNode &value) const;
  void set_list(const OpAttribute &attribute, const ConfigNode &value) const;

  const Graph graph_;
  const Named named_;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_ENTRY_WRITER_H_
