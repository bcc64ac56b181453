// SPDX-License-Identifier: Apache-2.0
//
// Backends as shared modules: found in one directory, loaded by absolute path, checked before anything of them runs but
// their entry. A module stays loaded for the life of the process once it was accepted.
//
//   TUTTI_ASSIGN(BackendRef cuda, load_plugin(plugin_path("cuda"), "{}", host_options, build_id()));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_RUNTIME_PLUGIN_LOADER_H_
#define TUTTI_RUNTIME_PLUGIN_LOADER_H_

#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/status.h"

namespace tutti::impl::runtime {

/// Where plug-ins lie: the environment's TUTTI_PLUGIN_PATH (ignored in set-user-ID programs), else the directory the
/// library was configured with.
std::string plugin_directory();

/// "<plugin_directory>/tutti-<name>.so". INVALID_ARGUMENT unless the name is letters, digits, '-' and '_'.
base::Result<std::string> plugin_path(std::string_view name);

/// Loads the module at an absolute path and makes an instance of its backend. `build_id` as in Backend::create. The
/// error is one sentence that says why the module cannot be used, with the detail "plugin": INVALID_ARGUMENT for a path
/// that is not absolute, NOT_FOUND when there is no file, UNAVAILABLE otherwise.
base::Result<backend::BackendRef> load_plugin(std::string_view absolute_path, std::string_view options_json,
                                              backend::HostOptions host, std::string_view build_id);

}  // namespace tutti::impl::runtime

#endif  // TUTTI_RUNTIME_PLUGIN_LOADER_H_
