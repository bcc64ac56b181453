// SPDX-License-Identifier: Apache-2.0
//
// What a library prepared for each GPU that a kernel ran on. The first is made when the node is compiled.
//
// `Handles` is the library's handles of one GPU, by a pointer that shares them: they have an ordinal().
//
// Threads: functions may be called from any thread.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_PLANS_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_PLANS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

template <typename Handles, typename Plan>
class DevicePlans {
 public:
  /// That of the handles' device: the one there is, else what `find` gives (Result<std::optional<Plan>>, called by one
  /// thread at a time), which stays; null where it gives none.
  template <typename Find>
  base::Result<const Plan *> get(const Handles &handles, Find find) {
    const std::lock_guard guard(mutex_);
    const auto kept = plans_.find(handles->ordinal());
    if (kept != plans_.end()) return &kept->second.plan;
    TUTTI_ASSIGN(std::optional<Plan> plan, find());
    if (!plan) return static_cast<const Plan *>(nullptr);
    return &plans_.emplace(handles->ordinal(), OnDevice{handles, std::move(*plan)}).first->second.plan;
  }

 private:
  struct OnDevice {
    Handles handles;  // outlive the plan
    Plan plan;
  };

  std::mutex mutex_;
  std::map<int32_t, OnDevice> plans_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_PLANS_H_
