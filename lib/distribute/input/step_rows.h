// SPDX-License-Identifier: Apache-2.0
//
// The micro-batches of a step over all workers, and this worker's place in them. Workers tell each other with the
// control words of the step how many rows they have: a block of words for each, of which each fills its own and leaves
// 0 elsewhere, so that the maximum over all gives everybody all of them.
//
//   rows.publish(words, input, 0);  // then an all_reduce (maximum) of the words
//   TUTTI_TRY(rows.take(words, input, step));
//
// One worker alone needs no words, and is given none. Internal to this folder. Threads: one.
#ifndef TUTTI_DISTRIBUTE_INPUT_STEP_ROWS_H_
#define TUTTI_DISTRIBUTE_INPUT_STEP_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "distribute/input/input_binding.h"
#include "distribute/input/step_feeder.h"
#include "distribute/strategy/strategy.h"

namespace tutti::impl::distribute {

class StepRows {
 public:
  StepRows() = default;
  /// `divides_input`: every worker has batches of its own; else all have the same.
  StepRows(const Workers &workers, bool divides_input, int32_t accumulation);

  /// Of all workers together.
  int64_t word_count() const { return workers_.count > 1 ? workers_.count * words_each() : 0; }
  /// `program`: which of this worker's programs may be launched as it was recorded (recorded_steps.h), at least
  /// kFirstProgram; or 0.
  void publish(int64_t *words, const StepInput &input, int64_t program);
  /// Takes the step in; an error is the same on all workers: FAILED_PRECONDITION naming one that has read other rows
  /// than worker 0 where all should read the same.
  base::Status take(const int64_t *words, const StepInput &input, int64_t step);
  /// Why the input of some worker is bad: this one's, or which.
  base::Status input_error(const int64_t *words, const StepInput &input) const;

  /// What each worker has published; empty where one has none.
  std::span<const int64_t> programs() const { return programs_; }
  static constexpr int64_t kFirstProgram = 2;

  /// Micro-batches; 0 = the inputs of all workers have ended.
  int32_t count() const { return count_; }
  /// Of all workers, in all micro-batches.
  int64_t step_rows() const { return step_rows_; }
  /// Of this worker's batch m, which may be none.
  int64_t own(int32_t m) const { return own_[static_cast<size_t>(m)]; }
  /// Where that begins among the rows of all workers.
  int64_t first(int32_t m) const { return first_[static_cast<size_t>(m)]; }
  /// Which of them are those of one of `contributors`, over all workers.
  RowRange share(int32_t m, int32_t contributor, int32_t contributors) const {
    return share_of(own(m), contributor, contributors);
  }
  /// Where the rows of each contributor stand among all of the step: micro-batch by micro-batch, and in each worker by
  /// worker; where there are several parts, each begins at a multiple of `unit`. Gives the end of the last one.
  int64_t list_places(int32_t contributors, int64_t unit, std::vector<RowRange> &places) const;
  /// Rows of each worker in each micro-batch: while these are the same, so are places.
  const std::vector<int64_t> &of_workers() const { return of_workers_; }
  /// The same of a batch of so many rows.
  RowRange share_of(int64_t own_rows, int32_t contributor, int32_t contributors) const;

 private:
  int64_t words_each() const { return 1 + static_cast<int64_t>(own_.size()); }
  const int64_t *words_of(const int64_t *words, int32_t worker) const { return words + worker * words_each(); }
  base::Result<int64_t> rows_of_all(const int64_t *words, size_t m, int64_t step);

  Workers workers_;
  bool divides_input_ = false;
  int32_t count_ = 0;
  int64_t step_rows_ = 0;
  std::vector<int64_t> own_, first_;
  std::vector<int64_t> of_workers_;  // by micro-batch and worker
  std::vector<int64_t> programs_;
  int64_t program_alone_ = 0;  // of one worker
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_STEP_ROWS_H_
