// SPDX-License-Identifier: Apache-2.0
//
// Writes the progress of a run to a logger:
//
//   step 1200 of 5000: loss 0.0412, 51234 examples/s, 800.5 steps/s, 4 s left
//
// Speeds are of the time since the line before; what is left is known when the run ends at a step.
#ifndef TUTTI_ESTIMATOR_HOOKS_LOGGING_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_LOGGING_HOOK_H_

#include <cstdint>

#include "base/log.h"
#include "base/object.h"
#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

/// A line every so many steps, at the start, the end and after each pass.
Hook logging_hook(base::Ref<base::Logger> logger, int64_t every_steps);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_LOGGING_HOOK_H_
