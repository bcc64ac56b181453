// SPDX-License-Identifier: Apache-2.0
#include "runtime/plugin_loader.h"

#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

#include "runtime/module.h"
#include "runtime/plugin_directory.h"

namespace tutti::impl::runtime {

using backend::BackendRef;
using base::Result;
using base::Status;

std::string plugin_directory() {
  const char *const from_environment = secure_getenv("TUTTI_PLUGIN_PATH");
  return from_environment != nullptr && from_environment[0] != '\0' ? from_environment : kPluginDirectory;
}

Result<std::string> plugin_path(std::string_view name) {
  const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  if (!is_plain) return base::invalid_argument("'", base::quoted(name), "' is not the name of a plug-in");
  return base::concat(plugin_directory(), "/tutti-", name, ".so");
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
