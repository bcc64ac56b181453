// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/stop_at_step_hook.h"

namespace tutti::impl::estimator::hooks {

using base::Result;

Result<Hook> stop_at_step_hook(int64_t last_step) {
  if (last_step < 1) return base::invalid_argument("last_step is ", last_step, ", expected at least 1");
  Hook hook;
  hook.name = "stop_at_step";
  // Multiples of the step: the first of them is the step itself.
  hook.every_steps = last_step;
  hook.function = [last_step](const Event &event) -> Result<Answer> {
    const bool asked = event.kind == EventKind::begin || event.kind == EventKind::step;
    return asked && event.step >= last_step ? Answer::stop : Answer::go_on;
  };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
