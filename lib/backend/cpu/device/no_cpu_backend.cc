// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the backend where oneDNN, Highway or OpenMP was missing at build time.
#include "backend/cpu/device/cpu_backend.h"

namespace tutti::impl::backend::cpu {

const tutti_backend_api *entry(uint32_t) { return nullptr; }

}  // namespace tutti::impl::backend::cpu
