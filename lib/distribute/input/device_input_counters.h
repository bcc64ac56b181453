// SPDX-License-Identifier: Apache-2.0
//
// What DeviceInputs counts (device_inputs.h). Threads: a value.
#ifndef TUTTI_DISTRIBUTE_INPUT_DEVICE_INPUT_COUNTERS_H_
#define TUTTI_DISTRIBUTE_INPUT_DEVICE_INPUT_COUNTERS_H_

#include <cstdint>

namespace tutti::impl::distribute {

/// Batches that were copied into the memory of devices ahead of their steps; none where devices read the host's.
struct DeviceInputCounters {
  int64_t batches = 0;  ///< one for each replica and micro-batch
  int64_t bytes = 0;
  int64_t staged_bytes = 0;  ///< of these: by way of page-locked memory of the host
  int64_t in_time = 0;       ///< batches that were there when their step asked for them
  int64_t mapped = 0;        ///< batches that went through the dataset's last map on the device
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_DEVICE_INPUT_COUNTERS_H_
