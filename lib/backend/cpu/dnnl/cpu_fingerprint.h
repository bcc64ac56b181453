// SPDX-License-Identifier: Apache-2.0
//
// What times of kernels are of: this processor, this library and oneDNN.
//
// Threads: any.
#ifndef TUTTI_BACKEND_CPU_DNNL_CPU_FINGERPRINT_H_
#define TUTTI_BACKEND_CPU_DNNL_CPU_FINGERPRINT_H_

#include <string>

#include "backend/plan_cache.h"

namespace tutti::impl::backend::cpu {

/// Model and usable instruction sets of the processor, versions of the library and of oneDNN.
const DeviceFingerprint &cpu_fingerprint();
/// Where its times are kept; the folder "" = nowhere.
PlanCache cpu_plan_cache(std::string folder);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DNNL_CPU_FINGERPRINT_H_
