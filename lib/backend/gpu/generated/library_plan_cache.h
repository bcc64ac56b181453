// SPDX-License-Identifier: Apache-2.0
//
// What a library compiled for a graph of its operations, kept in the plan cache: such plans take seconds to make and a
// millisecond to read. One file for each (kernel_cache.h).
//
// Threads: any.
#ifndef TUTTI_BACKEND_GPU_GENERATED_LIBRARY_PLAN_CACHE_H_
#define TUTTI_BACKEND_GPU_GENERATED_LIBRARY_PLAN_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "backend/gpu/generated/kernel_cache.h"

namespace tutti::impl::backend::gpu {

class LibraryPlanCache {
 public:
  using Log = std::function<void(const std::string &line)>;

  /// `folder`: of the plan cache, "" = none. `device`: what it is, as exactly as plans depend on it. The first thing
  /// that goes wrong is logged.
  LibraryPlanCache(std::string folder, std::string device, Log log)
      : cache_(std::move(folder)), device_(std::move(device)), log_(std::move(log)) {}

  /// `name` says what the plan is of, with the library's version.
  std::optional<std::string> load(const std::string &name) const;
  void store(const std::string &name, const std::string &text) const;

 private:
  std::string key(const std::string &name) const;
  void report(const base::Status &status) const;

  const KernelCache cache_;
  const std::string device_;
  const Log log_;
  mutable std::atomic<bool> has_reported_{false};
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_LIBRARY_PLAN_CACHE_H_
