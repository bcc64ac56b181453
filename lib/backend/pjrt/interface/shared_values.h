// SPDX-License-Identifier: Apache-2.0
//
// What the clients of several processes tell each other while they find their devices: a plug-in puts and asks for
// values by key, and the host of this plug-in of tutti carries them.
//
// Threads: a plug-in may call from any thread.
#ifndef TUTTI_BACKEND_PJRT_INTERFACE_SHARED_VALUES_H_
#define TUTTI_BACKEND_PJRT_INTERFACE_SHARED_VALUES_H_

#include <tutti/plugin/backend.h>

#include "backend/pjrt/interface/pjrt_abi.h"

namespace tutti::impl::backend::pjrt {

/// Has a client ask this host, which outlives it. Nothing for NULL, and for the host of a process alone.
void share_values(const tutti_backend_host *host, abi::ClientCreate &call);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_INTERFACE_SHARED_VALUES_H_
