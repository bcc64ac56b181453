// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/device/cpu_backend.h"
#include "bench_backend.h"

namespace tutti::testing {

const tutti_backend_api *bench_backend(uint32_t host_abi_version) {
  return impl::backend::cpu::entry(host_abi_version);
}

}  // namespace tutti::testing
