// SPDX-License-Identifier: Apache-2.0
#include "runtime/plugin_loader.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "runtime/module.h"
#include "runtime/plugin_directory.h"

namespace tutti::impl::runtime {

using backend::BackendRef;
using base::Result;
using base::Status;

namespace {

/// Of the shared library, or of the program where it is linked statically. Empty where the system does not tell.
std::string own_directory() {
  Dl_info place{};
  if (dladdr(kPluginDirectory, &place) == 0 || place.dli_fname == nullptr) return "";
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(place.dli_fname, nullptr), std::free);
  return real != nullptr ? base::parent_directory(real.get()) : "";
}

}  // namespace

std::vector<std::string> plugin_directories() {
  const char *const from_environment = secure_getenv("TUTTI_PLUGIN_PATH");
  if (from_environment != nullptr && from_environment[0] != '\0') return {from_environment};
  std::vector<std::string> found;
  if (const std::string own = own_directory(); !own.empty())
    found = {own, base::concat(own, "/tutti/", base::base_name(kPluginDirectory))};
  if (std::ranges::find(found, kPluginDirectory) == found.end()) found.emplace_back(kPluginDirectory);
  return found;
}

Result<std::string> find_plugin(std::string_view name) {
  const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  if (!is_plain) return base::invalid_argument("'", base::quoted(name), "' is not the name of a plug-in");
  std::vector<std::string> looked_in;
  for (const std::string &directory : plugin_directories()) {
    std::string path = base::concat(directory, "/tutti-", name, ".so");
    const Result<base::FileStamp> found = base::file_stamp(path);
    if (found.ok()) return path;
    const bool is_seen = found.code() == base::Code::not_found;
    looked_in.push_back(is_seen ? directory : base::concat(directory, " (", found.status().message(), ")"));
  }
  return base::not_found("there is no plug-in tutti-", name, ".so in ", base::join(looked_in, " or "));
}

namespace {

Result<BackendRef> load(const std::string &path, std::string_view options_json, backend::HostOptions host,
                        std::string_view build_id) {
  TUTTI_ASSIGN(Module module, Module::load(path));
  TUTTI_ASSIGN(void *const symbol, module.symbol(TUTTI_BACKEND_ENTRY_NAME, "backend"));
  const auto entry = reinterpret_cast<tutti_backend_entry_function>(symbol);
  TUTTI_ASSIGN(BackendRef backend, backend::Backend::create(entry, options_json, std::move(host), build_id));
  // Never unloaded: code of the module may be on other threads' stacks, and many libraries cannot be unloaded at all.
  module.keep();
  return backend;
}

}  // namespace

Result<BackendRef> load_plugin(std::string_view absolute_path, std::string_view options_json, backend::HostOptions host,
                               std::string_view build_id) {
  const std::string path(absolute_path);
  Result<BackendRef> backend = load(path, options_json, std::move(host), build_id);
  if (!backend.ok()) return backend.status().with_detail("plugin", path);
  return backend;
}

}  // namespace tutti::impl::runtime
