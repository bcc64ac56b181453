// SPDX-License-Identifier: Apache-2.0
//
// The hooks of one run and when they are due.
//
// Threads: belongs to the thread that drives the run.
#ifndef TUTTI_ESTIMATOR_HOOK_LIST_H_
#define TUTTI_ESTIMATOR_HOOK_LIST_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "estimator/hook.h"

namespace tutti::impl::estimator {

class HookList {
 public:
  /// INVALID_ARGUMENT for a hook without a function, a negative cadence or two of them, or values without a cadence.
  static base::Result<HookList> make(std::vector<Hook> hooks);

  /// INVALID_ARGUMENT naming hook and value when one wants a value that is not in `available`.
  base::Status check_values(const std::vector<std::string> &available) const;

  /// Steps after `step` until a hook must see one, INT64_MAX when none will.
  int64_t steps_until_due(int64_t step) const;
  /// Seconds after `now_secs` until a hook must see a step, infinity when none will.
  double secs_until_due(double now_secs) const;

  /// Sends a step event to those who are due, each with its values out of event.values (all there are). True: stop. The
  /// first error ends the sending; it names the hook.
  base::Result<bool> send_step(const Event &event, double now_secs);
  /// Sends an event of another kind to all, in order. True: one wants to stop. The first error is returned after all
  /// have seen the event.
  base::Result<bool> send(const Event &event);

  /// What the hooks must remember, by name; null when none has anything.
  base::Json save() const;
  base::Status restore(const base::Json &state);

 private:
  struct Registered {
    Hook hook;
    int64_t last_step = -1;  // of the last step event
    double last_secs = -1;   // of the last step event, or the start
    bool started = false;
  };
  bool is_due(const Registered &registered, int64_t step, double now_secs) const;

  std::vector<Registered> hooks_;
  std::vector<NamedNumber> wanted_;  // reused for each hook
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_HOOK_LIST_H_
