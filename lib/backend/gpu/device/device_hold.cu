// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_hold.h"

namespace tutti::impl::backend::gpu {
namespace {

struct Hold {
  uint32_t *words;
  uint8_t *verdict;
  uint32_t arrival = 0;
  bool has_come = false;

  __device__ bool operator()() {
    if (!has_come) {
      has_come = true;
      arrival = gpu_load_from_host(&words[0]) + 1;
      __threadfence_system();  // what was written before is there first
      gpu_store_to_host(&words[0], arrival);
    }
    if (!has_reached(words[1])) return false;
    __threadfence_system();
    if (verdict != nullptr) *verdict = has_reached(words[2]) ? 1 : 0;
    return true;
  }
  /// Modulo 2^32.
  __device__ bool has_reached(const uint32_t &word) const {
    return static_cast<int32_t>(gpu_load_from_host(&word) - arrival) >= 0;
  }
};

}  // namespace

gpuError_t launch_hold(uint32_t *words, uint8_t *verdict, gpuStream_t stream) {
  return gpu_launch_until(Hold{words, verdict}, stream);
}

}  // namespace tutti::impl::backend::gpu
