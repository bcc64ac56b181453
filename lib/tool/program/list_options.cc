// SPDX-License-Identifier: Apache-2.0
//
// The options that programs set, by schema: what each means, its type, its bounds and its default.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <tutti/tutti.hpp>

#include "tool/command/command_help.h"
#include "tool/command/command_list.h"
#include "tool/console/name_suggestions.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

struct Schema {
  const char *name, *taken_by;
};
/// In the order in which a program meets them.
constexpr Schema kSchemas[] = {
    {"context", "tutti_context_create"},
    {"cluster", "tutti_strategy_create_multi_worker and tutti_strategy_create_multi_worker_from_environment"},
    {"run", "tutti_estimator_create"},
    {"train", "tutti_estimator_train, tutti_estimator_train_and_evaluate and tutti_session_open"},
    {"predictor", "tutti_predictor_open, tutti_predictor_from_estimator and the like"},
};

std::vector<Schema> chosen(const std::vector<std::string> &names) {
  std::vector<std::string> known;
  for (const Schema &schema : kSchemas)
    known.emplace_back(schema.name);
  std::vector<Schema> schemas;
  for (const std::string &name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      const std::string meant = did_you_mean(name, known);
      throw UsageError{"unknown schema '" + name + "'" + (meant.empty() ? ", there are " + listed(known) : meant)};
    }
    schemas.push_back(kSchemas[found - known.begin()]);
  }
  return names.empty() ? std::vector<Schema>(std::begin(kSchemas), std::end(kSchemas)) : schemas;
}

json schema_keys(const Schema &schema) {
  json keys = json::array();
  for (int64_t i = 0; i < tutti_options_count_keys(schema.name); ++i)
    keys.push_back(json::parse(tutti_options_describe_key(schema.name, i)));
  return keys;
}

std::string shown(const json &value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// "f64, at least 0, default 0".
std::string form_of(const json &key) {
  std::string text = key["type"].get<std::string>();
  if (key.contains("values")) text += ": " + alternatives(key["values"].get<std::vector<std::string>>());
  const bool has_least = key.contains("minimum"), has_most = key.contains("maximum");
  if (has_least && has_most) text += ", " + shown(key["minimum"]) + " to " + shown(key["maximum"]);
  if (has_least && !has_most) text += ", at least " + shown(key["minimum"]);
  if (has_most && !has_least) text += ", at most " + shown(key["maximum"]);
  const std::string value = shown(key["default"]);
  return text + (value.empty() ? "" : ", default " + value);
}

void print_schema(const Schema &schema) {
  std::printf("Options of schema \"%s\", for %s:\n", schema.name, schema.taken_by);
  for (const json &key : schema_keys(schema)) {
    const std::string text = form_of(key) + ". " + key["documentation"].get<std::string>();
    std::fputs(help_entry(key["key"].get<std::string>(), text).c_str(), stdout);
  }
}

int list_options(const std::vector<std::string> &names, bool as_json) {
  const std::vector<Schema> schemas = chosen(names);
  json all = json::array();
  for (size_t i = 0; i < schemas.size(); ++i) {
    if (as_json) {
      all.push_back({{"schema", schemas[i].name}, {"keys", schema_keys(schemas[i])}});
    } else {
      if (i > 0) std::printf("\n");
      print_schema(schemas[i]);
    }
  }
  if (as_json) std::printf("%s\n", all.dump(1).c_str());
  return EXIT_SUCCESS;
}

}  // namespace

Command options_command() {
  const auto as_json = std::make_shared<bool>(false);
  Command command("options", "lists the options that programs set, with their defaults");
  command.set_details(
      "Programs make options of a schema (tutti_options_create), set keys, and hand them to a function. In other "
      "languages the names are the same, written as the language does.");
  command.add_argument({"[SCHEMA...]", "context, cluster, run, train or predictor; all of them if none is given"});
  command.add_flag(*as_json, {"--json", "", "print the same as JSON"});
  command.set_example("tutti options run");
  command.set_run([as_json](const std::vector<std::string> &words) { return list_options(words, *as_json); });
  return command;
}

}  // namespace tutti::tool
