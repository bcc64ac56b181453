// SPDX-License-Identifier: Apache-2.0
//
// Which devices work together where the program does not say: all that have memory of their own, such as GPUs or TPUs;
// else processors, as replicas with threads each.
//
//   TUTTI_ASSIGN(const AutoChoice choice, choose_devices(devices, {.threads = 8, .batch_size = 64}));
//
// On processors a replica with one thread is as fast as a thread more for one replica, and faster where the work of a
// step is little: threads that share an operation meet after each of them, replicas once a step. So there are as many
// replicas as threads, as long as each has two rows of a batch; what is left over goes to them as more threads.
// (Measured by tests/bench/replica_bench; two rows are the fewest that were.)
#ifndef TUTTI_DISTRIBUTE_STRATEGY_AUTO_CHOICE_H_
#define TUTTI_DISTRIBUTE_STRATEGY_AUTO_CHOICE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "distribute/strategy/strategy.h"

namespace tutti::impl::distribute {

struct AutoRequest {
  int32_t threads = 1;           ///< the most that a call keeps busy
  int64_t batch_size = 0;        ///< rows of a global batch; 0 = not known
  int64_t logical_replicas = 0;  ///< the number of devices divides it; 0 = no matter
};

struct AutoChoice {
  std::vector<DeviceChoice> devices;
  int32_t threads_per_replica = 1;
  std::string reason;  ///< for people: "2 of 4 devices with memory of their own: batches have 2 rows"
};

/// Of all devices of a context. INVALID_ARGUMENT where there are none.
base::Result<AutoChoice> choose_devices(std::span<const DeviceChoice> devices, const AutoRequest &request);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_AUTO_CHOICE_H_
