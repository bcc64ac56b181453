// SPDX-License-Identifier: Apache-2.0
//
// What the generated attribute structs are read with: a node's attribute or its default, type and bounds checked.
#ifndef TUTTI_GRAPH_OPS_ATTRIBUTE_READER_H_
#define TUTTI_GRAPH_OPS_ATTRIBUTE_READER_H_

#include <string_view>

#include "base/status.h"
#include "graph/op_registry.h"

namespace tutti::impl::graph::ops {

/// The definition of the node's op in the node's revision; an error when the node is of another op than `op`.
base::Result<const OpDefinition *> definition_of(const Node &node, std::string_view op);

/// The attribute, checked; an error naming node and attribute when it is missing or wrong.
base::Result<const Attribute *> checked_attribute(const OpDefinition &definition, const Node &node,
                                                  std::string_view name);

/// Reads an attribute of the C++ type its definition says.
template <typename T>
base::Status read_attribute(const OpDefinition &definition, const Node &node, std::string_view name, T *out) {
  TUTTI_ASSIGN(const Attribute *const attribute, checked_attribute(definition, node, name));
  *out = std::get<T>(*attribute);
  return {};
}

/// Reads an enumeration as the index of its choice.
base::Status read_choice(const OpDefinition &definition, const Node &node, std::string_view name, size_t *choice);

}  // namespace tutti::impl::graph::ops

#endif  // TUTTI_GRAPH_OPS_ATTRIBUTE_READER_H_
