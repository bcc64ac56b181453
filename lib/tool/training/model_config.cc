// SPDX-License-Identifier: Apache-2.0
#include "tool/training/model_config.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "tool/console/name_suggestions.h"
#include "tool/training/entry_arguments.h"
#include "tool/training/entry_writer.h"
#include "tool/training/model_zoo.h"
#include "tool/training/saved_model_entry.h"

namespace tutti::tool {

namespace {

const std::vector<std::string> kBesideLayers = {"as"};

/// What the node stands for becomes a list of what it was.
void make_list(ConfigNode &node) {
  if (node.is_list()) return;
  const ConfigPlace at = node.at;
  const std::string path = node.path;
  std::vector<ConfigNode> items;
  if (!node.is_null()) items.push_back(std::move(node));
  node = list_node(std::move(items));
  node.at = at;
  set_paths(node, path);
}

ConfigNode &required(ConfigNode &config, const char *key, const char *what) {
  ConfigNode *const node = config.find(key);
  if (node == nullptr || node->is_null()) refuse(config, "'" + std::string(key) + "' is missing: " + what);
  return *node;
}

void complete_layers(ConfigNode &layers) {
  if (is_saved_model(layers)) make_list(layers);
  if (layers.is_map() || layers.is_scalar()) layers = zoo_layers(layers);
  if (!layers.is_list()) refuse(layers, "expected a list of layers or a model of the zoo, got " + described(layers));
  if (layers.items.empty()) refuse(layers, "expected at least one layer");
  for (ConfigNode &layer : layers.items) {
    if (is_saved_model(layer)) {
      complete_saved_model(layer);
    } else {
      complete_entry(layer, layer_place(), kBesideLayers);
    }
    texts_in(layer, "as");
  }
}

void complete_outputs(ConfigNode &outputs) {
  if (!outputs.is_map()) refuse(outputs, "expected a map of names to values, got " + described(outputs));
  for (ConfigMember &member : outputs.members) {
    const EntryPlace place = layer_place();
    if (member.value.is_map())
      complete_entry(member.value, {place.kinds, place.what, EntryPlace::Given::nothing, place.nested});
    if (!member.value.is_map()) text_of(member.value);
  }
}

bool matches(const std::string &name, const std::string &pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// Writes one model into one graph.
class ModelWriter {
 public:
  ModelWriter(const Graph &graph, int32_t mode, const ConfigNode &config, const ModelComponents &components)
      : graph_(graph),
        is_predicting_(mode == TUTTI_MODE_PREDICT),
        config_(config),
        components_(components),
        writer_(graph, [this](const ConfigNode &name) { return named(name); }) {}

  void write() {
    write_layers();
    write_outputs();
    if (is_predicting_) return;
    write_losses();
    for (const ConfigNode &metric : config_.find("metrics")->items)
      writer_.write(metric, metric_place(), [&](const OpInput &input, size_t index) {
        return example_input(input, index, entry_member(metric).value);
      });
    write_optimizer();
  }

 private:
  static tutti_value nothing(const OpInput &, size_t) { return tutti_no_value(); }

  void write_layers() {
    for (const ConfigNode &layer : config_.find("model")->items) {
      const std::vector<std::string> names = texts_in(layer, "as");
      const std::vector<tutti_value> outputs = write_layer(layer, std::max<size_t>(1, names.size()));
      last_ = outputs.front();
      has_last_ = true;
      for (size_t i = 0; i < names.size(); ++i)
        give_name(*layer.find("as"), names[i], outputs[i]);
    }
  }
  std::vector<tutti_value> write_layer(const ConfigNode &layer, size_t outputs) const {
    const ConfigNode &arguments = entry_member(layer, kBesideLayers).value;
    if (is_saved_model(layer)) {
      std::vector<tutti_value> values(outputs, tutti_no_value());
      values[0] = write_saved_model(graph_, layer, has_last_ ? last_ : tutti_no_value());
      writer_.check(arguments);
      return values;
    }
    const auto unwritten = [&](const OpInput &input, size_t index) {
      return index > 0 || input.is_optional ? tutti_no_value() : previous(arguments);
    };
    return writer_.write(layer, layer_place(), unwritten, kBesideLayers, outputs);
  }
  void give_name(const ConfigNode &node, const std::string &name, tutti_value value) {
    if (value.id <= 0) refuse(node, "there is no result for the name '" + name + "'");
    if (!results_.emplace(name, value).second)
      refuse(node, "the name '" + name + "' is given to another result before");
  }

  /// The result before, or the only feature.
  tutti_value previous(const ConfigNode &layer) const {
    if (has_last_) return last_;
    const std::vector<std::string> &features = components_.features;
    if (features.size() == 1) return graph_.feature(features[0].c_str());
    const std::string input = entry_input(layer);
    refuse(layer, features.empty()
                      ? "the data have no feature"
                      : "there are " + std::to_string(features.size()) + " features (" + listed(features) +
                            "): say which one it takes, as in {" + input + ": " + features[0] +
                            "}, or join them first, as by - stack: {inputs: [" + listed(features) + "], axis: 1}");
  }
  /// The name of the layer's first input.
  static std::string entry_input(const ConfigNode &layer) {
    const std::string name = layer.path.substr(layer.path.rfind('.') + 1);
    const RegistryEntry *const entry = find_entry(layer_place().kinds, name);
    return entry == nullptr || entry->signature.inputs.empty() ? "x" : entry->signature.inputs[0].name;
  }

  std::vector<tutti_value> named(const ConfigNode &node) const {
    std::vector<tutti_value> values;
    std::vector<std::string> known;
    const bool is_pattern = text_of(node).find_first_of("*?[") != std::string::npos;
    const auto take = [&](const std::string &name, auto &&value) {
      known.push_back(name);
      if (name == node.text) values.push_back(value());
    };
    for (const auto &result : results_)
      take(result.first, [&] { return result.second; });
    for (const std::string &name : components_.features) {
      take(name, [&] { return graph_.feature(name.c_str()); });
      // A pattern is one of features: labels are nothing to predict from.
      if (is_pattern && name != node.text && matches(name, node.text)) values.push_back(graph_.feature(name.c_str()));
    }
    for (const std::string &name : components_.labels) {
      if (!is_predicting_) take(name, [&] { return graph_.label(name.c_str()); });
    }
    for (const std::string &name : components_.weights) {
      if (!is_predicting_) take(name, [&] { return tutti_graph_get_sample_weight(graph_, name.c_str()); });
    }
    if (values.empty()) {
      refuse(node, "there is no value '" + node.text + "'" + nearest_or_all(node.text, known));
    }
    return values;
  }

  /// The inputs of a loss or metric that are not written: the model's result, the label and the weights.
  tutti_value example_input(const OpInput &input, size_t index, const ConfigNode &arguments) const {
    const std::vector<std::string> &labels = components_.labels, &weights = components_.weights;
    if (is_label_input(input)) {
      if (labels.size() == 1) return graph_.label(labels[0].c_str());
      refuse(arguments, labels.empty() ? "the data have no label: name it, as in data.train.label"
                                       : "there are " + std::to_string(labels.size()) + " labels (" + listed(labels) +
                                             "): say which one, as in {" + input.name + ": " + labels[0] + "}");
    }
    if (input.name == "weights" && weights.size() == 1)
      return tutti_graph_get_sample_weight(graph_, weights[0].c_str());
    return index == 0 ? last_ : tutti_no_value();
  }

  void write_losses() {
    tutti_value sum = tutti_no_value();
    for (const ConfigNode &loss : config_.find("loss")->items) {
      const ConfigNode &arguments = entry_member(loss).value;
      const auto input_of = [&](const OpInput &input, size_t index) { return example_input(input, index, arguments); };
      const tutti_value value = writer_.write(loss, loss_place(), input_of).front();
      sum = sum.id == 0 ? value : tutti_add(graph_, sum, value);
      writer_.check(arguments);
    }
    graph_.loss(sum);
    writer_.check(*config_.find("loss"));
  }

  void write_outputs() {
    if (const ConfigNode *const outputs = config_.find("outputs")) {
      for (const ConfigMember &member : outputs->members)
        graph_.output(member.key.c_str(), writer_.value_of(member.value, layer_place()));
      return writer_.check(*outputs);
    }
    const std::string loss = entry_member(config_.find("loss")->items.front()).key;
    const std::vector<OpInput> &inputs = find_entry({"loss"}, loss)->signature.inputs;
    graph_.output(inputs[0].name.c_str(), last_);
    if (inputs[0].name == "logits" && inputs.size() > 1 && inputs[1].name == "labels" && has_classes())
      graph_.output("class", tutti_argmax(graph_, last_, nullptr));
    writer_.check(config_.find("model")->items.back());
  }
  bool has_classes() const { return tutti_graph_get_rank(graph_, last_) > 1; }

  void write_optimizer() {
    writer_.write(*config_.find("optimizer"), optimizer_place(), nothing);
    for (const ConfigNode &parameter : config_.find("parameters")->items)
      writer_.write(parameter, parameter_place(), nothing);
    const ConfigNode *const norm = config_.find("gradient_clip_norm");
    if (norm == nullptr) return;
    tutti_graph_set_gradient_clip_norm(graph_, number_of(*norm));
    writer_.check(*norm);
  }

  const Graph graph_;
  const bool is_predicting_;
  const ConfigNode &config_;
  const ModelComponents &components_;
  const EntryWriter writer_;
  tutti_value last_ = tutti_no_value();
  bool has_last_ = false;
  std::map<std::string, tutti_value> results_;
};

}  // namespace

std::vector<std::string> model_keys() {
  return {"model", "outputs", "loss", "metrics", "optimizer", "parameters", "gradient_clip_norm"};
}

void complete_model(ConfigNode &config) {
  complete_layers(required(config, "model", "a list of layers, a model of the zoo, or a saved one"));
  if (ConfigNode *const outputs = config.find("outputs")) complete_outputs(*outputs);
  ConfigNode &losses = required(config, "loss", "what training minimizes, such as mean_squared_error");
  make_list(losses);
  if (losses.items.empty()) refuse(losses, "expected at least one loss");
  for (ConfigNode &loss : losses.items)
    complete_entry(loss, loss_place());
  for (const char *const key : {"metrics", "parameters"}) {
    if (config.find(key) == nullptr) config.set(key, ConfigNode());
    ConfigNode &list = *config.find(key);
    make_list(list);
    for (ConfigNode &item : list.items)
      complete_entry(item, std::string(key) == "metrics" ? metric_place() : parameter_place());
  }
  complete_entry(required(config, "optimizer", "such as {adam: {learning_rate: 0.001}}"), optimizer_place());
  if (const ConfigNode *const norm = config.find("gradient_clip_norm")) number_of(*norm);
}

ModelComponents components_of(const Dataset &dataset) {
  ModelComponents components;
  for (int64_t i = 0; i < dataset.component_count(); ++i) {
    const int32_t role = dataset.component_role(i);
    (role == TUTTI_ROLE_LABEL    ? components.labels
     : role == TUTTI_ROLE_WEIGHT ? components.weights
                                 : components.features)
        .push_back(dataset.component_name(i));
  }
  return components;
}

void write_model(const Graph &graph, int32_t mode, const ConfigNode &config, const ModelComponents &components) {
  ModelWriter(graph, mode, config, components).write();
}

}  // namespace tutti::tool
