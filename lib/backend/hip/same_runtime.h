// SPDX-License-Identifier: Apache-2.0
//
// Is a library that was opened linked to the HIP runtime of this plug-in? Streams and memory of one runtime are nothing
// to another, and a process may have both: RCCL's file has one name for several of them, here and in /opt/rocm.
//
// Threads: any.
#ifndef TUTTI_BACKEND_HIP_SAME_RUNTIME_H_
#define TUTTI_BACKEND_HIP_SAME_RUNTIME_H_

#include "base/status.h"

namespace tutti::impl::backend::hip {

/// UNAVAILABLE and both files where they are two. `function` is one of the library's. Ok for one that needs no HIP.
base::Status check_same_runtime(const void *function);

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_SAME_RUNTIME_H_
