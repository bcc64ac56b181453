// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/standing_hooks.h"

#include "estimator/hooks/checkpoint_hook.h"
#include "estimator/hooks/logging_hook.h"
#include "estimator/hooks/metrics_file_hook.h"

namespace tutti::impl::estimator::hooks {

std::vector<Hook> standing_hooks(const RunConfig &config, const base::Ref<base::Logger> &logger) {
  std::vector<Hook> hooks;
  if (logger && config.log_step_count_steps > 0) {
    hooks.push_back(logging_hook(logger, config.log_step_count_steps));
  }
  if (!config.metrics_file.empty()) {
    const bool is_csv = config.metrics_file.ends_with(".csv");
    hooks.push_back(metrics_file_hook(config.metrics_file, is_csv ? MetricsFormat::csv : MetricsFormat::json_lines,
                                      config.metrics_file_steps, logger));
  }
  if (config.saves_checkpoints()) {
    hooks.push_back(checkpoint_hook(config.resolved_checkpoint_steps(), config.resolved_checkpoint_secs()));
  }
  return hooks;
}

}  // namespace tutti::impl::estimator::hooks
