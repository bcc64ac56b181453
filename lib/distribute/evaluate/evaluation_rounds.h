// SPDX-License-Identifier: Apache-2.0
//
// The rounds of one evaluation, over all workers (worker_rounds.h) or in one process, for which a round is a batch.
//
//   TUTTI_ASSIGN(EvaluationRounds rounds, EvaluationRounds::begin(...));
//   for (bool more = true; more;) {
//     RoundRead read;
//     ...                                        // up to rounds.batches_to_read() batches, computing its own
//     TUTTI_ASSIGN(more, rounds.finish_round(read));
//   }
//   TUTTI_TRY(rounds.add_up(...));
//
// Internal to this folder. Threads: one.
#ifndef TUTTI_DISTRIBUTE_EVALUATE_EVALUATION_ROUNDS_H_
#define TUTTI_DISTRIBUTE_EVALUATE_EVALUATION_ROUNDS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/executable.h"
#include "base/status.h"
#include "distribute/strategy/strategy.h"
#include "distribute/workers/worker_rounds.h"

namespace tutti::impl::distribute {

class EvaluationRounds {
 public:
  struct Options {
    int64_t max_batches = -1;  ///< of the input, or of each where workers have their own; negative = all
    int64_t timeout_ms = 600000;
    const base::CancelToken *cancel = nullptr;  ///< outlives it
  };
  /// Workers meet, and must have the same state.
  static base::Result<EvaluationRounds> begin(const Strategy &strategy, const WorkerState &state,
                                              const Options &options);

  /// In this round; fewer where the input ends.
  int64_t batches_to_read() const;
  /// Is the b-th of them computed here?
  bool is_own(int64_t b) const { return b == turn_.position; }
  /// Different for each batch, whoever computes it; as in one process where all have the same input.
  int64_t number_of(int64_t b) const {
    return divides_input_ ? batches_ * workers_.count + workers_.index : batches_ + b;
  }
  /// Tells the others; true: there is another round. FAILED_PRECONDITION on all workers, naming one that has read
  /// something else than worker 0 where all should read the same.
  base::Result<bool> finish_round(const RoundRead &read);

  /// So far, of all workers. Batches that workers with their own input computed in the same round count as one.
  int64_t batches() const { return batches_; }
  int64_t rows() const { return rows_; }

  /// The sums of all workers, in their order, in place of this one's. `known`: entries that are no sums; they are those
  /// of the first worker that had rows. `sums`: memory of the host, in which entries lie at their offsets.
  base::Status add_up(std::span<const backend::StateEntry *const> entries, std::span<const std::string> known,
                      std::byte *sums);
  /// Numbers of all workers, as many of each, in their order.
  base::Result<std::vector<double>> gather(std::span<const double> own);
  /// Ends those of the others; the cause.
  void leave(const base::Status &cause) {
    if (all_ != nullptr) all_->leave(cause);
  }

 private:
  base::Status check_same_input(int64_t batches, int64_t rows) const;

  Workers workers_;
  BatchTurn turn_;
  bool divides_input_ = false;
  int64_t max_batches_ = -1;
  std::unique_ptr<WorkerRounds> all_;  // null in one process
  std::vector<int64_t> told_;
  int64_t batches_ = 0, rows_ = 0;
  int32_t first_with_rows_ = -1;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_EVALUATE_EVALUATION_ROUNDS_H_
