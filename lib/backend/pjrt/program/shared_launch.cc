// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/program/shared_launch.h"

#include <algorithm>
#include <utility>

namespace tutti::impl::backend::pjrt {

using base::Status;

Status SharedLaunch::bring(size_t place, DeviceRun &run, Issue issue) {
  std::lock_guard lock(mutex_);
  brought_[place] = &run;
  if (std::ranges::any_of(brought_, [](const DeviceRun *one) { return one == nullptr; })) return Status();
  const Status status = issue(brought_);
  std::ranges::fill(brought_, nullptr);
  std::ranges::fill(outcomes_, status);
  return status;
}

void SharedLaunch::withdraw(size_t place, const DeviceRun &run) {
  std::lock_guard lock(mutex_);
  if (brought_[place] == &run) brought_[place] = nullptr;
}

Status SharedLaunch::take(size_t place) {
  std::lock_guard lock(mutex_);
  if (std::exchange(brought_[place], nullptr) == nullptr) return outcomes_[place];
  return base::failed_precondition("a program of ", brought_.size(), " devices was not run on all of them");
}

}  // namespace tutti::impl::backend::pjrt
