// SPDX-License-Identifier: Apache-2.0
#include "runtime/plugin_loader.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

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
  if (!is_plain) return base::invalid_argument("'", base::quoted(name), "' is not the name of a backend");
  return base::concat(plugin_directory(), "/tutti-", name, ".so");
}

namespace {

struct CloseModule {
  void operator()(void *module) const { dlclose(module); }
};

Result<BackendRef> load(const std::string &path, std::string_view options_json, backend::HostOptions host,
                        std::string_view build_id) {
  if (path.empty() || path[0] != '/') return base::invalid_argument("plug-in path '", path, "' is not absolute");
  if (access(path.c_str(), F_OK) != 0) return base::not_found("there is no plug-in '", path, "'");
  std::unique_ptr<void, CloseModule> module(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (module == nullptr) return base::unavailable("plug-in '", path, "' cannot be loaded: ", std::string(dlerror()));
  void *const symbol = dlsym(module.get(), TUTTI_BACKEND_ENTRY_NAME);
  if (symbol == nullptr)
    return base::unavailable("'", path, "' is not a tutti backend: it does not export " TUTTI_BACKEND_ENTRY_NAME);
  const auto entry = reinterpret_cast<tutti_backend_entry_function>(symbol);
  TUTTI_ASSIGN(BackendRef backend, backend::Backend::create(entry, options_json, std::move(host), build_id));
  // Never unloaded: code of the module may be on other threads' stacks, and many libraries cannot be unloaded at all.
  (void)module.release();
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
