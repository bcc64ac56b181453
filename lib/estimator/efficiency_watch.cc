// SPDX-License-Identifier: Apache-2.0
#include "estimator/efficiency_watch.h"

namespace tutti::impl::estimator {

std::string EfficiencyWatch::add(std::span<const distribute::StepTimes> replicas) {
  distribute::add_times(all_, replicas);
  distribute::add_times(window_, replicas);
  if (window_.empty() || window_[0].steps < kSteps || window_[0].total_ns < kNanoseconds) return "";
  std::string warning = has_warned_ ? "" : distribute::shares_of(window_, {}, in_all_).warning();
  has_warned_ |= !warning.empty();
  window_.clear();
  return warning;
}

}  // namespace tutti::impl::estimator
