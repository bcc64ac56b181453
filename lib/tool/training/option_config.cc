// SPDX-License-Identifier: Apache-2.0
#include "tool/training/option_config.h"

#include <nlohmann/json.hpp>

#include "tool/config/config_text.h"
#include "tool/console/name_suggestions.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

std::vector<json> option_keys(const std::string &schema) {
  std::vector<json> keys;
  for (int64_t i = 0; i < tutti_options_count_keys(schema.c_str()); ++i)
    keys.push_back(json::parse(tutti_options_describe_key(schema.c_str(), i)));
  return keys;
}

std::string name_of(const json &key) { return key["key"].get<std::string>(); }

void set_option(Options &options, const json &key, const ConfigNode &value) {
  const std::string name = name_of(key), type = key["type"];
  if (type == "bool") {
    options.set(name.c_str(), truth_of(value));
  } else if (type == "i64") {
    options.set(name.c_str(), integer_of(value));
  } else if (type == "f64") {
    options.set(name.c_str(), number_of(value));
  } else {
    options.set(name.c_str(), value.is_null() ? "" : text_of(value));
  }
}

/// The library knows bounds and words.
void check_option(const std::string &schema, const json &key, const ConfigNode &value) {
  Options options(schema);
  set_option(options, key, value);
  try {
    options.check();
  } catch (const Error &error) {
    refuse(value, error.message());
  }
}

}  // namespace

void check_options(const ConfigNode &map, const std::vector<std::string> &schemas) {
  std::vector<std::string> known;
  for (const std::string &schema : schemas) {
    for (const json &key : option_keys(schema))
      known.push_back(name_of(key));
  }
  check_keys(map, known);
  for (const std::string &schema : schemas) {
    for (const json &key : option_keys(schema)) {
      if (const ConfigNode *const value = map.find(name_of(key))) check_option(schema, key, *value);
    }
  }
}

void complete_options(ConfigNode &map, const std::vector<std::string> &schemas, const std::vector<std::string> &open) {
  check_options(map, schemas);
  for (const std::string &schema : schemas) {
    for (const json &key : option_keys(schema)) {
      const std::string name = name_of(key);
      if (is_among(name, open)) continue;
      ConfigNode value = node_of(key["default"]);
      if (ConfigNode *const given = map.find(name)) {
        // As if it were not written: some options are refused without others, whatever they say.
        given->is_default = given->kind == value.kind && given->text == value.text;
        continue;
      }
      set_default(value, map.at);
      map.set(name, std::move(value));
    }
  }
}

Options options_of(const ConfigNode *map, const std::string &schema) {
  Options options(schema);
  for (const json &key : option_keys(schema)) {
    const ConfigNode *const value = map == nullptr ? nullptr : map->find(name_of(key));
    if (value != nullptr && !value->is_default) set_option(options, key, *value);
  }
  return options;
}

}  // namespace tutti::tool
