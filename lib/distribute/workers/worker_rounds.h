// SPDX-License-Identifier: Apache-2.0
//
// What workers of several processes do together while they evaluate or predict, round after round. In a round each
// computes one batch: where all have the same input, worker w the w-th of as many as there are workers, else its own
// next one; one that has no batch walks along. All learn how far the others are at the end of each round, so that one
// that ends, fails, dies or does not answer is known to the others there, within the limit.
//
//   TUTTI_ASSIGN(auto rounds, WorkerRounds::begin(strategy, state, 60000, token));   // meets the others
//   ...
//   TUTTI_TRY(rounds->tell({&rows, 1}, rows_of_all));
//
// Errors are final; they name the worker. Every worker makes the same calls.
// Threads: one at a time; leave() from any. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_WORKERS_WORKER_ROUNDS_H_
#define TUTTI_DISTRIBUTE_WORKERS_WORKER_ROUNDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "collective/group.h"
#include "distribute/strategy/strategy.h"
#include "distribute/workers/worker_agreement.h"

namespace tutti::impl::distribute {

/// Which batches of its input a process computes: of so many in a row the one at this position.
struct BatchTurn {
  int32_t period = 1, position = 0;
};
/// `divides_input`: every process has batches of its own; else all have the same.
BatchTurn batch_turn(const Strategy &strategy, bool divides_input);

/// What a worker has read of its input in a round.
struct RoundRead {
  int64_t batches = 0, rows = 0;
};

class WorkerRounds {
 public:
  /// Meets the other workers of the strategy and compares the states (check_same_state). `cancel` (nullable) ends this
  /// wait and, with the group, those of the calls to come; it must outlive them.
  static base::Result<std::unique_ptr<WorkerRounds>> begin(const Strategy &strategy, const WorkerState &own,
                                                           int64_t timeout_ms, const base::CancelToken *cancel);

  const Workers &workers() const { return workers_; }
  /// Later calls honour this one instead; null for none.
  void set_cancel(const base::CancelToken *cancel) { group_->set_cancel(cancel); }

  /// `all` gets the words of all workers, one worker's behind the other's. Each brings as many; none is negative.
  base::Status tell(std::span<const int64_t> own, std::vector<int64_t> &all);
  /// Adds up the elements of all workers, in the order of the workers; all get the sums.
  base::Status add_up(void *elements, int64_t count, tensor::DType dtype, const char *label);
  /// Worker w gives the bytes from bounds[w] to bounds[w + 1]; all get those of all.
  base::Status gather(std::byte *bytes, std::span<const int64_t> bounds);

  /// This worker does not go on: the others' calls fail, with that cause.
  void leave(const base::Status &cause) { group_->abort(cause); }

 private:
  WorkerRounds(const Workers &workers, std::unique_ptr<collective::Group> group)
      : workers_(workers), group_(std::move(group)) {}

  const Workers workers_;
  const std::unique_ptr<collective::Group> group_;
  std::vector<collective::Slice> slices_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WORKERS_WORKER_ROUNDS_H_
