// SPDX-License-Identifier: Apache-2.0
//
// How fast a run goes between two events.
//
//   rate.mark(event);                                              // at the first one, and whenever it starts anew
//   if (const auto speed = rate.since_mark(later)) text += speed->examples_per_second;
#ifndef TUTTI_ESTIMATOR_HOOKS_EVENT_RATE_H_
#define TUTTI_ESTIMATOR_HOOKS_EVENT_RATE_H_

#include <cstdint>
#include <optional>

#include "base/trace.h"
#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

struct Speed {
  double steps_per_second = 0;
  double examples_per_second = 0;
};

class EventRate {
 public:
  void mark(const Event &event) {
    time_ns_ = base::now_ns();
    step_ = event.step;
    examples_ = event.examples;
  }

  /// Nothing before the first mark, or where no step lies between.
  std::optional<Speed> since_mark(const Event &event) const {
    if (time_ns_ == 0 || event.step <= step_) return std::nullopt;
    const double seconds = 1e-9 * static_cast<double>(base::now_ns() - time_ns_);
    if (seconds <= 0) return std::nullopt;
    return Speed{static_cast<double>(event.step - step_) / seconds,
                 static_cast<double>(event.examples - examples_) / seconds};
  }

 private:
  int64_t time_ns_ = 0;  // 0: not marked
  int64_t step_ = 0;
  int64_t examples_ = 0;
};

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_EVENT_RATE_H_
