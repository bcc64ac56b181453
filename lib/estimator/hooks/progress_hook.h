// SPDX-License-Identifier: Apache-2.0
//
// Shows whoever sits at a terminal how far a training is (progress_line.h).
#ifndef TUTTI_ESTIMATOR_HOOKS_PROGRESS_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_PROGRESS_HOOK_H_

#include <functional>
#include <string_view>

#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

/// Where a hook writes its text.
struct TextOutput {
  std::function<void(std::string_view text)> write;
  /// Whether a line may be written over, and how many columns there are now.
  bool is_terminal = false;
  std::function<int()> columns;
};

/// Standard error as it is now. A terminal that knows no control characters (TERM=dumb) counts as none.
TextOutput standard_error();

/// On a terminal one line that is written again four times a second, which evaluations are written above; elsewhere a
/// line each ten seconds, for each evaluation and at the end.
Hook progress_hook(TextOutput output);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_PROGRESS_HOOK_H_
