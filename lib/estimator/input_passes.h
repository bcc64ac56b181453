// SPDX-License-Identifier: Apache-2.0
//
// Passes of a session over its dataset: which one it is in and how far, where it goes on in one that was begun before,
// and how long a whole one is.
//
//   passes.restore(run, from_checkpoint);
//   TUTTI_TRY(passes.attach(trainer));            // the trainer reads the pass
//   passes.add_examples(report.examples);
//   TUTTI_ASSIGN(bool counts, passes.end(step));  // the input has ended: until the next attach() it is between two
//
// Threads: the session's.
#ifndef TUTTI_ESTIMATOR_INPUT_PASSES_H_
#define TUTTI_ESTIMATOR_INPUT_PASSES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "distribute/train/trainer.h"
#include "estimator/estimator_state.h"
#include "estimator/requests.h"
#include "estimator/run_state.h"

namespace tutti::impl::estimator {

class InputPasses {
 public:
  /// `state` and `request` outlive it.
  InputPasses(EstimatorState &state, const TrainRequest &request);

  /// Finds what this worker reads of the dataset (dataset_parts.h); before all else.
  base::Status find_part();
  /// That, or the dataset as long as it was not looked for.
  const data::Dataset &part() const { return part_ != nullptr ? *part_ : *request_.dataset; }
  /// What all workers must agree on, for people.
  std::vector<std::string> settings() const;

  /// Goes on in the pass that `run` was in. `from_checkpoint`: that is what a checkpoint of model_dir says, so a place
  /// that the input cannot go to is an error.
  void restore(const RunState &run, bool from_checkpoint);
  /// What is of the passes in a run state, `input` as the session found it.
  void save(RunState &run) const;

  /// Gives the trainer a walk over the dataset from the place where the pass is.
  base::Status attach(distribute::Trainer &trainer);
  void add_examples(int64_t rows) { examples_ += rows; }
  /// The input has ended at this step. False for a pass that does not count: a former call left it at its very end.
  /// INVALID_ARGUMENT when a whole pass had no row.
  base::Result<bool> end(int64_t step);
  /// Leaves the pass that was begun before; the next one is the one to count from.
  void leave();
  /// Ends a read in progress.
  void cancel_reading() { reading_->cancel(); }

  /// The pass is complete, the next one not yet attached.
  bool is_between() const { return is_between_; }
  /// Completed passes.
  int64_t epoch() const { return epoch_; }
  /// Position in the pass; null at its beginning and when it is complete.
  base::Result<base::Json> position(distribute::Trainer &trainer) const;
  /// The step after so many passes, the one under way being the first; -1 where it is not known how long one is. A
  /// pass may be longer than the one before it was.
  int64_t step_after(int64_t passes, int64_t step) const;

 private:
  /// A walk over the dataset from the beginning of the pass.
  base::Result<std::unique_ptr<data::Iterator>> open(distribute::Trainer &trainer);
  /// The same, at the place where the pass is.
  base::Result<std::unique_ptr<data::Iterator>> open_there(distribute::Trainer &trainer);
  /// What was divided, or is as a whole; where a user has gone on from a part, that.
  const data::Dataset &whole() const;
  /// Are there files of this worker alone? Then nobody knows the position of the others but by its number of batches.
  bool reads_own_files() const;
  /// Why the place where the pass is means nothing to how the dataset is divided now; empty when it does.
  std::string other_division() const;
  base::Status skip_batches(data::Iterator &iterator) const;
  void begin_new(std::string_view why);
  /// Steps that a whole pass takes, or that the last one took where the dataset does not tell; -1 before one has ended.
  int64_t steps_of_pass() const;

  EstimatorState &state_;
  const TrainRequest &request_;
  data::DatasetRef part_;
  const base::Ref<base::CancelToken> reading_;
  int64_t epoch_ = 0;
  base::Json begun_at_;  // where the pass was when the session came to it; null: at its beginning
  std::string signature_;
  bool from_checkpoint_ = false;
  bool is_between_ = false;
  bool skips_ended_ = false;    // the former call ended well: a pass it left at its very end is not ours
  int64_t examples_ = 0;        // rows of this pass in this session
  int64_t batches_before_ = 0;  // of this pass, before this session read of it,
  int64_t counter_before_ = 0;  // and the trainer's number of batches then
  int64_t first_step_ = 0;      // the step at which this pass began
  int64_t whole_steps_ = -1;    // of the last pass that was whole; -1 = there was none
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_INPUT_PASSES_H_
