// SPDX-License-Identifier: Apache-2.0
//
// Opening a shared library at run time.
//
// Threads: may be called from any thread.
#ifndef TUTTI_BASE_SHARED_LIBRARY_H_
#define TUTTI_BASE_SHARED_LIBRARY_H_

#include <string>

#include "base/status.h"

namespace tutti::impl::base {

/// The handle for dlsym(), with all symbols resolved and none of them for other libraries to see; the caller closes it.
/// A path without a slash is looked for where the system's loader looks. UNAVAILABLE with the loader's sentence, or
/// RESOURCE_EXHAUSTED where it lacked memory. Handlers of signals that the library sets meanwhile are
/// taken back.
Result<void *> open_shared_library(const std::string &path);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_SHARED_LIBRARY_H_
