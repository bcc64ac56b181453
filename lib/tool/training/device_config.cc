// SPDX-License-Identifier: Apache-2.0
#include "tool/training/device_config.h"

#include "tool/console/name_suggestions.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/dataset_source.h"
#include "tool/training/option_config.h"

namespace tutti::tool {

namespace {

const std::vector<std::string> kStrategies = {"auto", "one_device", "mirrored", "central_storage", "multi_worker"};

ConfigNode empty_map(const ConfigPlace &at) {
  ConfigNode map;
  map.kind = ConfigNode::Kind::map;
  map.at = at;
  return map;
}

void complete_strategy(ConfigNode &strategy) {
  if (strategy.is_scalar()) {
    ConfigNode map = map_node(strategy.text, empty_map(strategy.at));
    map.at = strategy.at;
    map.members.front().at = strategy.at;
    set_paths(map, strategy.path);
    strategy = std::move(map);
  }
  check_keys(strategy, kStrategies);
  if (strategy.members.size() != 1) refuse(strategy, "expected one strategy of " + listed(kStrategies));
  ConfigMember &member = strategy.members.front();
  if (member.value.is_null()) {
    member.value = empty_map(member.at);
    set_paths(strategy, strategy.path);
  }
  const ConfigNode &arguments = member.value;
  if (member.key == "multi_worker") return check_options(arguments, {"cluster"});
  const std::vector<std::string> keys = member.key == "one_device" ? std::vector<std::string>{"device"}
                                        : member.key == "mirrored" ? std::vector<std::string>{"devices"}
                                        : member.key == "central_storage"
                                            ? std::vector<std::string>{"storage", "devices"}
                                            : std::vector<std::string>();
  if (keys.empty() && arguments.is_map() && !arguments.members.empty())
    refuse_key(arguments, arguments.members.front(), member.key + " takes no arguments");
  if (!keys.empty()) check_keys(arguments, keys);
  text_in(arguments, "device");
  text_in(arguments, "storage");
  texts_in(arguments, "devices");
}

/// What is configured and does not exist, or does not go together, is told with its place.
template <typename Call>
auto told_at(const ConfigNode &node, const Call &call) {
  try {
    return call();
  } catch (const Error &error) {
    if (error.code() != TUTTI_INVALID_ARGUMENT && error.code() != TUTTI_NOT_FOUND) throw;
    refuse(node, error.message());
  }
}

Strategy automatic(const Context &context, int64_t batch) {
  try {
    return Strategy::multi_worker_from_environment(nullptr, context);
  } catch (const Error &error) {
    if (error.code() != TUTTI_NOT_FOUND) throw;
    return Strategy::automatic(context, batch);
  }
}

Strategy multi_worker(const ConfigNode &arguments, const Context &context) {
  const Options options = options_of(&arguments, "cluster");
  if (arguments.find("workers") != nullptr) return Strategy::multi_worker(options, context);
  return Strategy::multi_worker_from_environment(options, context);
}

}  // namespace

void complete_devices(ConfigNode &config) {
  if (config.find("context") == nullptr) config.set("context", empty_map(config.at));
  ConfigNode &context = *config.find("context");
  check_options(context, {"context"});
  if (config.find("strategy") == nullptr) {
    ConfigNode strategy = text_node("auto");
    set_default(strategy, config.at);
    config.set("strategy", std::move(strategy));
  }
  complete_strategy(*config.find("strategy"));
}

void set_devices(ConfigNode &config, const std::string &devices, const std::string &option) {
  const ConfigPlace at{option};
  std::vector<ConfigNode> names;
  for (size_t begin = 0; begin <= devices.size();) {
    const size_t end = std::min(devices.find(',', begin), devices.size());
    names.push_back(text_node(devices.substr(begin, end - begin)));
    if (names.back().text.empty())
      throw UsageError{option + " takes a number, or names of devices with commas between"};
    begin = end + 1;
  }
  ConfigNode number = names.front();
  number.is_quoted = false;
  ConfigNode arguments = empty_map(at);
  if (is_integer(number)) {
    if (names.size() > 1 || integer_of(number) < 1) throw UsageError{option + " takes a number above 0, or names"};
    set_default(number, at);
    number.is_default = false;
    if (config.find("context") == nullptr) config.set("context", empty_map(at));
    config.find("context")->set("logical_devices", std::move(number));
  } else {
    arguments.set("devices", list_node(std::move(names)));
  }
  ConfigNode strategy = map_node("mirrored", std::move(arguments));
  set_default(strategy, at);
  strategy.is_default = false;
  config.set("strategy", std::move(strategy));
}

Context make_context(const ConfigNode &config) {
  const ConfigNode &section = *config.find("context");
  Context context = told_at(section, [&] { return Context(options_of(&section, "context")); });
  // The level that the configuration or the environment asks for has a log of its own.
  if (section.find("log_level") == nullptr && std::getenv("TUTTI_LOG") == nullptr) tell_warnings(context);
  return context;
}

Strategy make_strategy(const ConfigNode &config, const Context &context, int64_t batch) {
  const ConfigMember &member = config.find("strategy")->members.front();
  const ConfigNode &arguments = member.value;
  const std::vector<std::string> devices = texts_in(arguments, "devices");
  return told_at(*config.find("strategy"), [&] {
    if (member.key == "auto") return automatic(context, batch);
    if (member.key == "multi_worker") return multi_worker(arguments, context);
    if (member.key == "mirrored")
      return devices.empty() ? Strategy::mirrored(context) : Strategy::mirrored(devices, context);
    const std::string device = text_in(arguments, "device"), storage = text_in(arguments, "storage");
    if (member.key == "one_device") return Strategy::one_device(context, device.empty() ? nullptr : device.c_str());
    return Strategy::central_storage(storage.empty() ? nullptr : storage.c_str(), devices, context);
  });
}

}  // namespace tutti::tool
