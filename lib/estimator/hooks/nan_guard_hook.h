// SPDX-License-Identifier: Apache-2.0
//
// Ends a run when a value is NaN or infinite: an error naming value and step, or a stop. (A loss that is not finite is
// an error without any hook; this one watches metrics, or chooses to stop.)
#ifndef TUTTI_ESTIMATOR_HOOKS_NAN_GUARD_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_NAN_GUARD_HOOK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

struct NanGuardOptions {
  std::vector<std::string> values = {"loss"};
  int64_t every_steps = 1;
  bool stop_instead_of_error = false;
};

Hook nan_guard_hook(NanGuardOptions options);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_NAN_GUARD_HOOK_H_
