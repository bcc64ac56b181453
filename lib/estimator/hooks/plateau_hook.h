// SPDX-License-Identifier: Apache-2.0
//
// Reduces the learning rate when a value stops improving. The value is checked at evaluations (train_and_evaluate), or
// at training steps when the hook has a cadence. At each check:
//
//   better:  value < best * (1 - threshold), or value > best * (1 + threshold); never where it is NaN
//   bad = better ? 0 : bad + 1;  in a cooldown, which is then one check shorter, bad = 0
//   bad > patience: factor = max(factor * reduction, minimum);  bad = 0;  a cooldown begins
//
// as ReduceLROnPlateau of PyTorch with threshold_mode "rel" and eps 0. The factor is host scalar graph::kRateFactor;
// with the counts it is kept in checkpoints, so a resumed run goes on with it.
#ifndef TUTTI_ESTIMATOR_HOOKS_PLATEAU_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_PLATEAU_HOOK_H_

#include <cstdint>
#include <string>

#include "base/log.h"
#include "base/object.h"
#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

struct PlateauOptions {
  std::string value = "loss";
  bool higher_is_better = false;
  int64_t every_steps = 0;    ///< check the training steps, every so many; 0 = evaluations
  int64_t patience = 10;      ///< bad checks that change nothing; at least 0
  int64_t cooldown = 0;       ///< checks after a reduction that are not bad; at least 0
  double reduction = 0.1;     ///< in [0, 1)
  double threshold = 1e-4;    ///< in [0, 1)
  double minimum_factor = 0;  ///< in [0, 1]
};

/// For a run with a rate factor. `logger`, which hears of reductions, may be null. INVALID_ARGUMENT naming a bad
/// option. A check without the value is an error naming those there are.
base::Result<Hook> plateau_hook(PlateauOptions options, base::Ref<base::Logger> logger);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_PLATEAU_HOOK_H_
