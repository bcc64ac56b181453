// SPDX-License-Identifier: Apache-2.0
#include "base/counters.h"

#include <tuple>

namespace tutti::impl::base {

Counter &Counters::get(std::string_view name) {
  std::lock_guard lock(mutex_);
  const auto found = counters_.find(name);
  if (found != counters_.end()) return found->second;
  return counters_.emplace(std::piecewise_construct, std::forward_as_tuple(name), std::forward_as_tuple())
      .first->second;
}

std::vector<std::pair<std::string, int64_t>> Counters::snapshot() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, int64_t>> values;
  values.reserve(counters_.size());
  for (const auto &[name, counter] : counters_)
    values.emplace_back(name, counter.value());
  return values;
}

void Counters::reset() {
  std::lock_guard lock(mutex_);
  for (auto &[name, counter] : counters_)
    counter.set(0);
}

}  // namespace tutti::impl::base
