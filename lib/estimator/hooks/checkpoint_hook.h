// SPDX-License-Identifier: Apache-2.0
//
// Saves a checkpoint at a cadence. The first and the last checkpoint of a run come without it.
#ifndef TUTTI_ESTIMATOR_HOOKS_CHECKPOINT_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_CHECKPOINT_HOOK_H_

#include <cstdint>

#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

/// Every so many steps, or every so many seconds when `every_steps` is 0.
Hook checkpoint_hook(int64_t every_steps, double every_secs);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_CHECKPOINT_HOOK_H_
