// SPDX-License-Identifier: Apache-2.0
#include "tool/training/model_zoo.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tool/config/config_text.h"
#include "tool/console/name_suggestions.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

struct ZooModel {
  const char *name;
  const char *about;
  json sizes;  // with their defaults; null = none: it has to be given
  json (*layers)(const json &sizes);
};

json layer(const char *name, json arguments = json::object()) { return {{name, std::move(arguments)}}; }

void add_dropout(json &layers, const json &sizes) {
  if (sizes["dropout"] != 0) layers.push_back(layer("dropout", {{"rate", sizes["dropout"]}}));
}

json linear(const json &sizes) {
  return json::array({layer("flatten"), layer("dense", {{"units", sizes["outputs"]}})});
}

json mlp(const json &sizes) {
  json layers = json::array({layer("flatten")});
  for (const json &units : sizes["hidden"]) {
    layers.push_back(layer("dense", {{"units", units}, {"activation", sizes["activation"]}}));
    add_dropout(layers, sizes);
  }
  layers.push_back(layer("dense", {{"units", sizes["outputs"]}}));
  return layers;
}

/// LeCun et al., 1998: LeNet-5 with full connections between its planes.
json lenet(const json &sizes) {
  const json &activation = sizes["activation"];
  return json::array({layer("conv2d", {{"filters", 6}, {"size", 5}, {"activation", activation}}),
                      layer("average_pool2d", {{"size", 2}}),
                      layer("conv2d", {{"filters", 16}, {"size", 5}, {"padding", "valid"}, {"activation", activation}}),
                      layer("average_pool2d", {{"size", 2}}), layer("flatten"),
                      layer("dense", {{"units", 120}, {"activation", activation}}),
                      layer("dense", {{"units", 84}, {"activation", activation}}),
                      layer("dense", {{"units", sizes["outputs"]}})});
}

json cnn(const json &sizes) {
  json layers = json::array();
  for (const json &filters : sizes["filters"]) {
    layers.push_back(layer("conv2d", {{"filters", filters}, {"size", 3}, {"activation", "relu"}}));
    layers.push_back(layer("max_pool2d", {{"size", 2}}));
  }
  layers.push_back(layer("flatten"));
  for (const json &units : sizes["hidden"])
    layers.push_back(layer("dense", {{"units", units}, {"activation", "relu"}}));
  add_dropout(layers, sizes);
  layers.push_back(layer("dense", {{"units", sizes["outputs"]}}));
  return layers;
}

void add_normalized_conv(json &layers, const char *kind, json arguments) {
  arguments["use_bias"] = false;
  layers.push_back(layer(kind, std::move(arguments)));
  layers.push_back(layer("batch_norm"));
  layers.push_back(layer("relu"));
}

/// He et al., 2016, for small images: three stages of (depth - 2) / 6 blocks with two convolutions each.
json resnet(const json &sizes) {
  json layers = json::array();
  const int64_t filters = sizes["filters"], blocks = (sizes["depth"].get<int64_t>() - 2) / 6;
  add_normalized_conv(layers, "conv2d", {{"filters", filters}, {"size", 3}, {"kernel_initializer", "he_normal"}});
  for (int64_t stage = 0; stage < 3; ++stage) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      layers.push_back(layer("residual_block2d", {{"filters", filters << stage}, {"stride", stride}}));
    }
  }
  layers.push_back(layer("global_average_pool2d"));
  layers.push_back(layer("dense", {{"units", sizes["outputs"]}}));
  return layers;
}

/// Howard et al., 2017: convolutions of each channel by itself, then of all channels at each place.
json mobilenet(const json &sizes) {
  struct Block {
    int filters, stride;
  };
  static const Block blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  const double width = sizes["width"];
  const auto scaled = [&](int filters) { return std::max<int64_t>(1, std::llround(filters * width)); };
  json layers = json::array();
  add_normalized_conv(layers, "conv2d", {{"filters", scaled(32)}, {"size", 3}, {"stride", sizes["stride"]}});
  for (const Block &block : blocks) {
    add_normalized_conv(layers, "depthwise_conv2d", {{"size", 3}, {"stride", block.stride}});
    add_normalized_conv(layers, "conv2d", {{"filters", scaled(block.filters)}, {"size", 1}});
  }
  layers.push_back(layer("global_average_pool2d"));
  add_dropout(layers, sizes);
  layers.push_back(layer("dense", {{"units", sizes["outputs"]}}));
  return layers;
}

