// SPDX-License-Identifier: Apache-2.0
#include "tool/training/run_config.h"

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "tool/config/config_text.h"
#include "tool/config/yaml_text.h"
#include "tool/console/text_file.h"
#include "tool/console/usage_error.h"
#include "tool/model/checkpoint_files.h"
#include "tool/training/data_config.h"
#include "tool/training/device_config.h"
#include "tool/training/option_config.h"

namespace tutti::tool {

namespace {

namespace filesystem = std::filesystem;

constexpr int64_t kProfiledSteps = 50;
constexpr char kMaxSteps[] = "max_steps";
constexpr char kHead[] = "# The configuration of this run, with every default and what the command line has set.\n";
/// Checkpoints every ten minutes are the default where neither is set.
const std::vector<std::string> kOpenOptions = {"save_checkpoints_steps", "save_checkpoints_secs"};

ConfigNode &section(ConfigNode &config, const char *key) {
  if (config.find(key) == nullptr) {
    ConfigNode map;
    map.kind = ConfigNode::Kind::map;
    map.at = config.at;
    config.set(key, std::move(map));
  }
  return *config.find(key);
}

void complete_number(ConfigNode &map, const char *key, int64_t otherwise) {
  if (const ConfigNode *const node = map.find(key)) {
    if (integer_of(*node) < 0) refuse(*node, "expected a number, at least 0, got " + described(*node));
    return;
  }
  ConfigNode value = number_node(otherwise);
  set_default(value, map.at);
  map.set(key, std::move(value));
}

void complete_run(ConfigNode &config, const std::string &name) {
  ConfigNode &run = section(config, "run");
  if (run.is_map() && run.find("model_dir") == nullptr) {
    ConfigNode folder = text_node("runs/" + name);
    set_default(folder, run.at);
    folder.is_default = false;
    run.set("model_dir", std::move(folder));
  }
  if (ConfigNode *const folder = run.find("model_dir"); folder != nullptr && folder->is_null()) {
    ConfigNode none = text_node("");
    none.at = folder->at;
    run.set("model_dir", std::move(none));
  }
  complete_options(run, {"run", "train"}, kOpenOptions);
  // Steps are counted over as many passes as they take.
  ConfigNode &train = *config.find("data")->find("train");
  const bool counts_steps = integer_of(*run.find("max_steps")) > 0 || integer_of(*run.find("steps")) > 0;
  if (counts_steps && train.find("repeat") == nullptr) {
    ConfigNode forever = number_node(int64_t{0});
    set_default(forever, train.at);
    train.set("repeat", std::move(forever));
  }
}

void complete_sections(ConfigNode &config) {
  ConfigNode &evaluation = section(config, "evaluation");
  check_keys(evaluation, {"every_steps", "steps"});
  complete_number(evaluation, "every_steps", 0);
  complete_number(evaluation, "steps", 0);
  ConfigNode &profile = section(config, "profile");
  check_keys(profile, {"steps", "trace"});
  complete_number(profile, "steps", kProfiledSteps);
  text_in(profile, "trace");
  if (ConfigNode *const weights = config.find("weights"))
    weights->text = filesystem::absolute(text_of(*weights)).lexically_normal().string();
}

/// "max_steps" in the place of a number is that of the run.
void set_max_steps(const ConfigNode &config, ConfigNode &node) {
  if (node.is_scalar() && !node.is_quoted && node.text == kMaxSteps) {
    const ConfigNode *const run = config.find("run");
    const ConfigNode *const steps = run == nullptr ? nullptr : run->find(kMaxSteps);
    if (steps == nullptr || !is_integer(*steps)) refuse(node, "max_steps stands for run.max_steps, which is not set");
    node.text = steps->text;
  }
  for (ConfigNode &item : node.items)
    set_max_steps(config, item);
  for (ConfigMember &member : node.members)
    set_max_steps(config, member.value);
}

/// Groups of parameters that are frozen, before all others: a variable belongs to the first that matches it.
void complete_frozen(ConfigNode &config) {
  const ConfigNode *const frozen = config.find("frozen");
  if (frozen == nullptr) return;
  std::vector<ConfigNode> groups;
  for (const std::string &pattern : texts_of(*frozen)) {
    ConfigNode arguments = map_node("pattern", text_node(pattern));
    ConfigNode truth = text_node("true");
    truth.is_quoted = false;
    arguments.set("frozen", std::move(truth));
    groups.push_back(map_node("group", std::move(arguments)));
    set_default(groups.back(), frozen->at);
    for (ConfigMember &argument : groups.back().members.front().value.members)
      argument.value.is_default = false;
  }
  const ConfigNode *const given = config.find("parameters");
  if (given != nullptr && given->is_list()) groups.insert(groups.end(), given->items.begin(), given->items.end());
  if (given != nullptr && !given->is_list() && !given->is_null()) groups.push_back(*given);
  ConfigNode list = list_node(std::move(groups));
  list.at = frozen->at;
  config.set("parameters", std::move(list));
  config.erase("frozen");
}

/// A secret is not left in a file.
ConfigNode without_secrets(ConfigNode config) {
  ConfigNode &strategy = config.find("strategy")->members.front().value;
  strategy.erase("job_secret");
  return config;
}

}  // namespace

bool is_run_folder(const std::string &path) {
  std::error_code error;
  return filesystem::is_regular_file(filesystem::path(path) / kConfigFile, error);
}

ConfigNode read_config(const std::string &path) {
  if (path.empty()) {
    ConfigNode empty;
    empty.kind = ConfigNode::Kind::map;
    empty.at = {"command line"};
    return empty;
  }
  if (!filesystem::is_directory(path)) {
    ConfigNode config = read_yaml(path);
    if (!config.is_map()) refuse(config, "expected a map with data, model, ..., got " + described(config));
    return config;
  }
  if (!is_run_folder(path)) {
    throw std::runtime_error("'" + path + "': is no folder of a run: it has no " + kConfigFile +
                             ", which 'tutti train' leaves there");
  }
  const std::string file = (filesystem::path(path) / kConfigFile).string();
  ConfigNode config = read_yaml(file);
  if (!config.is_map()) refuse(config, "expected a map with data, model, ..., got " + described(config));
  // Folders are moved, and read from elsewhere.
  ConfigNode folder = text_node(path);
  folder.at = {file};
  ConfigNode *const run = config.find("run");
  if (run != nullptr && run->is_map()) run->set("model_dir", std::move(folder));
  return config;
}

void complete_config(ConfigNode &config, const std::string &name) {
  std::vector<std::string> keys = {"data", "context", "strategy", "run", "weights", "frozen", "evaluation", "profile"};
  const std::vector<std::string> of_model = model_keys();
  keys.insert(keys.begin() + 1, of_model.begin(), of_model.end());
  check_keys(config, keys);
  complete_data(config);
  for (const char *const key : {"optimizer", "parameters"}) {
    if (ConfigNode *const node = config.find(key)) set_max_steps(config, *node);
  }
  complete_frozen(config);
  complete_model(config);
  complete_devices(config);
  complete_run(config, name);
  complete_sections(config);
  set_paths(config, "");
}

void write_config(const ConfigNode &config) {
  const filesystem::path folder = model_dir_of(config);
  filesystem::create_directories(folder);
  TextFile file((folder / kConfigFile).string());
  file.write(kHead + yaml_of(without_secrets(config)));
  file.close();
}

void write_no_summaries(ConfigNode &config) { config.find("run")->set("save_summary_steps", number_node(int64_t{0})); }

std::string model_dir_of(const ConfigNode &config) { return text_in(*config.find("run"), "model_dir"); }

std::string newest_checkpoint(const std::string &directory) {
  if (directory.empty() || !filesystem::is_directory(directory)) return "";
  const std::vector<CheckpointPlace> places = find_checkpoints(directory);
  return places.empty() ? "" : places.back().path;
}

/// What the model function has, as long as the library may call it.
struct ConfiguredEstimator::Shared {
  ConfigNode config;
  ModelComponents components;
  std::optional<UsageError> wrong;
};

ConfiguredEstimator::ConfiguredEstimator(const ConfigNode &config, const ModelComponents &components,
                                         const Strategy &strategy, const Context &context, bool keeps_files)
    : shared_(std::make_shared<Shared>(Shared{config, components, std::nullopt})),
      estimator_(make(shared_, strategy, context, keeps_files)) {}

Estimator ConfiguredEstimator::make(const std::shared_ptr<Shared> &shared, const Strategy &strategy,
                                    const Context &context, bool keeps_files) {
  const auto build = [shared](const Graph &graph, int32_t mode) {
    try {
      write_model(graph, mode, shared->config, shared->components);
    } catch (const UsageError &error) {
      // It cannot pass the library, which carries errors of its own.
      shared->wrong = error;
      throw std::runtime_error(error.text);
    }
  };
  Options run = options_of(shared->config.find("run"), "run");
  if (!keeps_files) run.set("model_dir", "").set("summary_dir", "");
  return Estimator(build, run, strategy, context);
}

bool ConfiguredEstimator::is_wrong() const { return shared_->wrong.has_value(); }

void ConfiguredEstimator::throw_wrong() const {
  if (shared_->wrong) throw UsageError(*shared_->wrong);
}

}  // namespace tutti::tool
