// SPDX-License-Identifier: Apache-2.0
//
// The backends of this build by name: those linked in, then plug-ins. The only place, with its source, that names
// implementations.
//
//   TUTTI_ASSIGN(BackendRef backend, open_backend("cpu", "{\"logical_devices\": 4}", host_options));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_RUNTIME_BACKEND_LIST_H_
#define TUTTI_RUNTIME_BACKEND_LIST_H_

#include <span>
#include <string_view>

#include "backend/backend.h"
#include "base/status.h"

namespace tutti::impl::runtime {

/// A backend that is part of the library.
struct LinkedBackend {
  std::string_view name;
  tutti_backend_entry_function entry;
};

/// Those that were built, in order of preference where a program does not choose.
std::span<const LinkedBackend> linked_backends();
/// Names of backends that may be installed as plug-ins of this build.
std::span<const std::string_view> plugin_backends();

/// A new instance of a backend, linked in or loaded; a plug-in of this build also by its absolute path. The error says
/// in one sentence why it cannot be used; an unknown name is NOT_FOUND with the nearest match.
base::Result<backend::BackendRef> open_backend(std::string_view name, std::string_view options_json,
                                               backend::HostOptions host);

/// The first that can be used here of: plug-ins for GPUs that are installed, where the driver's device nodes say that
/// there may be one (or the node that the environment's TUTTI_GPU_NODE names, ignored in set-user-ID programs), what is
/// linked in. A plug-in that is there and cannot be used is a line in the log at most; options that it finds bad are an
/// error.
base::Result<backend::BackendRef> open_best_backend(std::string_view options_json, const backend::HostOptions &host);

}  // namespace tutti::impl::runtime

#endif  // TUTTI_RUNTIME_BACKEND_LIST_H_
