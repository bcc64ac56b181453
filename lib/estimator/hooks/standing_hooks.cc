// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/standing_hooks.h"

#include "estimator/hooks/checkpoint_hook.h"
#include "estimator/hooks/logging_hook.h"

namespace tutti::impl::estimator::hooks {

std::vector<Hook> standing_hooks(const RunConfig &config, const base::Ref<base::Logger> &logger) {
  std::vector<Hook> hooks;
  if (logger && config.log_step_count_steps > 0) {
    hooks.push_back(logging_hook(logger, config.log_step_count_steps));
  }
  if (config.saves_checkpoints()) {
    hooks.push_back(checkpoint_hook(config.resolved_checkpoint_steps(), config.resolved_checkpoint_secs()));
  }
  return hooks;
}

}  // namespace tutti::impl::estimator::hooks
