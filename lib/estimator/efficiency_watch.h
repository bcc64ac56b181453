// SPDX-License-Identifier: Apache-2.0
//
// Looks at the times of training steps in windows, and says once when several replicas scale badly.
#ifndef TUTTI_ESTIMATOR_EFFICIENCY_WATCH_H_
#define TUTTI_ESTIMATOR_EFFICIENCY_WATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "distribute/train/step_times.h"

namespace tutti::impl::estimator {

class EfficiencyWatch {
 public:
  /// A window is complete when it has as many steps, and took as long.
  static constexpr int64_t kSteps = 100;
  static constexpr int64_t kNanoseconds = 5'000'000'000;

  /// Before the first add(): how many replicas there are with those of other workers (shares_of).
  void set_replicas(int64_t in_all) { in_all_ = in_all; }
  /// Further steps of each replica of this process. The warning of the first bad window that they complete; else "".
  std::string add(std::span<const distribute::StepTimes> replicas);
  /// Of all steps so far. `devices`: their names, as of shares_of().
  distribute::StepShares shares(std::span<const std::string> devices = {}) const {
    return distribute::shares_of(all_, devices, in_all_);
  }

 private:
  std::vector<distribute::StepTimes> all_, window_;
  int64_t in_all_ = 0;
  bool has_warned_ = false;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_EFFICIENCY_WATCH_H_
