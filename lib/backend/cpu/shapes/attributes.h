// SPDX-License-Identifier: Apache-2.0
//
// Attributes of a node with the defaults of the op's definition. The graph has been checked, so types are as ops.yaml
// says; a missing attribute gives the empty value. For compile time.
#ifndef TUTTI_BACKEND_CPU_SHAPES_ATTRIBUTES_H_
#define TUTTI_BACKEND_CPU_SHAPES_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/attribute.h"
#include "graph/graph.h"
#include "graph/op_registry.h"

namespace tutti::impl::backend::cpu {

template <typename T>
T attribute(const graph::Node &node, std::string_view name) {
  const graph::OpDefinition *definition = graph::find_op(node.op, node.revision);
  const graph::Attribute *found = definition == nullptr ? nullptr : graph::resolve_attribute(*definition, node, name);
  if (found == nullptr || !std::holds_alternative<T>(*found)) return T();
  return std::get<T>(*found);
}

inline bool flag(const graph::Node &node, std::string_view name) { return attribute<bool>(node, name); }
inline int64_t integer(const graph::Node &node, std::string_view name) { return attribute<int64_t>(node, name); }
inline double number(const graph::Node &node, std::string_view name) { return attribute<double>(node, name); }
inline std::string text(const graph::Node &node, std::string_view name) { return attribute<std::string>(node, name); }
inline std::vector<int64_t> integers(const graph::Node &node, std::string_view name) {
  return attribute<std::vector<int64_t>>(node, name);
}
inline tensor::DType dtype(const graph::Node &node, std::string_view name) {
  return attribute<tensor::DType>(node, name);
}

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SHAPES_ATTRIBUTES_H_
