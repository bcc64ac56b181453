// SPDX-License-Identifier: Apache-2.0
//
// The trainer while a session has it: opened, or taken over from the session before, and left to the next one. What
// changes or copies weights takes a turn of the LiveTrainer, so that others look between two steps only; the rest is
// reached by `->`.
//
// Threads: the session's.
#ifndef TUTTI_ESTIMATOR_SESSION_TRAINER_H_
#define TUTTI_ESTIMATOR_SESSION_TRAINER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "data/element/element.h"
#include "distribute/train/trainer.h"
#include "estimator/estimator_state.h"
#include "estimator/run_state.h"

namespace tutti::impl::estimator {

class SessionTrainer {
 public:
  /// `state` outlives it.
  explicit SessionTrainer(EstimatorState &state) : state_(state) {}

  /// Takes over what the last session left, else opens one, without any weights yet; so too where only one of both
  /// models has a rate factor, and what was left becomes the version to resume from. Nobody can look at it before
  /// share(). `input`: of its batches.
  base::Status open(const graph::Model &model, const data::ElementSpec &input, const base::CancelToken *cancel);
  /// It has the weights of the last session.
  bool is_taken_over() const { return is_taken_over_; }
  /// Lets others look at it.
  void share();

  bool is_open() const { return trainer_ != nullptr; }
  distribute::Trainer *operator->() const { return trainer_.get(); }
  distribute::Trainer &operator*() const { return *trainer_; }

  /// Trainer::run() in one turn.
  base::Result<distribute::RunReport> run(int64_t steps, const base::CancelToken *cancel);
  /// Trainer::run_step_function() in one turn.
  base::Result<distribute::StepFunctionReport> run_step_function(std::string_view function,
                                                                 std::vector<tensor::Tensor> batch,
                                                                 const base::CancelToken *cancel);
  /// Trainer::exchange_with_workers() in one turn.
  base::Result<std::vector<std::vector<std::byte>>> exchange_with_workers(std::span<const std::byte> own,
                                                                          const base::CancelToken *cancel);
  /// Other workers hear of a stop between runs, too.
  base::Status stop_workers(const base::CancelToken *cancel);
  /// The weights of the current step, the newest ones of the estimator from now on.
  base::Result<base::Ref<checkpoint::WeightVersion>> publish(bool with_slots);
  base::Result<tensor::Tensor> get_variable(std::string_view variable);
  base::Status set_variable(std::string_view variable, const tensor::Tensor &value);
  base::Result<tensor::Tensor> gradient(std::string_view variable);

  /// What is the trainer's in a run state.
  void save(RunState &run) const;

  /// Leaves it to the next session, which goes on from `run`. After this nothing but close() is called.
  void leave(RunState run);
  /// Nobody looks at it any more.
  void unshare();
  /// Lets go of the input and of what was not left to the next session. A read in progress has been cancelled.
  void close();

 private:
  base::Status replace_trainer();
  base::Status open_trainer(const graph::Model &written, const data::ElementSpec &input,
                            const base::CancelToken *cancel);

  EstimatorState &state_;
  std::unique_ptr<distribute::Trainer> trainer_;
  bool is_taken_over_ = false;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_SESSION_TRAINER_H_
