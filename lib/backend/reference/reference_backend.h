// SPDX-License-Identifier: Apache-2.0
//
// The reference backend: every op, in plain loops with double arithmetic, on logical devices of the host's processor.
// It is the oracle of the conformance tests and runs small graphs (initial values, maps) where speed does not matter.
#ifndef TUTTI_BACKEND_REFERENCE_REFERENCE_BACKEND_H_
#define TUTTI_BACKEND_REFERENCE_REFERENCE_BACKEND_H_

#include <tutti/plugin/backend.h>

#include <cstdint>

namespace tutti::impl::backend::reference {

/// The backend's entry, as linked in; the plug-in exports it as tutti_backend_entry.
const tutti_backend_api *entry(uint32_t host_abi_version);

}  // namespace tutti::impl::backend::reference

#endif  // TUTTI_BACKEND_REFERENCE_REFERENCE_BACKEND_H_
