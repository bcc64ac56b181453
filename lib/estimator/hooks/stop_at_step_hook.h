// SPDX-License-Identifier: Apache-2.0
//
// Stops a run at a step of the model: reason STOPPED, whatever the goal of the run was.
#ifndef TUTTI_ESTIMATOR_HOOKS_STOP_AT_STEP_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_STOP_AT_STEP_HOOK_H_

#include <cstdint>

#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

/// INVALID_ARGUMENT unless last_step >= 1. A run that begins at or behind it stops before its first step.
base::Result<Hook> stop_at_step_hook(int64_t last_step);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_STOP_AT_STEP_HOOK_H_
