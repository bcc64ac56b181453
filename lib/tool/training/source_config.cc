// SPDX-License-Identifier: Apache-2.0
#include "tool/training/source_config.h"

#include <fnmatch.h>

#include <filesystem>

#include "tool/console/name_suggestions.h"
#include "tool/dataset/op_signature.h"
#include "tool/training/column_types.h"

namespace tutti::tool {

namespace {

const std::vector<std::string> kFormats = {"tfrecord",      "csv", "npy",          "npz",        "tar",
                                           "element_files", "idx", "image_folder", "text_lines", "fixed_records"};

bool is_url(const std::string &path) { return path.find("://") != std::string::npos; }

/// "csv:train.csv" names a format. What looks like a name of one, and is none, is not taken for a part of a path.
std::string take_format(const ConfigNode &source, std::string &path) {
  const size_t colon = path.find(':');
  if (colon == std::string::npos || is_url(path)) return "";
  const std::string before = path.substr(0, colon);
  if (!is_among(before, kFormats)) {
    const std::string meant = did_you_mean(before, kFormats);
    if (!meant.empty() && !std::filesystem::exists(path)) refuse(source, "unknown format '" + before + "'" + meant);
    return "";
  }
  path.erase(0, colon + 1);
  return before;
}

/// Paths are found from anywhere, and their format is told.
void complete_paths(ConfigNode &data) {
  const ConfigNode source = *data.find("source");
  std::vector<std::string> paths = texts_of(source);
  if (paths.empty()) refuse(source, "expected files, got an empty list");
  std::string format;
  std::vector<ConfigNode> items;
  for (std::string &path : paths) {
    const std::string named = take_format(source, path);
    if (!named.empty()) format = named;
    if (path.empty()) refuse(source, "expected the name of a file");
    if (!is_url(path)) path = std::filesystem::absolute(path).lexically_normal().string();
    items.push_back(text_node(path));
  }
  ConfigNode list = items.size() == 1 ? items.front() : list_node(std::move(items));
  set_default(list, source.at);
  list.is_default = false;
  data.set("source", std::move(list));
  if (const ConfigNode *const given = data.find("format")) {
    if (!is_among(text_of(*given), kFormats))
      refuse(*given, "unknown format '" + given->text + "'" + nearest_or_all(given->text, kFormats));
    return;
  }
  const bool is_told = !format.empty();
  if (!is_told) {
    SourceRequest request;
    request.paths = paths;
    format = format_of(request);
  }
  ConfigNode node = text_node(format);
  set_default(node, source.at);
  node.is_default = !is_told;
  data.set("format", std::move(node));
}

/// Of one parameter: its values as a command line would give them. A map, or a list of maps, is "KEY: VALUE" each.
std::vector<std::string> setting_values(const ConfigNode &node) {
  if (node.is_scalar()) return {node.is_quoted && !node.text.empty() ? "\"" + node.text + "\"" : node.text};
  std::vector<std::string> values;
  for (const ConfigMember &member : node.members)
    values.push_back(member.key + ": " + text_of(member.value));
  for (const ConfigNode &item : node.items) {
    for (const std::string &value : setting_values(item))
      values.push_back(value);
  }
  return values;
}

bool is_pattern(const std::string &name) { return name.find_first_of("*?[") != std::string::npos; }

void check_type(const ConfigNode &type) {
  if (find_dtype(text_of(type)) == 0) refuse(type, "expected a type such as f32 or i64, got " + described(type));
}

void check_types(ConfigNode &data) {
  const ConfigNode *const types = data.find("types");
  if (types == nullptr) return;
  // Those of the training data mean nothing to files of another format.
  if (types->is_default && text_in(data, "format") != "csv") return data.erase("types");
  if (!types->is_map()) check_type(*types);
  for (const ConfigMember &member : types->members)
    check_type(member.value);
  const ConfigNode *const settings = data.find("settings");
  if (settings != nullptr && settings->find("columns") != nullptr)
    refuse(*types, "settings.columns says the types of columns, too");
  if (text_in(data, "format") != "csv")
    refuse(*types, "types are those of the columns of CSV files, and this source is " + text_in(data, "format"));
}

}  // namespace

std::vector<std::string> source_keys() { return {"source", "format", "types", "settings", "example_features"}; }

void complete_source(ConfigNode &data) {
  const ConfigNode *const settings = data.find("settings");
  if (settings != nullptr && !settings->is_map())
    refuse(*settings, "expected a map of parameters of the source, got " + described(*settings));
  texts_in(data, "example_features");
  complete_paths(data);
  check_types(data);
  find_column_types(data);
}

SourceRequest source_of(const ConfigNode &data) {
  SourceRequest request;
  request.paths = texts_in(data, "source");
  request.format = text_in(data, "format");
  request.features = texts_in(data, "example_features");
  if (const ConfigNode *const settings = data.find("settings")) {
    for (const ConfigMember &member : settings->members) {
      for (const std::string &value : setting_values(member.value))
        request.settings.emplace_back(member.key, value);
    }
  }
  return request;
}

std::string type_of_column(const ConfigNode &types, const std::string &column) {
  if (types.is_scalar()) return types.text;
  if (const ConfigNode *const type = types.find(column)) return type->text;
  for (const ConfigMember &member : types.members) {
    if (is_pattern(member.key) && fnmatch(member.key.c_str(), column.c_str(), 0) == 0) return member.value.text;
  }
  return "";
}

SourceRequest typed_columns(SourceRequest request, const ConfigNode *types, const Context &context) {
  if (types == nullptr) return request;
  const Dataset texts = open_source(request, context);
  std::vector<std::string> columns;
  for (int64_t i = 0; i < texts.component_count(); ++i)
    columns.push_back(texts.component_name(i));
  for (const ConfigMember &member : types->members) {
    if (member.value.is_default || is_pattern(member.key) || is_among(member.key, columns)) continue;
    refuse_key(*types, member, "there is no column '" + member.key + "'" + nearest_or_all(member.key, columns));
  }
  for (const std::string &column : columns) {
    const std::string type = type_of_column(*types, column);
    request.settings.emplace_back("columns", column + ": " + (type.empty() ? "bytes" : type));
  }
  return request;
}

}  // namespace tutti::tool
