// SPDX-License-Identifier: Apache-2.0
//
// Stops a run when a value has not become strictly better for `patience_steps` steps, but not before step `min_steps`.
// It looks at evaluations (train_and_evaluate), or at values of the training steps when it has a cadence. The best
// value so far is kept in checkpoints: a resumed run counts on.
#ifndef TUTTI_ESTIMATOR_HOOKS_EARLY_STOPPING_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_EARLY_STOPPING_HOOK_H_

#include <cstdint>
#include <string>

#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

struct EarlyStoppingOptions {
  std::string value = "loss";
  bool higher_is_better = false;
  int64_t patience_steps = 0;  // at least 1
  int64_t min_steps = 0;
  /// Look at the training steps too, every so many; 0 = at evaluations only.
  int64_t every_steps = 0;
};

/// INVALID_ARGUMENT naming a bad option. An evaluation without the value is an error naming those there are.
base::Result<Hook> early_stopping_hook(EarlyStoppingOptions options);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_EARLY_STOPPING_HOOK_H_
