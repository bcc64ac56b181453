// SPDX-License-Identifier: Apache-2.0
//
// Where a session ends: what its request asks for in steps or passes, and why it has ended. A call with `epochs` that
// was interrupted keeps the end that it had.
//
// Threads: the session's.
#ifndef TUTTI_ESTIMATOR_TRAINING_GOAL_H_
#define TUTTI_ESTIMATOR_TRAINING_GOAL_H_

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "estimator/input_passes.h"
#include "estimator/requests.h"
#include "estimator/run_state.h"

namespace tutti::impl::estimator {

class TrainingGoal {
 public:
  /// Takes up the goal that `run` had, which set() may go on to.
  void restore(const RunState &run);
  /// What is of the goal in a run state.
  void save(RunState &run) const;
  /// What the request asks for, from this step on: for whole passes `passes` leaves one that is under way for another
  /// reason. Ends at once where the model has had max_steps already.
  base::Status set(const TrainRequest &request, int64_t step, InputPasses &passes);

  /// The last step where a number was asked for.
  const std::optional<int64_t> &last_step() const { return last_step_; }
  /// The pass before which it ends; 0 where none were asked for.
  int64_t end_epoch() const { return end_epoch_; }
  /// Where it ends as far as steps asked for or the length of a pass tell; else -1.
  int64_t expected_end(const InputPasses &passes, int64_t step) const;

  /// Why it has ended; none: there is more to do.
  const std::optional<EndReason> &reason() const { return reason_; }
  bool is_reached() const { return reason_ && *reason_ != EndReason::stopped && *reason_ != EndReason::max_seconds; }
  /// Ends it, unless it has ended for another reason.
  void end(EndReason reason) {
    if (!reason_) reason_ = reason;
  }
  /// A pass is complete. `counts`: it is not one that a former call left at its very end.
  void end_pass(int64_t epoch, bool counts);
  /// All is saved: nothing of a goal that is reached is left for a later call.
  void close();

 private:
  std::optional<int64_t> last_step_;
  std::optional<EndReason> reason_;
  int64_t requested_epochs_ = 0;
  int64_t end_epoch_ = 0;
  bool is_finished_ = true;  // as RunState::finished
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_TRAINING_GOAL_H_