const std::vector<ZooModel> &zoo() {
  static const std::vector<ZooModel> models = {
      {"linear", "one dense layer", {{"outputs", nullptr}}, linear},
      {"mlp", "dense layers", {{"hidden", {128}}, {"activation", "relu"}, {"dropout", 0}, {"outputs", nullptr}}, mlp},
      {"lenet", "LeNet-5", {{"activation", "tanh"}, {"outputs", nullptr}}, lenet},
      {"cnn", "convolutions", {{"filters", {32, 64}}, {"hidden", {128}}, {"dropout", 0}, {"outputs", nullptr}}, cnn},
      {"resnet",
       "residual blocks; resnet32 has depth 32",
       {{"depth", 20}, {"filters", 16}, {"outputs", nullptr}},
       resnet},
      {"mobilenet",
       "separable convolutions",
       {{"width", 1.0}, {"stride", 2}, {"dropout", 0}, {"outputs", nullptr}},
       mobilenet},
  };
  return models;
}

/// "resnet20" is resnet with this depth.
const ZooModel &find_model(const ConfigNode &name, json &sizes) {
  std::vector<std::string> names;
  for (const ZooModel &model : zoo()) {
    names.emplace_back(model.name);
    sizes = model.sizes;
    if (text_of(name) == model.name) return model;
    const std::string depth = name.text.compare(0, names.back().size(), names.back()) == 0 && sizes.contains("depth")
                                  ? name.text.substr(names.back().size())
                                  : "";
    if (depth.empty() || depth.size() > 4 || depth.find_first_not_of("0123456789") != std::string::npos) continue;
    sizes["depth"] = std::stol(depth);
    return model;
  }
  refuse(name, "unknown model '" + name.text + "'" + nearest_or_all(name.text, names));
}

bool is_size(const ConfigNode &node) {
  return is_integer(node) && integer_of(node) > 0 && integer_of(node) < (1 << 24);
}

/// What is given replaces a default of the same type.
json taken(const ConfigNode &value, const json &otherwise) {
  if (otherwise.is_array()) {
    integers_of(value);
    for (const ConfigNode &item : value.items) {
      if (!is_size(item)) refuse(item, "expected a size above 0, got " + described(item));
    }
  } else if (otherwise.is_string()) {
    text_of(value);
  } else if (otherwise.is_number_float() || otherwise == 0) {
    number_of(value);
  } else if (!is_size(value)) {
    integer_of(value);
    refuse(value, "expected a size above 0, got " + described(value));
  }
  return json_of(value);
}

void take_sizes(const ConfigNode &node, json &sizes) {
  std::vector<std::string> known = {"zoo", "input"};
  for (const auto &size : sizes.items())
    known.push_back(size.key());
  check_keys(node, known);
  for (const ConfigMember &member : node.members) {
    if (member.key != "zoo" && member.key != "input") sizes[member.key] = taken(member.value, sizes[member.key]);
  }
  for (const auto &size : sizes.items()) {
    if (size.value().is_null()) refuse(node, "'" + size.key() + "' is missing: how many numbers the model gives");
  }
  if (!sizes.contains("depth") || sizes["depth"].get<int64_t>() % 6 == 2) return;
  refuse(node, "a depth of " + sizes["depth"].dump() + " is not 6 n + 2, as 20, 32, 44, 56 and 110 are");
}

}  // namespace

ConfigNode zoo_layers(const ConfigNode &node) {
  ConfigNode map = node;
  if (node.is_scalar()) {
    map = map_node("zoo", node);
    map.at = node.at;
    set_paths(map, node.path);
  }
  const ConfigNode *const name = map.find("zoo");
  if (name == nullptr)
    refuse(node, "expected a list of layers, {zoo: NAME, ...} with the sizes of the model, or {saved_model: PATH}");
  json sizes;
  const ZooModel &model = find_model(*name, sizes);
  take_sizes(map, sizes);
  json layers = model.layers(sizes);
  if (const ConfigNode *const input = map.find("input")) {
    json dims = json::array({"batch"});
    for (const int64_t size : integers_of(*input))
      dims.push_back(size);
    layers.insert(layers.begin(), layer("reshape", {{"dims", dims}}));
  }
  ConfigNode list = node_of(layers);
  set_default(list, node.at);
  // They are what was asked for.
  for (ConfigNode &item : list.items) {
    for (ConfigMember &argument : item.members.front().value.members)
      argument.value.is_default = false;
  }
  set_paths(list, node.path);
  return list;
}

std::vector<std::string> zoo_descriptions() {
  std::vector<std::string> texts;
  for (const ZooModel &model : zoo()) {
    std::string text = std::string(model.name) + " (" + model.about + "): ";
    bool is_first = true;
    for (const auto &size : model.sizes.items()) {
      text += (is_first ? "" : ", ") + size.key();
      if (!size.value().is_null())
        text += " " + (size.value().is_string() ? size.value().get<std::string>() : size.value().dump());
      is_first = false;
    }
    texts.push_back(text);
  }
  return texts;
}

}  // namespace tutti::tool
