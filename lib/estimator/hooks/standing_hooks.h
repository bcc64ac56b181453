// SPDX-License-Identifier: Apache-2.0
//
// The hooks that every training of an estimator has, as its run configuration says: periodic checkpoints, the log,
// a file with metrics.
#ifndef TUTTI_ESTIMATOR_HOOKS_STANDING_HOOKS_H_
#define TUTTI_ESTIMATOR_HOOKS_STANDING_HOOKS_H_

#include <vector>

#include "base/log.h"
#include "base/object.h"
#include "estimator/hook.h"
#include "estimator/run_config.h"

namespace tutti::impl::estimator::hooks {

/// `logger` may be null.
std::vector<Hook> standing_hooks(const RunConfig &config, const base::Ref<base::Logger> &logger);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_STANDING_HOOKS_H_
