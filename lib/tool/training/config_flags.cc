// SPDX-License-Identifier: Apache-2.0
#include "tool/training/config_flags.h"

#include <filesystem>

#include "tool/config/config_path.h"
#include "tool/config/yaml_text.h"
#include "tool/console/usage_error.h"
#include "tool/training/device_config.h"
#include "tool/training/run_config.h"

namespace tutti::tool {

namespace {

struct PathOption {
  const char *name, *value;
  std::string path;
  const char *description;
};

/// An option that sets one path.
void add_path_option(Command &command, ConfigRequest &request, const PathOption &option) {
  const std::string name = option.name, path = option.path;
  command.add_option(
      [&request, name, path](const std::string &value) {
        request.changes.emplace_back(
            [name, path, value](ConfigNode &config) { set_path(config, path, parse_yaml(value, name, false)); });
      },
      {option.name, option.value, option.description});
}

/// Beneath the optimizer, whichever it is.
void set_learning_rate(ConfigNode &config, const std::string &value) {
  const char *const option = "--learning-rate";
  const ConfigNode *const optimizer = config.find("optimizer");
  std::string name = optimizer != nullptr && optimizer->is_scalar() ? optimizer->text : "";
  if (optimizer != nullptr && optimizer->is_map() && optimizer->members.size() == 1)
    name = optimizer->members.front().key;
  if (name.empty()) throw UsageError{std::string(option) + " needs an optimizer, by the configuration or --optimizer"};
  set_path(config, "optimizer." + name + ".learning_rate", parse_yaml(value, option, false));
}

/// In place of every other limit.
void set_steps(ConfigNode &config, const std::string &value) {
  set_path(config, "run.max_steps", parse_yaml(value, "--steps", false));
  for (const char *const other : {"steps", "epochs"})
    config.find("run")->erase(other);
}

}  // namespace

void add_set_option(Command &command, ConfigRequest &request) {
  command.add_option(
      [&request](const std::string &setting) {
        request.changes.emplace_back([setting](ConfigNode &config) { set_by_option(config, "--set", setting); });
      },
      {"--set", "PATH=VALUE",
       "set a value of the configuration, as in --set run.seed=7 or --set model[1].dense.units=64; may be repeated, "
       "and a value is YAML"});
}

void add_device_options(Command &command, ConfigRequest &request, const std::string &name) {
  command.add_option(
      [&request](const std::string &devices) {
        request.changes.emplace_back([devices](ConfigNode &config) { set_devices(config, devices, "--devices"); });
      },
      {"--devices", "N", "so many devices, or their names as in cpu:0,cpu:1, by the strategy mirrored"});
  add_path_option(command, request,
                  {"--batch", "N", "data." + name + ".batch", "examples in a batch, of all devices together"});
}

void add_training_options(Command &command, ConfigRequest &request) {
  static const PathOption options[] = {
      {"--model-dir", "DIR", "run.model_dir", "the folder of the run"},
      {"--data", "FILES", "data.train.source", "the examples, as in csv:train.csv"},
      {"--label", "NAME", "data.train.label", "the component that is to be predicted"},
      {"--model", "MODEL", "model", "a model, as in '{zoo: mlp, hidden: [64], outputs: 3}'"},
      {"--loss", "NAME", "loss", "what training minimizes, as in mean_squared_error"},
      {"--metrics", "NAMES", "metrics", "what is measured, as in '[accuracy]'"},
      {"--optimizer", "NAME", "optimizer", "as in adam"},
  };
  for (const PathOption &option : options)
    add_path_option(command, request, option);
  command.add_option(
      [&request](const std::string &value) {
        request.changes.emplace_back([value](ConfigNode &config) { set_steps(config, value); });
      },
      {"--steps", "N", "train to this step, whatever the configuration says of steps and epochs"});
  command.add_option(
      [&request](const std::string &value) {
        request.changes.emplace_back([value](ConfigNode &config) { set_learning_rate(config, value); });
      },
      {"--learning-rate", "RATE", "of the optimizer: a number, or a schedule"});
}

ConfigNode load_config(const ConfigRequest &request) {
  ConfigNode config = read_config(request.path);
  for (const auto &change : request.changes)
    change(config);
  const std::string stem = std::filesystem::path(request.path).stem().string();
  complete_config(config, stem.empty() ? "train" : stem);
  return config;
}

}  // namespace tutti::tool
