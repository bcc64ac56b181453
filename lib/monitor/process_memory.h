// SPDX-License-Identifier: Apache-2.0
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_MONITOR_PROCESS_MEMORY_H_
#define TUTTI_MONITOR_PROCESS_MEMORY_H_

#include <cstdint>

namespace tutti::impl::monitor {

/// Bytes of the host's memory that this process has now, shared ones included; 0 where the system does not tell.
int64_t resident_bytes();
/// The most that it has had; 0 where the system does not tell.
int64_t most_resident_bytes();

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_PROCESS_MEMORY_H_
