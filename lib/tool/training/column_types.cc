// SPDX-License-Identifier: Apache-2.0
#include "tool/training/column_types.h"

#include <charconv>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <tutti/tutti.hpp>

#include "tool/console/name_suggestions.h"
#include "tool/console/tensor_values.h"
#include "tool/training/source_config.h"

namespace tutti::tool {

namespace {

constexpr int kFirstRows = 1000;

struct Column {
  std::string name;
  bool is_number = true, is_whole = true;
};

template <typename Number>
bool reads_as(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void look_at_rows(const Dataset &texts, std::vector<Column> &columns) {
  Iterator iterator(texts);
  for (int row = 0; row < kFirstRows && iterator.next(); ++row) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const Tensor value = iterator.component(static_cast<int64_t>(i));
      const std::string_view text = is_bytes(value) ? bytes_at(value, 0) : std::string_view();
      columns[i].is_number = columns[i].is_number && reads_as<double>(text);
      columns[i].is_whole = columns[i].is_whole && reads_as<int64_t>(text);
    }
  }
}

/// By what the first rows have, up to one that cannot be read; none if the source cannot be opened. The training meets
/// the same error, and tells it with its place.
std::vector<Column> columns_in(const SourceRequest &source) {
  std::vector<Column> columns;
  try {
    const Dataset texts = open_source(source, Context());
    for (int64_t i = 0; i < texts.component_count(); ++i)
      columns.push_back({texts.component_name(i)});
    look_at_rows(texts, columns);
  } catch (const std::exception &) {
    return columns;
  }
  return columns;
}

}  // namespace

void find_column_types(ConfigNode &data) {
  const ConfigNode *const given = data.find("types"), *const settings = data.find("settings");
  const bool has_columns = settings != nullptr && settings->find("columns") != nullptr;
  if (text_in(data, "format") != "csv" || has_columns || (given != nullptr && !given->is_map())) return;
  const std::vector<Column> columns = columns_in(source_of(data));
  const std::vector<std::string> labels = texts_in(data, "label");
  ConfigNode types = given != nullptr && !given->is_default ? *given : ConfigNode();
  for (const Column &column : columns) {
    std::string type = given != nullptr ? type_of_column(*given, column.name) : "";
    const bool is_given = !type.empty();
    if (!is_given)
      type = !column.is_number ? "bytes" : column.is_whole && is_among(column.name, labels) ? "i64" : "f32";
    if (is_given && !given->is_default) continue;
    ConfigNode node = text_node(type);
    set_default(node, data.at);
    types.set(column.name, std::move(node));
  }
  if (types.is_null()) return;
  types.is_default = given == nullptr || given->is_default;
  data.set("types", std::move(types));
}

}  // namespace tutti::tool
