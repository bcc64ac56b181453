// SPDX-License-Identifier: Apache-2.0
//
// Writes losses and metrics of a training to a file (metrics_file.h).
#ifndef TUTTI_ESTIMATOR_HOOKS_METRICS_FILE_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_METRICS_FILE_HOOK_H_

#include <cstdint>
#include <string>

#include "base/log.h"
#include "base/object.h"
#include "estimator/hook.h"
#include "estimator/hooks/metrics_file.h"

namespace tutti::impl::estimator::hooks {

/// A line for every so many steps, for each evaluation and pass, and one at the end. A file that cannot be opened ends
/// the training at its begin; one that cannot be written later is told to the logger (may be null) once, and the
/// training goes on.
Hook metrics_file_hook(std::string path, MetricsFormat format, int64_t every_steps, base::Ref<base::Logger> logger);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_METRICS_FILE_HOOK_H_
