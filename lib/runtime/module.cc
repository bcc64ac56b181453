// SPDX-License-Identifier: Apache-2.0
#include "runtime/module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/shared_library.h"

namespace tutti::impl::runtime {

using base::Result;

void Module::Close::operator()(void *handle) const { dlclose(handle); }

Result<Module> Module::load(const std::string &path) {
  if (path.empty() || path[0] != '/') return base::invalid_argument("plug-in path '", path, "' is not absolute");
  if (access(path.c_str(), F_OK) != 0) return base::not_found("there is no plug-in '", path, "'");
  // dlopen() would wait for the other end of a FIFO.
  if (const Result<base::FileDescriptor> file = base::open_regular_file(path, O_RDONLY, "cannot open plug-in");
      !file.ok())
    return base::unavailable("plug-in '", path, "' cannot be loaded: ", file.status().message());
  const Result<void *> handle = base::open_shared_library(path);
  if (!handle.ok())
    return base::Status(handle.status().code(),
                        base::concat("plug-in '", path, "' cannot be loaded: ", handle.status().message()));
  return Module(path, *handle);
}

Result<void *> Module::symbol(const char *name, std::string_view kind) const {
  void *const found = dlsym(handle_.get(), name);
  if (found != nullptr) return found;
  return base::unavailable("'", path_, "' is not a tutti ", kind, ": it does not export ", name);
}

}  // namespace tutti::impl::runtime
