// SPDX-License-Identifier: Apache-2.0
//
// The fast backend for processors: oneDNN for convolutions, vector kernels of our own for the rest, static memory, one
// thread per logical device unless more are asked for. Options: "logical_devices", default one per core.
#ifndef TUTTI_BACKEND_CPU_DEVICE_CPU_BACKEND_H_
#define TUTTI_BACKEND_CPU_DEVICE_CPU_BACKEND_H_

#include <tutti/plugin/backend.h>

#include <cstdint>

namespace tutti::impl::backend::cpu {

/// The backend's entry, as linked in; a plug-in exports it as tutti_backend_entry.
const tutti_backend_api *entry(uint32_t host_abi_version);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DEVICE_CPU_BACKEND_H_
