// SPDX-License-Identifier: Apache-2.0
//
// The dynamic scale of a loss (Micikevicius et al., Mixed Precision Training, 2018). Gradients in f16 lose what is
// below 2^-24: the gradient of the loss is multiplied by a power of two, and what comes of it divided by that in f32
// before it is clipped or updates anything. Where a gradient is not finite the step changes nothing and the scale is
// halved; after many good steps it is doubled. Results do not depend on it but where numbers are too large or too
// small for their type.
//
//   LossScaleState state = first_loss_scale(options);
//   if (!judge_step(options, all_finite, state)) return base::out_of_range(...);   // nothing left to halve
//
// Every replica keeps the state for itself: it follows from what all of them know of a step. A value; threads: any.
#ifndef TUTTI_DISTRIBUTE_PLAN_LOSS_SCALE_H_
#define TUTTI_DISTRIBUTE_PLAN_LOSS_SCALE_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tutti::impl::distribute {

/// The entry that step graphs read it from, f32: that of the step under way, or of the last one.
inline constexpr std::string_view loss_scale_entry = "report/loss_scale";

struct LossScaleOptions {
  bool is_on = false;
  int64_t first = int64_t{1} << 16, largest = int64_t{1} << 24;  ///< powers of two
  int64_t steps_to_double = 2000;                                ///< good ones in a row
};

struct LossScaleState {
  int64_t scale = 0;          ///< of the next step; 0 = there is none yet
  int64_t good_steps = 0;     ///< in a row, since it was changed last
  int64_t skipped_steps = 0;  ///< since the beginning

  bool operator==(const LossScaleState &) const = default;
};

inline LossScaleState first_loss_scale(const LossScaleOptions &options) {
  return {options.is_on ? options.first : 0, 0, 0};
}

/// After a step: `is_good` says that its gradients are finite. False where they are not and the scale is 1 already.
inline bool judge_step(const LossScaleOptions &options, bool is_good, LossScaleState &state) {
  if (!is_good) {
    if (state.scale <= 1) return false;
    state.scale /= 2;
    state.good_steps = 0;
    ++state.skipped_steps;
  } else if (++state.good_steps >= options.steps_to_double) {
    state.scale = std::max(state.scale, std::min(state.scale * 2, options.largest));
    state.good_steps = 0;
  }
  return true;
}

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_LOSS_SCALE_H_
