// SPDX-License-Identifier: Apache-2.0
//
// Runs the prepared programs of all contributors, segment by segment, with what lies between segments: collectives that
// programs go on behind, and marks of buckets that are complete. All ranks run them in the same order.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_PROGRAM_RUNNER_H_
#define TUTTI_DISTRIBUTE_TRAIN_PROGRAM_RUNNER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "distribute/train/contributors.h"
#include "distribute/train/gradient_buckets.h"
#include "distribute/train/rank.h"
#include "distribute/train/recording_agreement.h"
#include "distribute/train/step_clock.h"

namespace tutti::impl::distribute {

class ProgramRunner {
 public:
  ProgramRunner(Rank &rank, Contributors &contributors, GradientBuckets &buckets, StepClock &clock,
                RecordingAgreement &recording)
      : rank_(rank), contributors_(contributors), buckets_(buckets), clock_(clock), recording_(recording) {}

  /// The contributors' current programs, with the arguments of micro-batch m. `is_last`: of the step, behind which its
  /// gradients are complete.
  base::Status accumulate(int32_t m, bool is_last);
  /// The same of all micro-batches of a step that its only contributor has programs for.
  base::Status accumulate_all(int32_t micro_batches);
  /// A step that all ranks run as one program.
  base::Status run_together();
  /// The updates, with the scalars of micro-batch m, the last one.
  base::Status finish(int32_t m);

 private:
  /// One time through the programs of all contributors.
  struct Pass {
    bool finishes = false;  // else it accumulates
    int32_t micro_batch = 0;
    bool is_last = false;

    BoundProgram *program_of(const Contributor &contributor) const {
      return finishes ? contributor.finish : contributor.current;
    }
  };

  base::Status run(const Pass &pass);
  /// Of these contributors, in turn.
  base::Status run_segments(std::span<Contributor> parts, const Pass &pass);
  base::Status run_external(int32_t position, const Pass &pass);

  Rank &rank_;
  Contributors &contributors_;
  GradientBuckets &buckets_;
  StepClock &clock_;
  RecordingAgreement &recording_;
  std::vector<void *> external_buffers_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_PROGRAM_RUNNER_H_
