// SPDX-License-Identifier: Apache-2.0
//
// The backend "pjrt": devices of whatever plug-in with PJRT's C interface its option names (TPUs by libtpu.so, for
// one). It is a plug-in of tutti itself, whose name is tutti-pjrt.so.
//
// Options: "pjrt_plugin", the absolute path of the library; "logical_devices", how many devices a plug-in for
// processors is to make of them; "pjrt_topology", devices to compile for that are not here, such as "v5e:2x4":
// nothing runs on them; "wait_seconds", after how many seconds (default 600) a device that has not finished is
// given up.
#ifndef TUTTI_BACKEND_PJRT_DEVICE_PJRT_BACKEND_H_
#define TUTTI_BACKEND_PJRT_DEVICE_PJRT_BACKEND_H_

#include <tutti/plugin/backend.h>

#include <cstdint>

namespace tutti::impl::backend::pjrt {

/// As tutti_backend_entry.
const tutti_backend_api *entry(uint32_t host_abi_version);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_DEVICE_PJRT_BACKEND_H_
