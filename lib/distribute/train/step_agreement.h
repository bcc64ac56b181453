// SPDX-License-Identifier: Apache-2.0
//
// What ranks agree on before each step: whether it runs, with how many rows of each worker (step_rows.h), and whether
// its kernels are traced. Each rank proposes with control words; the maximum of them over all ranks decides.
//
//   agreement.propose(proposal);
//   TUTTI_TRY(agreement.exchange());
//   TUTTI_ASSIGN(const bool runs, agreement.conclude(input, step, reason));
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_AGREEMENT_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_AGREEMENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "distribute/input/step_feeder.h"
#include "distribute/input/step_rows.h"
#include "distribute/train/rank.h"
#include "distribute/train/trainer.h"

namespace tutti::impl::distribute {

/// What a rank has to say of the next step.
struct StepProposal {
  bool stops = false;                ///< it was told to
  bool reaches_limit = false;        ///< the run has had its steps
  const StepInput *input = nullptr;  ///< null: a step that does not run
  int64_t program = 0;               ///< StepRecorder::program_for()
};

class StepAgreement {
 public:
  explicit StepAgreement(Rank &rank)
      : rank_(rank), rows_(rank.programs().workers, rank.programs().divides_input, rank.programs().accumulation) {}

  /// For so many contributors of this rank.
  void open(size_t contributors);

  void propose(const StepProposal &proposal);
  /// Hears what all ranks propose.
  base::Status exchange();
  /// Whether the step runs, or one without `input` where other workers have rows; else why not, or the error of some
  /// worker's input. `step`: its number, from 1.
  base::Result<bool> conclude(const StepInput &input, int64_t step, StopReason &reason);

  /// After exchange(): the run is over, whatever the input is.
  bool is_over() const { return words_[word_limit] != 0 || words_[word_stop] != 0; }
  bool is_traced() const { return words_[word_trace] != 0; }
  /// After conclude(), of the step that runs.
  const StepRows &rows() const { return rows_; }

 private:
  /// Words of a contributor; those of all workers' rows follow.
  enum Word : int64_t { word_stop = 0, word_limit, word_error, word_trace, word_count };

  Rank &rank_;
  StepRows rows_;
  int64_t words_per_part_ = 0;
  std::vector<int64_t> words_;  // of one contributor behind the other, all alike
  std::vector<void *> pointers_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_AGREEMENT_H_
