// SPDX-License-Identifier: Apache-2.0
//
// YAML, and JSON, which is YAML, as a tree of nodes with their places.
#ifndef TUTTI_TOOL_CONFIG_YAML_TEXT_H_
#define TUTTI_TOOL_CONFIG_YAML_TEXT_H_

#include <string>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// One document; null for an empty text. `origin` is what errors call it, and has lines if `has_lines`. A key that
/// comes twice in a map, a second document and a text that is no YAML are a UsageError with its place.
ConfigNode parse_yaml(const std::string &text, const std::string &origin, bool has_lines = true);

/// The same of a file. Throws std::runtime_error when it cannot be read.
ConfigNode read_yaml(const std::string &path);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONFIG_YAML_TEXT_H_
