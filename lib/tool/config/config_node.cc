// SPDX-License-Identifier: Apache-2.0
#include "tool/config/config_node.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "tool/console/name_suggestions.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

std::string located(const ConfigPlace &at, const std::string &path, const std::string &what) {
  return at.text() + ": " + (path.empty() ? "" : path + ": ") + what;
}

std::string joined(const std::string &path, const std::string &key) { return path.empty() ? key : path + "." + key; }

bool parse_integer(const std::string &text, int64_t &value) {
  const size_t first = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const bool is_hexadecimal = text.compare(first, 2, "0x") == 0;
  const size_t digits = first + (is_hexadecimal ? 2 : 0);
  const char *const allowed = is_hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
  if (text.size() == digits || text.find_first_not_of(allowed, digits) != std::string::npos) return false;
  errno = 0;
  value = std::strtoll(text.c_str(), nullptr, is_hexadecimal ? 16 : 10);
  return errno == 0;
}

/// As YAML 1.2 writes numbers: also .inf and .nan, but no hexadecimal fractions.
bool parse_number(const std::string &text, double &value) {
  const size_t first = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::string word = text.substr(first);
  if (word == ".inf" || word == ".Inf" || word == ".INF") {
    value = text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return true;
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (word.empty() || word.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  if (word.find_first_of("0123456789") == std::string::npos) return false;
  char *end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return *end == '\0';
}

bool parse_truth(const std::string &text, bool &value) {
  value = text == "true" || text == "True" || text == "TRUE";
  return value || text == "false" || text == "False" || text == "FALSE";
}

/// A plain scalar: one that is not in quotes.
bool is_plain(const ConfigNode &node) { return node.is_scalar() && !node.is_quoted; }

const ConfigNode *find_member(const std::vector<ConfigMember> &members, const std::string &key) {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const ConfigMember &member) { return member.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

[[noreturn]] void refuse_type(const ConfigNode &node, const std::string &expected) {
  refuse(node, "expected " + expected + ", got " + described(node));
}

}  // namespace

std::string ConfigPlace::text() const {
  return line == 0 ? origin : origin + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const ConfigNode *ConfigNode::find(const std::string &key) const { return find_member(members, key); }

ConfigNode *ConfigNode::find(const std::string &key) { return const_cast<ConfigNode *>(find_member(members, key)); }

ConfigNode &ConfigNode::set(const std::string &key, ConfigNode value) {
  if (kind == Kind::null) kind = Kind::map;
  set_paths(value, joined(path, key));
  if (ConfigNode *const old = find(key)) return *old = std::move(value);
  const ConfigPlace place = value.at;
  members.push_back({key, place, std::move(value)});
  return members.back().value;
}

void ConfigNode::erase(const std::string &key) {
  members.erase(
      std::remove_if(members.begin(), members.end(), [&](const ConfigMember &member) { return member.key == key; }),
      members.end());
}

std::vector<std::string> ConfigNode::keys() const {
  std::vector<std::string> names;
  for (const ConfigMember &member : members)
    names.push_back(member.key);
  return names;
}

ConfigNode text_node(std::string text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.text = std::move(text);
  node.is_quoted = true;
  return node;
}

ConfigNode number_node(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  // The fewest digits that give the same number again.
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[40];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, number);
    if (std::strtod(shorter, nullptr) != number) continue;
    std::copy(std::begin(shorter), std::end(shorter), std::begin(text));
    break;
  }
  ConfigNode node = text_node(std::isfinite(number) ? text
                              : std::isnan(number)  ? ".nan"
                              : number < 0          ? "-.inf"
                                                    : ".inf");
  node.is_quoted = false;
  return node;
}

ConfigNode number_node(int64_t number) {
  ConfigNode node = text_node(std::to_string(number));
  node.is_quoted = false;
  return node;
}

ConfigNode list_node(std::vector<ConfigNode> items) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::list;
  node.items = std::move(items);
  return node;
}

ConfigNode map_node(const std::string &key, ConfigNode value) {
  ConfigNode node;
  node.set(key, std::move(value));
  return node;
}

void set_paths(ConfigNode &node, const std::string &path) {
  node.path = path;
  for (size_t i = 0; i < node.items.size(); ++i)
    set_paths(node.items[i], path + "[" + std::to_string(i) + "]");
  for (ConfigMember &member : node.members)
    set_paths(member.value, joined(path, member.key));
}

