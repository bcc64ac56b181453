// SPDX-License-Identifier: Apache-2.0
//
// The backend pjrt as the suites of all backends take it, by a path alone: the library that it makes use of is the one
// that the environment's TUTTI_PJRT_PLUGIN names. Without it there are no such devices, and the suites say so.
#include <cstdlib>

#include "backend/pjrt/device/pjrt_backend.h"
#include "backend/plugin_side.h"
#include "base/json.h"

namespace {

using namespace tutti::impl;

int32_t create(const tutti_backend_host *host, const char *options_json, tutti_backend **backend,
               tutti_error_sink *sink) {
  std::string options;
  const int32_t code = backend::guarded(host, sink, [&]() -> base::Status {
    const char *const path = std::getenv("TUTTI_PJRT_PLUGIN");
    if (path == nullptr || path[0] == '\0')
      return base::unavailable("TUTTI_PJRT_PLUGIN names no library with PJRT's C interface");
    TUTTI_ASSIGN(base::Json settings, base::Json::parse(options_json));
    settings.set("pjrt_plugin", std::string(path));
    options = settings.dump();
    return base::Status();
  });
  if (code != 0) return code;
  return backend::pjrt::entry(TUTTI_BACKEND_ABI_VERSION)->create(host, options.c_str(), backend, sink);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const tutti_backend_api *tutti_backend_entry(uint32_t version) {
  static tutti_backend_api table;
  const tutti_backend_api *const api = backend::pjrt::entry(version);
  if (api == nullptr) return nullptr;
  table = *api;
  table.create = create;
  return &table;
}
