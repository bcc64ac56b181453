// SPDX-License-Identifier: Apache-2.0
//
// The table of collective operations that a GPU backend offers (<tutti/plugin/backend.h>): over NCCL or what has its
// interface (nccl_clique.cc), or none where the build has no header of it (no_nccl.cc).
#ifndef TUTTI_BACKEND_GPU_RUNTIME_COLLECTIVE_TABLE_H_
#define TUTTI_BACKEND_GPU_RUNTIME_COLLECTIVE_TABLE_H_

#include <tutti/plugin/backend.h>

#include <cstddef>
#include <string>
#include <utility>

namespace tutti::impl::backend::gpu {

/// Null: the devices cannot be connected.
const tutti_collective_table *collective_table();

/// The library's name, and its version or why it "is missing: ...". It is opened now at the latest.
std::pair<std::string, std::string> describe_collective_library();

/// Memory of the current GPU that others may be given windows to; null where the library makes none.
void *allocate_window(size_t bytes);
void release_window(void *memory);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_COLLECTIVE_TABLE_H_
