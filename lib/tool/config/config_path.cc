// SPDX-License-Identifier: Apache-2.0
#include "tool/config/config_path.h"

#include <algorithm>

#include "tool/config/yaml_text.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

/// The keys of "model[2].dense": "model", "2", "dense".
std::vector<std::string> steps_of(const std::string &path) {
  std::vector<std::string> steps(1);
  for (const char c : path) {
    if (c == '.' || c == '[') {
      steps.emplace_back();
    } else if (c != ']') {
      steps.back() += c;
    }
  }
  return steps;
}

ConfigNode &item_of(ConfigNode &list, const std::string &step, const ConfigPlace &by) {
  const bool is_index = !step.empty() && step.size() < 10 && step.find_first_not_of("0123456789") == std::string::npos;
  const size_t count = list.items.size();
  if (!is_index || std::stoul(step) >= count) {
    throw UsageError{by.text() + ": '" + step + "' is no place in the list " + list.path + ", which has " +
                         std::to_string(count) + " items, the first being [0]",
                     false};
  }
  return list.items[std::stoul(step)];
}

ConfigNode &member_of(ConfigNode &map, const std::string &step, const ConfigPlace &by) {
  if (!map.is_map()) {
    ConfigNode made;
    made.kind = ConfigNode::Kind::map;
    made.at = by;
    made.path = map.path;
    if (map.is_scalar() && map.text == step) made.set(step, ConfigNode());
    map = std::move(made);
  }
  if (ConfigNode *const member = map.find(step)) return *member;
  ConfigNode empty;
  empty.at = by;
  return map.set(step, std::move(empty));
}

}  // namespace

void set_path(ConfigNode &config, const std::string &path, ConfigNode value) {
  const ConfigPlace by = value.at;
  ConfigNode *node = &config;
  for (const std::string &step : steps_of(path)) {
    if (step.empty()) throw UsageError{by.text() + ": '" + path + "' is no path of a configuration", false};
    node = node->is_list() ? &item_of(*node, step, by) : &member_of(*node, step, by);
  }
  set_paths(value, node->path);
  *node = std::move(value);
}

void set_by_option(ConfigNode &config, const std::string &option, const std::string &setting) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) throw UsageError{option + " takes PATH=VALUE, got '" + setting + "'"};
  const std::string origin = option + " " + setting.substr(0, equals);
  set_path(config, setting.substr(0, equals), parse_yaml(setting.substr(equals + 1), origin, false));
}

}  // namespace tutti::tool
