// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/nan_guard_hook.h"

#include <cmath>
#include <utility>

namespace tutti::impl::estimator::hooks {

using base::Result;

Hook nan_guard_hook(NanGuardOptions options) {
  Hook hook;
  hook.name = "nan_guard";
  hook.every_steps = options.every_steps;
  hook.values = std::move(options.values);
  hook.function = [stop = options.stop_instead_of_error](const Event &event) -> Result<Answer> {
    if (event.kind != EventKind::step) return Answer::go_on;
    for (const NamedNumber &value : event.values) {
      if (!value.is_number() || std::isfinite(value.value)) continue;
      if (stop) return Answer::stop;
      return base::failed_precondition("'", value.name, "' is ", value.value, " at step ", event.step);
    }
    return Answer::go_on;
  };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
