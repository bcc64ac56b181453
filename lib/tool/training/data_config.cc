// SPDX-License-Identifier: Apache-2.0
#include "tool/training/data_config.h"

#include <algorithm>

#include "tool/console/name_suggestions.h"
#include "tool/console/usage_error.h"
#include "tool/training/source_config.h"

namespace tutti::tool {

namespace {

constexpr int64_t kBatch = 64, kShuffleBuffer = 10'000;

/// Beside those of the source.
const std::vector<std::string> kPreparationKeys = {"skip",   "take",   "cache",          "shuffle",
                                                   "map",    "select", "label",          "weight",
                                                   "repeat", "batch",  "drop_remainder", "prefetch"};
/// What evaluation data do not have from the training data.
const std::vector<std::string> kOwnKeys = {"skip", "take", "cache", "shuffle", "repeat", "drop_remainder"};

std::vector<std::string> all_keys() {
  std::vector<std::string> keys = source_keys();
  keys.insert(keys.end(), kPreparationKeys.begin(), kPreparationKeys.end());
  return keys;
}

/// What is wrong with a map or a selection, told with its place in place of the option's name.
template <typename Call>
auto told_with_place(const ConfigNode &data, const Call &call) {
  try {
    return call();
  } catch (const UsageError &error) {
    for (const std::string key : {"map", "select"}) {
      const std::string option = "--" + key + ": ";
      const ConfigNode *const node = data.find(key);
      if (node != nullptr && error.text.compare(0, option.size(), option) == 0)
        refuse(*node, error.text.substr(option.size()));
    }
    throw;
  }
}

void complete_one(ConfigNode &data, bool is_training) {
  if (data.find("source") != nullptr) complete_source(data);
  const auto set = [&](const char *key, ConfigNode value) {
    if (data.find(key) != nullptr) return;
    set_default(value, data.at);
    data.set(key, std::move(value));
  };
  set("batch", number_node(kBatch));
  set("shuffle", number_node(is_training ? kShuffleBuffer : int64_t{0}));
  for (const char *const key : {"skip", "take", "repeat", "batch", "shuffle"}) {
    const ConfigNode *const value = data.find(key);
    const int64_t least = std::string(key) == "batch" ? 1 : 0;
    if (value != nullptr && integer_of(*value) < least)
      refuse(*value, "expected a number, at least " + std::to_string(least) + ", got " + described(*value));
  }
  for (const char *const key : {"cache", "drop_remainder", "prefetch"})
    truth_in(data, key, false);
  for (const char *const key : {"map", "select", "label", "weight"}) {
    const std::vector<std::string> texts = texts_in(data, key);
    if (std::string(key) != "map") continue;
    for (const std::string &text : texts)
      told_with_place(data, [&] { return parse_map(text); });
  }
}

double fraction_of(const ConfigNode &evaluate) {
  const ConfigNode *const fraction = evaluate.find("fraction");
  if (fraction == nullptr) return 0;
  const double value = number_of(*fraction);
  if (!(value > 0 && value < 1)) refuse(*fraction, "expected a number between 0 and 1, got " + described(*fraction));
  return value;
}

void complete_evaluation(const ConfigNode &train, ConfigNode &evaluate) {
  std::vector<std::string> keys = all_keys();
  keys.emplace_back("fraction");
  check_keys(evaluate, keys);
  const bool is_split = fraction_of(evaluate) > 0;
  for (const std::string &key : source_keys()) {
    if (is_split && evaluate.find(key) != nullptr)
      refuse(*evaluate.find(key), "a fraction of the training data has their source");
  }
  if (!is_split && evaluate.find("source") == nullptr)
    refuse(evaluate, "expected a source, or a fraction of the training data");
  for (const ConfigMember &member : train.members) {
    const bool is_of_source = is_among(member.key, source_keys()) && (is_split || member.key == "format");
    if (evaluate.find(member.key) == nullptr && !is_among(member.key, kOwnKeys) && !is_of_source) {
      ConfigNode value = member.value;
      value.is_default = true;
      evaluate.set(member.key, std::move(value));
    }
  }
  complete_one(evaluate, false);
  // The format of the training data is that of a file whose name tells none.
  if (!is_split && evaluate.find("format")->text == "text_lines" && evaluate.find("format")->is_default)
    evaluate.set("format", *train.find("format"));
}

Preparation preparation_of(const ConfigNode &data) {
  Preparation preparation;
  for (const std::string &text : texts_in(data, "map"))
    preparation.maps.push_back(parse_map(text));
  preparation.selected = texts_in(data, "select");
  preparation.shuffle_buffer = integer_in(data, "shuffle", 0);
  return preparation;
}

int64_t counted(const Dataset &dataset) {
  if (dataset.cardinality() >= 0) return dataset.cardinality();
  Iterator iterator(dataset);
  int64_t count = 0;
  while (iterator.next())
    ++count;
  return count;
}

/// The part of a source that one of the two reads.
Dataset part_of(const ConfigNode &config, const std::string &name, const Dataset &source) {
  const ConfigNode *const evaluate = config.find("data")->find("evaluate");
  const double fraction = evaluate == nullptr ? 0 : fraction_of(*evaluate);
  if (fraction == 0) return source;
  const int64_t count = counted(source);
  const auto last = static_cast<int64_t>(fraction * static_cast<double>(count));
  if (last == 0 || last == count) {
    refuse(*evaluate->find("fraction"), "leaves one of the two without an example: there are " + std::to_string(count));
  }
  auto [first, second] = source.split(count - last);
  return name == "train" ? first : second;
}

/// Labels and weights by name; all others are features.
Dataset with_roles(const ConfigNode &data, const Dataset &dataset, const Context &context) {
  const std::vector<std::string> labels = texts_in(data, "label"), weights = texts_in(data, "weight");
  if (labels.empty() && weights.empty()) return dataset;
  std::vector<std::string> names;
  for (int64_t i = 0; i < dataset.component_count(); ++i)
    names.push_back(dataset.component_name(i));
  for (const char *const key : {"label", "weight"}) {
    for (const std::string &name : texts_in(data, key)) {
      if (is_among(name, names)) continue;
      refuse(*data.find(key), "there is no component '" + name + "'" + nearest_or_all(name, names));
    }
  }
  Pipeline pipeline(context);
  pipeline.dataset(dataset);
  pipeline.transform("select", 1, [&](tutti_pipeline *transform) {
    for (int64_t i = 0; i < dataset.component_count(); ++i) {
      const std::string &name = names[static_cast<size_t>(i)];
      const int32_t role = dataset.component_role(i);
      const bool is_label = labels.empty() ? role == TUTTI_ROLE_LABEL : is_among(name, labels);
      const bool is_weight = weights.empty() ? role == TUTTI_ROLE_WEIGHT : is_among(name, weights);
      const char *const parameter = is_label ? "labels" : is_weight ? "weights" : "features";
      tutti_pipeline_set_string(transform, parameter, name.c_str());
    }
  });
  return pipeline.build();
}

}  // namespace

void complete_data(ConfigNode &config) {
  ConfigNode *const data = config.find("data");
  if (data == nullptr) refuse(config, "'data' is missing: {train: {source: FILES, ...}}");
  check_keys(*data, {"train", "evaluate"});
  ConfigNode *const train = data->find("train");
  if (train == nullptr) refuse(*data, "'train' is missing: {source: FILES, ...}");
  check_keys(*train, all_keys());
  if (train->find("source") == nullptr) refuse(*train, "'source' is missing: files, or a directory");
  complete_one(*train, true);
  if (ConfigNode *const evaluate = data->find("evaluate")) complete_evaluation(*train, *evaluate);
}

bool has_data(const ConfigNode &config, const std::string &name) { return config.find("data")->find(name) != nullptr; }

Dataset open_data(const ConfigNode &config, const std::string &name, const Context &context) {
  const ConfigNode &data = *config.find("data")->find(name);
  const bool has_source = data.find("source") != nullptr;
  const ConfigNode &with_source = has_source ? data : *config.find("data")->find("train");
  const SourceRequest source = typed_columns(source_of(with_source), with_source.find("types"), context);
  Dataset dataset = part_of(config, name, open_source(source, context));
  Pipeline first(context);
  first.dataset(dataset);
  if (const ConfigNode *const skip = data.find("skip")) first.skip(integer_of(*skip));
  if (const ConfigNode *const take = data.find("take")) first.take(integer_of(*take));
  if (truth_in(data, "cache", false)) first.cache();
  const Dataset prepared = told_with_place(data, [&] { return prepare(first.build(), preparation_of(data), context); });
  dataset = with_roles(data, prepared, context);
  Pipeline last(context);
  last.dataset(dataset);
  if (const ConfigNode *const repeat = data.find("repeat")) {
    integer_of(*repeat) == 0 ? last.repeat() : last.repeat(integer_of(*repeat));
  }
  tutti_pipeline_batch_attrs batch = {};
  batch.drop_remainder = truth_in(data, "drop_remainder", false) ? 1 : 0;
  tutti_pipeline_batch(last, integer_in(data, "batch", kBatch), &batch);
  if (truth_in(data, "prefetch", true)) last.prefetch();
  return last.build();
}

UnlabelledData unlabelled_data(const ConfigNode &config, const std::string &name) {
  const ConfigNode &data = *config.find("data")->find(name);
  std::vector<std::string> left_out = texts_in(data, "label");
  for (const std::string &weight : texts_in(data, "weight"))
    left_out.push_back(weight);
  const ConfigNode &with_source = data.find("source") != nullptr ? data : *config.find("data")->find("train");
  UnlabelledData result{source_of(with_source), preparation_of(data), std::nullopt};
  if (const ConfigNode *const types = with_source.find("types")) {
    result.types = *types;
    for (ConfigMember &member : result.types->members)
      member.value.is_default = true;  // other files need not have all columns
    for (const std::string &label : left_out)
      result.types->erase(label);
  }
  result.source.paths.clear();
  result.preparation.shuffle_buffer = 0;
  const auto is_left_out = [&](const std::string &text, char end) {
    std::string first = text.substr(0, text.find(end));
    first.erase(first.find_last_not_of(' ') + 1);
    return is_among(first, left_out);
  };
  auto &settings = result.source.settings;
  settings.erase(std::remove_if(settings.begin(), settings.end(),
                                [&](const auto &setting) {
                                  return (setting.first == "columns" && is_left_out(setting.second, ':')) ||
                                         setting.first == "labels" || setting.first == "weights";
                                }),
                 settings.end());
  auto &maps = result.preparation.maps;
  maps.erase(
      std::remove_if(maps.begin(), maps.end(), [&](const MapStatement &map) { return is_among(map.target, left_out); }),
      maps.end());
  auto &selected = result.preparation.selected;
  selected.erase(std::remove_if(selected.begin(), selected.end(),
                                [&](const std::string &selection) { return is_left_out(selection, '='); }),
                 selected.end());
  return result;
}

void replace_source(ConfigNode &config, const std::string &name, const std::vector<std::string> &paths,
                    const std::string &option) {
  std::vector<ConfigNode> items;
  for (const std::string &path : paths)
    items.push_back(text_node(path));
  ConfigNode source = list_node(std::move(items));
  set_default(source, {option});
  source.is_default = false;
  ConfigNode *const data = config.find("data");
  if (data == nullptr) return;
  if (data->find(name) == nullptr) {
    ConfigNode empty;
    empty.kind = ConfigNode::Kind::map;
    empty.at = {option};
    data->set(name, std::move(empty));
  }
  ConfigNode &replaced = *data->find(name);
  if (!replaced.is_map()) refuse(replaced, "expected a map, got " + described(replaced));
  for (const char *const key : {"fraction", "format", "skip", "take"})
    replaced.erase(key);
  replaced.set("source", std::move(source));
}

}  // namespace tutti::tool
