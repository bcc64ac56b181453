// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend_list.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/device/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/file.h"
#include "base/name_suggestions.h"
#include "runtime/plugin_loader.h"
#include "runtime/tpu_chips.h"

namespace tutti::impl::runtime {

using backend::BackendRef;
using base::Result;

namespace {

constexpr LinkedBackend kLinked[] = {
    {"cpu", backend::cpu::entry},
    {"reference", backend::reference::entry},
};

/// A backend whose libraries were missing when this one was built has no table.
bool is_built(const LinkedBackend &linked) { return linked.entry(TUTTI_BACKEND_ABI_VERSION) != nullptr; }

constexpr std::string_view kPlugins[] = {"cuda", "hip", "pjrt"};
/// Of these, in order of preference: those whose devices are taken where a program does not choose, and where there is
/// one of the nodes that a driver makes for such devices: of GPUs on cards, of those in Tegra, of Windows.
struct ForGpus {
  std::string_view name;
  std::vector<std::string> nodes;
};
const std::vector<ForGpus> &for_gpus() {
  static const std::vector<ForGpus> listed = {{"cuda", {"/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/nvmap", "/dev/dxg"}},
                                              {"hip", {"/dev/kfd", "/dev/dxg"}}};
  return listed;
}

/// The one node to look for instead, if the environment names one.
std::optional<std::string> node_from_environment() {
  const char *const node = secure_getenv("TUTTI_GPU_NODE");
  return node != nullptr ? std::optional<std::string>(node) : std::nullopt;
}

/// To open a plug-in loads the libraries of its platform, which take memory and time where there is no such device.
bool may_have_devices(const ForGpus &backend) {
  const std::optional<std::string> node = node_from_environment();
  return node ? base::path_exists(*node) : std::ranges::any_of(backend.nodes, base::path_exists);
}

constexpr int32_t kInfo = 1, kWarning = 2;

/// Whether an error is the program's, and no reason to look further.
bool is_of_options(const Result<BackendRef> &opened) { return opened.code() == base::Code::invalid_argument; }

}  // namespace

std::span<const LinkedBackend> linked_backends() {
  static const std::vector<LinkedBackend> built = [] {
    std::vector<LinkedBackend> found;
    std::copy_if(std::begin(kLinked), std::end(kLinked), std::back_inserter(found), is_built);
    return found;
  }();
  return built;
}
std::span<const std::string_view> plugin_backends() { return kPlugins; }

Result<BackendRef> open_backend(std::string_view name, std::string_view options_json, backend::HostOptions host) {
  for (const LinkedBackend &linked : kLinked) {
    if (linked.name != name) continue;
    if (!is_built(linked)) return base::unavailable("this library was built without the backend ", base::quoted(name));
    return backend::Backend::create(linked.entry, options_json, std::move(host));
  }
  if (name.starts_with('/')) return load_plugin(name, options_json, std::move(host), backend::build_id());
  if (std::find(std::begin(kPlugins), std::end(kPlugins), name) == std::end(kPlugins)) {
    std::vector<std::string> known(std::begin(kPlugins), std::end(kPlugins));
    for (const LinkedBackend &linked : linked_backends())
      known.emplace_back(linked.name);
    return base::not_found("there is no backend ", base::quoted(name), base::but_there_are(name, known));
  }
  TUTTI_ASSIGN(const std::string path, find_plugin(name));
  return load_plugin(path, options_json, std::move(host), backend::build_id());
}

Result<BackendRef> open_best_backend(std::string_view options_json, const backend::HostOptions &host) {
  for (const ForGpus &gpus : for_gpus()) {
    const std::string_view name = gpus.name;
    const Result<std::string> path = find_plugin(name);
    if (!path.ok() || !may_have_devices(gpus)) continue;
    Result<BackendRef> opened = load_plugin(*path, options_json, host, backend::build_id());
    if (opened.ok() || is_of_options(opened)) return opened;
    if (host.log)
      host.log(opened.code() == base::Code::unavailable ? kInfo : kWarning,
               base::concat("backend ", name, " is not used: ", opened.status().to_string()));
  }
  if (const std::string chips = describe_tpu_chips(); !chips.empty() && host.log)
    host.log(kInfo, base::concat("this machine has ", chips,
                                 ", which are not used: they need the backend pjrt, and the ", "option pjrt_plugin"));
  Result<BackendRef> opened = base::unavailable("no backend is linked in");
  for (const LinkedBackend &linked : linked_backends()) {
    opened = backend::Backend::create(linked.entry, options_json, host);
    if (opened.ok() || is_of_options(opened)) break;
  }
  return opened;
}

}  // namespace tutti::impl::runtime
