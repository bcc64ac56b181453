// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/checkpoint_hook.h"

#include <memory>

namespace tutti::impl::estimator::hooks {

using base::Result;

Hook checkpoint_hook(int64_t every_steps, double every_secs) {
  Hook hook;
  hook.name = "checkpoint";
  hook.every_steps = every_steps;
  hook.every_secs = every_steps > 0 ? 0 : every_secs;
  // By seconds the first event comes at the first step, just after the checkpoint of the start.
  const bool by_time = every_steps <= 0;
  hook.function = [by_time, skip_first = std::make_shared<bool>(by_time)](const Event &event) -> Result<Answer> {
    if (event.kind == EventKind::begin) *skip_first = by_time;
    if (event.kind != EventKind::step) return Answer::go_on;
    if (*skip_first) {
      *skip_first = false;
      return Answer::go_on;
    }
    TUTTI_TRY(event.control->save_checkpoint());
    return Answer::go_on;
  };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