void set_default(ConfigNode &node, const ConfigPlace &at) {
  node.is_default = true;
  node.at = at;
  for (ConfigNode &item : node.items)
    set_default(item, at);
  for (ConfigMember &member : node.members) {
    member.at = at;
    set_default(member.value, at);
  }
}

void refuse(const ConfigNode &node, const std::string &what) {
  throw UsageError{located(node.at, node.path, what), false};
}

void refuse_key(const ConfigNode &map, const ConfigMember &member, const std::string &what) {
  throw UsageError{located(member.at, map.path, what), false};
}

void check_keys(const ConfigNode &map, const std::vector<std::string> &known) {
  if (!map.is_map()) refuse_type(map, "a map with some of " + listed(known));
  for (const ConfigMember &member : map.members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    refuse_key(map, member, "unknown key '" + member.key + "'" + nearest_or_all(member.key, known));
  }
}

std::string described(const ConfigNode &node) {
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return "nothing";
    case ConfigNode::Kind::list:
      return "a list";
    case ConfigNode::Kind::map:
      return "a map";
    default:
      return (node.is_quoted ? "the text '" : "'") + node.text + "'";
  }
}

bool is_integer(const ConfigNode &node) {
  int64_t value = 0;
  return is_plain(node) && parse_integer(node.text, value);
}

bool is_number(const ConfigNode &node) {
  double value = 0;
  return is_integer(node) || (is_plain(node) && parse_number(node.text, value));
}

bool is_truth(const ConfigNode &node) {
  bool value = false;
  return is_plain(node) && parse_truth(node.text, value);
}

int64_t integer_of(const ConfigNode &node) {
  int64_t value = 0;
  if (!is_plain(node) || !parse_integer(node.text, value)) refuse_type(node, "an integer");
  return value;
}

double number_of(const ConfigNode &node) {
  double value = 0;
  int64_t integer = 0;
  if (is_plain(node) && parse_number(node.text, value)) return value;
  if (!is_plain(node) || !parse_integer(node.text, integer)) refuse_type(node, "a number");
  return static_cast<double>(integer);
}

bool truth_of(const ConfigNode &node) {
  bool value = false;
  if (!is_plain(node) || !parse_truth(node.text, value)) refuse_type(node, "true or false");
  return value;
}

const std::string &text_of(const ConfigNode &node) {
  if (!node.is_scalar()) refuse_type(node, "a text");
  return node.text;
}

std::vector<int64_t> integers_of(const ConfigNode &node) {
  if (!node.is_list()) refuse_type(node, "a list of integers");
  std::vector<int64_t> values;
  for (const ConfigNode &item : node.items)
    values.push_back(integer_of(item));
  return values;
}

std::vector<double> numbers_of(const ConfigNode &node) {
  if (!node.is_list()) refuse_type(node, "a list of numbers");
  std::vector<double> values;
  for (const ConfigNode &item : node.items)
    values.push_back(number_of(item));
  return values;
}

std::vector<std::string> texts_of(const ConfigNode &node) {
  if (node.is_scalar()) return {node.text};
  if (!node.is_list()) refuse_type(node, "a text or a list of texts");
  std::vector<std::string> values;
  for (const ConfigNode &item : node.items)
    values.push_back(text_of(item));
  return values;
}

int64_t integer_in(const ConfigNode &map, const std::string &key, int64_t otherwise) {
  const ConfigNode *const node = map.find(key);
  return node == nullptr ? otherwise : integer_of(*node);
}

bool truth_in(const ConfigNode &map, const std::string &key, bool otherwise) {
  const ConfigNode *const node = map.find(key);
  return node == nullptr ? otherwise : truth_of(*node);
}

std::string text_in(const ConfigNode &map, const std::string &key, const std::string &otherwise) {
  const ConfigNode *const node = map.find(key);
  return node == nullptr ? otherwise : text_of(*node);
}

std::vector<std::string> texts_in(const ConfigNode &map, const std::string &key) {
  const ConfigNode *const node = map.find(key);
  return node == nullptr ? std::vector<std::string>() : texts_of(*node);
}

}  // namespace tutti::tool
