// SPDX-License-Identifier: Apache-2.0
//
// A plug-in that must be refused; BAD_PLUGIN_KIND says why: 1 the interface version is another one, 2 it refuses the
// host, 3 the build is another one, 4 its table is too short, 5 it lacks tables.
#include <tutti/plugin/backend.h>

#include "backend/build_id.h"

extern "C" __attribute__((visibility("default"))) const tutti_backend_api *tutti_backend_entry(uint32_t) {
  static tutti_backend_api api{};
  api.struct_size = BAD_PLUGIN_KIND == 4 ? 16 : sizeof(api);
  api.abi_version = TUTTI_BACKEND_ABI_VERSION + (BAD_PLUGIN_KIND == 1 ? 1 : 0);
  api.name = "bad";
  api.version = "0";
  api.build_id = BAD_PLUGIN_KIND == 3 ? "another build" : tutti::impl::backend::kBuildId;
  return BAD_PLUGIN_KIND == 2 ? nullptr : &api;
}
