// SPDX-License-Identifier: Apache-2.0
//
// Which devices there are, of each backend, and why a backend cannot be used.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <tutti/tutti.hpp>

#include "tool/command/command_list.h"
#include "tool/console/table.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

/// What may be linked in or installed, whether this build has it or not: GPUs first, as a context prefers them.
std::vector<std::string> known_backends() {
  std::vector<std::string> names = {"cuda", "hip", "pjrt", "cpu", "reference"};
  for (const std::string name : json::parse(tutti_build_info())["backends"]) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

json devices_of(const Context &context) {
  json devices = json::array();
  for (int64_t i = 0; i < context.device_count(); ++i)
    devices.push_back(json::parse(context.describe_device(i)));
  return devices;
}

/// {"name", "available", "devices"}, or "reason" where it is not available.
json describe_backend(const std::string &name) {
  const char *reason = tutti_why_unavailable(name.c_str());
  if (reason != nullptr) return {{"name", name}, {"available", false}, {"reason", reason}, {"devices", json::array()}};
  try {
    const Context context(Options("context").set("backend", name));
    return {{"name", name}, {"available", true}, {"devices", devices_of(context)}};
  } catch (const Error &error) {
    return {{"name", name}, {"available", false}, {"reason", error.what()}, {"devices", json::array()}};
  }
}

json describe_all() {
  json backends = json::array();
  for (const std::string &name : known_backends())
    backends.push_back(describe_backend(name));
  const json own = devices_of(Context());
  return {{"default_backend", own.empty() ? json() : own[0]["backend"]}, {"backends", backends}};
}

/// Logical devices of one processor differ in nothing but their names.
bool are_alike(const json &a, const json &b) {
  for (const char *key : {"kind", "memory_bytes", "description"}) {
    if (a.value(key, json()) != b.value(key, json())) return false;
  }
  return true;
}

void add_device_rows(const json &backend, Table &table) {
  const json &devices = backend["devices"];
  for (size_t begin = 0, end = 0; begin < devices.size(); begin = end) {
    while (end < devices.size() && are_alike(devices[begin], devices[end]))
      ++end;
    const json &first = devices[begin];
    std::string names = first["name"].get<std::string>();
    if (end - begin > 1) names += " to " + devices[end - 1]["name"].get<std::string>();
    const int64_t bytes = first["memory_bytes"].get<int64_t>();
    table.add({backend["name"].get<std::string>(), names, first["kind"].get<std::string>(),
               bytes > 0 ? readable_bytes(static_cast<double>(bytes)) : "", first["description"].get<std::string>()});
  }
}

/// "cuda uses cuDNN 9.19.0, NCCL 2.27.3".
void print_libraries(const json &backend) {
  if (backend["devices"].empty()) return;
  std::string line;
  for (const auto &[name, version] : backend["devices"][0]["libraries"].items())
    line += (line.empty() ? " uses " : ", ") + name + " " + version.get<std::string>();
  if (!line.empty()) std::printf("%s%s\n", backend["name"].get<std::string>().c_str(), line.c_str());
}

void print_devices(const json &all) {
  Table table({"backend", "devices", "kind", ">memory", "description"});
  for (const json &backend : all["backends"])
    add_device_rows(backend, table);
  table.print();
  std::printf("\n");
  for (const json &backend : all["backends"]) {
    print_libraries(backend);
    if (backend["available"].get<bool>()) continue;
    std::printf("%s cannot be used: %s\n", backend["name"].get<std::string>().c_str(),
                backend["reason"].get<std::string>().c_str());
  }
  if (all["default_backend"].is_string())
    std::printf("Programs that do not choose use %s.\n", all["default_backend"].get<std::string>().c_str());
}

int list_devices(bool as_json) {
  const json all = describe_all();
  if (as_json) {
    std::printf("%s\n", all.dump(1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    print_devices(all);
  }
  return EXIT_SUCCESS;
}

}  // namespace

Command devices_command() {
  const auto as_json = std::make_shared<bool>(false);
  Command command("devices", "lists devices, and why a backend cannot be used");
  command.set_details(
      "Logical devices that differ only in name share a line. Memory is shown where a device has its own or a limit is "
      "set. The backend reference computes the same as the others with plain loops, for tests.");
  command.add_flag(*as_json, {"--json", "", "print all that is known of each device as JSON"});
  command.set_example("tutti devices");
  command.set_run([as_json](const std::vector<std::string> &) { return list_devices(*as_json); });
  return command;
}

}  // namespace tutti::tool
