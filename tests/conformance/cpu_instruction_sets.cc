// SPDX-License-Identifier: Apache-2.0
#include <hwy/targets.h>

#include "instruction_sets.h"

namespace tutti::impl::conformance {

void on_instruction_sets(const std::function<void(const char *name)> &body) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    body(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace tutti::impl::conformance
