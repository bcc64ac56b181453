// SPDX-License-Identifier: Apache-2.0
//
// What workers of several processes tell each other between steps, by the groups of their replicas. Internal to this
// folder.
//
// Threads: one for all groups of a process; all workers call the same functions in the same order.
#ifndef TUTTI_DISTRIBUTE_WORKERS_WORKER_EXCHANGE_H_
#define TUTTI_DISTRIBUTE_WORKERS_WORKER_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "collective/group.h"
#include "distribute/strategy/strategy.h"

namespace tutti::impl::distribute {

/// The groups of a worker's replicas, and how many buffers each takes.
struct Meeting {
  std::span<collective::Group *const> groups;
  int32_t parts;
  Workers workers;
};

/// Words of which each worker has its own, none negative, and leaves the others' 0; all get those of all.
base::Status exchange(const Meeting &meeting, std::vector<int64_t> &words);

/// The bytes of each worker, of any number, in the order of the workers.
base::Result<std::vector<std::vector<std::byte>>> exchange_bytes(const Meeting &meeting,
                                                                 std::span<const std::byte> own);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WORKERS_WORKER_EXCHANGE_H_
