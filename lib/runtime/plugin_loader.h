// SPDX-License-Identifier: Apache-2.0
//
// Backends as shared modules: found beside the library, loaded by absolute path, checked before anything of them runs
// but their entry. A module stays loaded for the life of the process once it was accepted.
//
//   TUTTI_ASSIGN(const std::string path, find_plugin("cuda"));
//   TUTTI_ASSIGN(BackendRef cuda, load_plugin(path, "{}", host_options, build_id()));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_RUNTIME_PLUGIN_LOADER_H_
#define TUTTI_RUNTIME_PLUGIN_LOADER_H_

#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"

namespace tutti::impl::runtime {

/// Where plug-ins are looked for, in this order: the directory that the environment's TUTTI_PLUGIN_PATH names, and no
/// other (ignored in set-user-ID programs); else the directory of the library itself, its folder tutti/plugins-N, and
/// the directory that the library was configured with.
std::vector<std::string> plugin_directories();

/// The path of tutti-<name>.so in the first of these directories that has it. INVALID_ARGUMENT unless the name is
/// letters, digits, '-' and '_'; NOT_FOUND with the directories, and why one of them may not be looked into.
base::Result<std::string> find_plugin(std::string_view name);

/// Loads the module at an absolute path and makes an instance of its backend. `build_id` as in Backend::create. The
/// error is one sentence that says why the module cannot be used, with the detail "plugin": INVALID_ARGUMENT for a path
/// that is not absolute, NOT_FOUND when there is no file, UNAVAILABLE otherwise.
base::Result<backend::BackendRef> load_plugin(std::string_view absolute_path, std::string_view options_json,
                                              backend::HostOptions host, std::string_view build_id);

}  // namespace tutti::impl::runtime

#endif  // TUTTI_RUNTIME_PLUGIN_LOADER_H_
