// SPDX-License-Identifier: Apache-2.0
#include "tool/training/result_table.h"

#include <cmath>

#include "tool/console/table.h"
#include "tool/console/tensor_values.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

json nested(const std::vector<double> &numbers, const Tensor &tensor, int64_t axis, size_t &next) {
  if (axis == tensor.rank()) return number_json(numbers[next++]);
  json list = json::array();
  for (int64_t i = 0; i < tensor.dim(axis); ++i)
    list.push_back(nested(numbers, tensor, axis + 1, next));
  return list;
}

/// "[10, 10]" of a list of lists.
std::string lengths_of(const json &list) {
  std::string text;
  for (const json *inner = &list; inner->is_array(); inner = &inner->front()) {
    text += (text.empty() ? "" : ", ") + std::to_string(inner->size());
    if (inner->empty()) break;
  }
  return "[" + text + "]";
}

std::string value_shown(const json &value) {
  if (value.is_null()) return "nan";
  if (value.is_array()) return lengths_of(value);
  if (value.is_number_integer()) return with_commas(value.get<int64_t>());
  if (value.is_number()) return readable(value.get<double>());
  return value.dump();
}

void add_row(Table &table, const std::string &name, const json &training, const json &evaluation) {
  const auto cell = [&](const json &values) {
    if (values.is_null()) return std::string();
    const json &metrics = values["metrics"];
    if (values.contains(name)) return value_shown(values[name]);
    return metrics.contains(name) ? value_shown(metrics[name]) : std::string();
  };
  table.add({name, cell(training), cell(evaluation)});
}

}  // namespace

std::string reason_name(int32_t reason) {
  switch (reason) {
    case TUTTI_REASON_MAX_STEPS:
      return "max_steps";
    case TUTTI_REASON_EPOCHS:
      return "epochs";
    case TUTTI_REASON_END_OF_INPUT:
      return "end_of_input";
    case TUTTI_REASON_STOPPED:
      return "stopped";
    case TUTTI_REASON_MAX_SECONDS:
      return "max_seconds";
    default:
      return "";
  }
}

std::vector<std::string> metric_names(const ConfigNode &config) {
  std::vector<std::string> names;
  for (const ConfigNode &metric : config.find("metrics")->items)
    names.push_back(text_in(metric.members.front().value, "name"));
  return names;
}

nlohmann::ordered_json number_json(double number) { return std::isfinite(number) ? json(number) : json(); }

nlohmann::ordered_json tensor_json(const Tensor &tensor) {
  std::vector<double> numbers;
  read_numbers(tensor, numbers);
  size_t next = 0;
  return nested(numbers, tensor, 0, next);
}

nlohmann::ordered_json result_json(const Result &result) {
  json metrics = json::object();
  for (const std::string &name : result.metric_names())
    metrics[name] = tensor_json(result.read_metric(name.c_str()));
  return {{"step", result.step()},
          {"examples", result.examples()},
          {"seconds", result.seconds()},
          {"examples_per_second", number_json(static_cast<double>(result.examples()) / result.seconds())},
          {"loss", number_json(result.loss())},
          {"metrics", std::move(metrics)}};
}

void print_results(const nlohmann::ordered_json &training, const nlohmann::ordered_json &evaluation) {
  Table table({"", training.is_null() ? "" : ">training", evaluation.is_null() ? "" : ">evaluation"});
  const json &first = training.is_null() ? evaluation : training;
  for (const auto &entry : first.items()) {
    if (entry.key() != "metrics") add_row(table, entry.key(), training, evaluation);
  }
  std::vector<std::string> names;
  for (const json *const values : {&training, &evaluation}) {
    if (values->is_null()) continue;
    for (const auto &metric : (*values)["metrics"].items()) {
      if (std::find(names.begin(), names.end(), metric.key()) == names.end()) names.push_back(metric.key());
    }
  }
  for (const std::string &name : names)
    add_row(table, name, training, evaluation);
  table.print();
}

}  // namespace tutti::tool
