// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_hold.h"

namespace tutti::impl::backend::gpu {
namespace {

struct Hold {
  uint32_t *words;
  uint32_t arrival = 0;
  bool has_come = false;

  __device__ bool operator()() {
    if (!has_come) {
      has_come = true;
      arrival = gpu_load_from_host(&words[0]) + 1;
      __threadfence_system();  // what was written before is there first
      gpu_store_to_host(&words[0], arrival);
    }
    return static_cast<int32_t>(gpu_load_from_host(&words[1]) - arrival) >= 0;
  }
};

}  // namespace

gpuError_t launch_hold(uint32_t *words, gpuStream_t stream) { return gpu_launch_until(Hold{words}, stream); }

}  // namespace tutti::impl::backend::gpu
