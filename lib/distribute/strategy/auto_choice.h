// SPDX-License-Identifier: Apache-2.0
//
// Which devices work together where the program does not say: all that have memory of their own, such as GPUs or TPUs;
// else processors, as replicas with threads each.
//
//   TUTTI_ASSIGN(const AutoChoice choice, choose_devices(devices, {.threads = 8, .batch_size = 64}));
//
// On processors there are as many replicas with one thread each as threads, as long as each has 32 rows of a batch;
// what is left over goes to them as more threads. tests/bench/replica_bench on two cores, two replicas with one thread
// against one with two, perceptrons and a small convolutional network: with 32 rows for each replica 0.8 to 1.2 of the
// time, with fewer mostly more, up to 1.7. Not measured with more cores.
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

/// Those with memory of their own, of the first backend that has some: replicas of several do not train together.
std::vector<DeviceChoice> devices_with_own_memory(std::span<const DeviceChoice> devices);

/// Of all devices of a context. INVALID_ARGUMENT where there are none.
base::Result<AutoChoice> choose_devices(std::span<const DeviceChoice> devices, const AutoRequest &request);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_AUTO_CHOICE_H_
