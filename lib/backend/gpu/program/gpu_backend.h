// SPDX-License-Identifier: Apache-2.0
//
// The entry of a GPU backend: the table that <tutti/plugin/backend.h> describes, over the platform's runtime.
//
// Options of `create`: "logical_devices" (how many devices there are to everybody above, spread over the GPUs in order;
// 0 or absent = one for each GPU), "gpus" (numbers of the GPUs to use; absent = all; others are never touched),
// "memory_limit_bytes" (what each logical device may hold; 0 or absent = what the GPU has), "launch" ("graphs", the
// default, or "kernels": one by one, so that an error names its kernel), "plan_cache" (an absolute path or "off":
// where machine code of generated kernels is kept), "generated_kernels" ("automatic", the default; "always":
// elementwise work of any size is compiled at run time, and it is an error where it cannot be; "never").
#ifndef TUTTI_BACKEND_GPU_PROGRAM_GPU_BACKEND_H_
#define TUTTI_BACKEND_GPU_PROGRAM_GPU_BACKEND_H_

#include <tutti/plugin/backend.h>

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// The table, or null where the host speaks another version.
const tutti_backend_api *entry(uint32_t host_abi_version);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_PROGRAM_GPU_BACKEND_H_
