// SPDX-License-Identifier: Apache-2.0
#include "tool/report/comparison.h"

#include <algorithm>
#include <cmath>

#include "tool/console/table.h"
#include "tool/report/html_text.h"
#include "tool/report/number_text.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

std::string tile(const std::string &title, const std::string &text, double value) {
  return "<div class=\"tile\"><span>" + escaped(title) + "</span><strong data-value=\"" + json(value).dump() + "\">" +
         escaped(text) + "</strong></div>\n";
}

std::string tile(const std::string &title, const json &value) {
  return value.is_number() ? tile(title, value_text(value.get<double>()), value.get<double>()) : "";
}

double parameters_of(const json &training) {
  double parameters = 0;
  for (const json &variable : value_at(training, {"variables"}))
    parameters += number_at(variable, {"parameters"});
  return parameters;
}

std::string setting_text(const json &value) {
  return value.is_string()         ? value.get<std::string>()
         : value.is_number_float() ? value_text(value.get<double>())
                                   : value.dump();
}

/// Keys of all runs' objects, each once, in the order that they come.
std::vector<std::string> keys_of(const std::vector<const json *> &objects) {
  std::vector<std::string> keys;
  for (const json *const object : objects) {
    if (!object->is_object()) continue;
    for (const auto &[key, value] : object->items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

std::string value_cell(const json &value) {
  if (value.is_null()) return empty_cell();
  if (value.is_number()) return number_cell(value.get<double>());
  return "<td class=\"n\">" + escaped(setting_text(value)) + "</td>";
}

std::vector<std::string> columns_of(const std::string &first, const std::vector<RunRecord> &runs,
                                    const std::vector<std::string> &each) {
  std::vector<std::string> columns = {first};
  for (const RunRecord &run : runs)
    for (const std::string &title : each)
      columns.push_back(">" + (runs.size() == 1 ? title : title.empty() ? run.name : run.name + ": " + title));
  return columns;
}

/// A row for each key of a part of the newest trainings.
void add_part(const std::vector<RunRecord> &runs, const char *part, HtmlTable &table) {
  std::vector<const json *> objects;
  for (const RunRecord &run : runs)
    objects.push_back(&value_at(run.last_training(), {part}));
  for (const std::string &key : keys_of(objects)) {
    std::vector<std::string> cells = {cell(key)};
    bool differs = false;
    for (const json *const object : objects) {
      const json &value = value_at(*object, {key.c_str()});
      differs = differs || value != value_at(*objects.front(), {key.c_str()});
      if (value.is_array()) return;
      cells.push_back(value_cell(value));
    }
    table.add(cells, differs ? "differs" : "");
  }
}

}  // namespace

std::string tiles_html(const RunRecord &run) {
  const json &training = run.last_training(), &evaluation = run.last_evaluation();
  std::string tiles = tile("Steps", training.is_null() ? value_at(evaluation, {"step"}) : value_at(training, {"step"}));
  tiles += tile("Training loss", value_at(training, {"loss"}));
  tiles += tile("Evaluation loss", value_at(evaluation, {"loss"}));
  size_t metrics = 0;
  const json &values = value_at(evaluation, {"metrics"});
  for (auto value = values.begin(); value != values.end() && metrics < 2; ++value, ++metrics)
    tiles += tile("Evaluation " + value.key(), *value);
  const double seconds = number_at(training, {"seconds"}), examples = number_at(training, {"examples"});
  if (seconds > 0) tiles += tile("Examples per second", value_text(std::round(examples / seconds)), examples / seconds);
  if (seconds > 0) tiles += tile("Time of training", seconds_text(seconds), seconds);
  if (const double parameters = parameters_of(training); parameters > 0) tiles += tile("Parameters", parameters);
  return tiles.empty() ? tiles : "<div class=\"tiles\">\n" + tiles + "</div>\n";
}

std::string results_html(const std::vector<RunRecord> &runs) {
  HtmlTable table("Results of the newest training and evaluation",
                  columns_of("Value", runs, {"Training", "Evaluation"}));
  std::vector<const json *> sets;
  for (const RunRecord &run : runs) {
    sets.push_back(&value_at(run.last_training(), {"metrics"}));
    sets.push_back(&value_at(run.last_evaluation(), {"metrics"}));
  }
  const auto add = [&](const std::string &title, auto value_of) {
    std::vector<std::string> cells = {cell(title)};
    bool any = false;
    for (const RunRecord &run : runs) {
      for (const json *const line : {&run.last_training(), &run.last_evaluation()}) {
        const json &value = value_of(*line);
        any = any || !value.is_null();
        cells.push_back(value_cell(value));
      }
    }
    if (any) table.add(cells);
  };
  add("step", [](const json &line) -> const json & { return value_at(line, {"step"}); });
  add("examples", [](const json &line) -> const json & { return value_at(line, {"examples"}); });
  add("seconds", [](const json &line) -> const json & { return value_at(line, {"seconds"}); });
  add("loss", [](const json &line) -> const json & { return value_at(line, {"loss"}); });
  for (const std::string &name : keys_of(sets))
    add(name, [&](const json &line) -> const json & { return value_at(line, {"metrics", name.c_str()}); });
  return table.text();
}

std::string options_html(const std::vector<RunRecord> &runs) {
  std::vector<const json *> objects;
  for (const RunRecord &run : runs)
    objects.push_back(&value_at(run.last_training(), {"options"}));
  HtmlTable set("Options that were set", columns_of("Option", runs, {"Value", "Origin"})),
      defaults("Options at their defaults", columns_of("Option", runs, {"Value", "Origin"}));
  for (const std::string &key : keys_of(objects)) {
    std::vector<std::string> cells = {cell(key)};
    bool differs = false, is_set = false;
    for (const json *const object : objects) {
      const json &value = value_at(*object, {key.c_str(), "value"});
      const std::string origin = text_at(*object, {key.c_str(), "origin"});
      differs = differs || value != value_at(*objects.front(), {key.c_str(), "value"});
      is_set = is_set || (!origin.empty() && origin != "default");
      cells.push_back(value_cell(value));
      cells.push_back("<td class=\"n origin\">" + escaped(origin) + "</td>");
    }
    (is_set || differs ? set : defaults).add(cells, differs ? "differs" : "");
  }
  std::string html = set.text();
  if (html.empty() && !defaults.is_empty()) html = paragraph("All options are at their defaults.");
  return html + details("Options at their defaults", defaults.text());
}

std::string environment_html(const std::vector<RunRecord> &runs) {
  HtmlTable table("Model, batches and environment", columns_of("What", runs, {runs.size() == 1 ? "Value" : ""}));
  add_part(runs, "settings", table);
  add_part(runs, "environment", table);
  std::string html = table.text();
  for (const RunRecord &run : runs) {
    HtmlTable devices("Devices", {"Device", "Description", ">Memory"});
    for (const json &device : value_at(run.last_training(), {"environment", "devices"})) {
      const double bytes = number_at(device, {"memory_bytes"});
      devices.add({cell(text_at(device, {"device"})), cell(text_at(device, {"description"})),
                   bytes > 0 ? number_cell(bytes, readable_bytes(bytes)) : empty_cell()});
    }
    html += (runs.size() > 1 && !devices.is_empty() ? "<h3>" + escaped(run.name) + "</h3>\n" : "") + devices.text();
  }
  return html;
}

}  // namespace tutti::tool
