// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/library_plan_cache.h"

namespace tutti::impl::backend::gpu {

std::string LibraryPlanCache::key(const std::string &name) const { return base::concat(device_, "\n", name, "\n"); }

std::optional<std::string> LibraryPlanCache::load(const std::string &name) const {
  base::Result<std::string> found = cache_.load(key(name));
  if (found.ok()) return std::move(found).value();
  if (found.status().code() != base::Code::not_found) report(found.status());
  return std::nullopt;
}

void LibraryPlanCache::store(const std::string &name, const std::string &text) const {
  const base::Status status = cache_.store(key(name), text);
  if (!status.ok()) report(status);
}

void LibraryPlanCache::report(const base::Status &status) const {
  if (!has_reported_.exchange(true)) log_("plans of libraries are not cached: " + status.message());
}

}  // namespace tutti::impl::backend::gpu
