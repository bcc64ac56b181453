// SPDX-License-Identifier: Apache-2.0
#include "tool/config/config_text.h"

#include <algorithm>
#include <cctype>

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

std::string in_quotes(const std::string &text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Whether a text can stand without quotes and is read as the same text: a word, or a path, that is no number, truth
/// value or null.
bool is_word(const std::string &text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '/' || c == '.' || c == '-';
  });
  if (!is_plain || text[0] == '-' || text[0] == '.') return false;
  ConfigNode plain = text_node(text);
  plain.is_quoted = false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  // Words that other readers of YAML take for truth values.
  for (const char *const word : {"null", "yes", "no", "on", "off", "true", "false"}) {
    if (lower == word) return false;
  }
  return !is_number(plain);
}

std::string text_in_yaml(const std::string &text) { return is_word(text) ? text : in_quotes(text); }

std::string scalar_in_yaml(const ConfigNode &node) {
  const bool is_typed = is_number(node) || is_truth(node);
  return is_typed ? node.text : text_in_yaml(node.text);
}

/// In one line.
std::string flow_of(const ConfigNode &node) {
  std::string text;
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return "null";
    case ConfigNode::Kind::scalar:
      return scalar_in_yaml(node);
    case ConfigNode::Kind::list:
      for (const ConfigNode &item : node.items)
        text += (text.empty() ? "" : ", ") + flow_of(item);
      return "[" + text + "]";
    default:
      for (const ConfigMember &member : node.members)
        text += (text.empty() ? "" : ", ") + text_in_yaml(member.key) + ": " + flow_of(member.value);
      return "{" + text + "}";
  }
}

/// An item of a list: "dense: {units: 3}", and what stands beside it in lines of their own.
std::string item_text(const ConfigNode &item, const std::string &indent) {
  if (!item.is_map() || item.members.empty()) return flow_of(item) + "\n";
  std::string text;
  for (const ConfigMember &member : item.members)
    text += (text.empty() ? "" : indent + "  ") + text_in_yaml(member.key) + ": " + flow_of(member.value) + "\n";
  return text;
}

bool has_maps(const ConfigNode &list) {
  return std::any_of(list.items.begin(), list.items.end(),
                     [](const ConfigNode &item) { return item.is_map() || item.text.size() > 30; });
}

std::string block_of(const ConfigNode &node, const std::string &indent) {
  std::string text;
  if (node.is_map() && !node.members.empty()) {
    for (const ConfigMember &member : node.members) {
      const ConfigNode &value = member.value;
      const bool is_block = (value.is_map() && !value.members.empty()) || (value.is_list() && has_maps(value));
      text += indent + text_in_yaml(member.key) + ":";
      text += is_block ? "\n" + block_of(value, indent + "  ") : " " + flow_of(value) + "\n";
    }
    return text;
  }
  if (node.is_list() && has_maps(node)) {
    for (const ConfigNode &item : node.items)
      text += indent + "- " + item_text(item, indent);
    return text;
  }
  return indent + flow_of(node) + "\n";
}

}  // namespace

std::string yaml_of(const ConfigNode &node) { return block_of(node, ""); }

nlohmann::ordered_json json_of(const ConfigNode &node) {
  json value;
  switch (node.kind) {
    case ConfigNode::Kind::null:
      break;
    case ConfigNode::Kind::scalar:
      if (is_truth(node)) return truth_of(node);
      if (is_integer(node)) return integer_of(node);
      if (is_number(node)) return number_of(node);
      return node.text;
    case ConfigNode::Kind::list:
      value = json::array();
      for (const ConfigNode &item : node.items)
        value.push_back(json_of(item));
      break;
    case ConfigNode::Kind::map:
      value = json::object();
      for (const ConfigMember &member : node.members)
        value[member.key] = json_of(member.value);
  }
  return value;
}

ConfigNode node_of(const nlohmann::ordered_json &value) {
  ConfigNode node;
  if (value.is_null()) return node;
  if (value.is_string()) return text_node(value.get<std::string>());
  if (value.is_number_integer()) return number_node(value.get<int64_t>());
  if (value.is_number()) return number_node(value.get<double>());
  if (value.is_boolean()) {
    node = text_node(value.get<bool>() ? "true" : "false");
    node.is_quoted = false;
    return node;
  }
  if (value.is_array()) {
    node.kind = ConfigNode::Kind::list;
    for (const json &item : value)
      node.items.push_back(node_of(item));
    set_paths(node, "");
    return node;
  }
  node.kind = ConfigNode::Kind::map;
  for (const auto &[key, member] : value.items())
    node.set(key, node_of(member));
  return node;
}

}  // namespace tutti::tool
