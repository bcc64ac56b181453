// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/same_runtime.h"

#include <dlfcn.h>
#include <tutti_gpu.h>

namespace tutti::impl::backend::hip {

using base::Status;

Status check_same_runtime(const void *function) {
  Dl_info library{}, own{}, other{};
  if (dladdr(function, &library) == 0 || dladdr(reinterpret_cast<const void *>(&hipRuntimeGetVersion), &own) == 0)
    return base::unavailable("cannot determine from which files RCCL and HIP were loaded");
  // It is open: this counts one more, for ever. Found is what the library itself, or one that it needs, defines.
  void *const opened = dlopen(library.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  const void *const found = opened == nullptr ? nullptr : dlsym(opened, "hipRuntimeGetVersion");
  if (found == nullptr || dladdr(found, &other) == 0 || other.dli_fbase == own.dli_fbase) return Status();
  return base::unavailable(library.dli_fname, " is for another HIP runtime: it needs ", other.dli_fname,
                           ", the plug-in has ", own.dli_fname);
}

}  // namespace tutti::impl::backend::hip
