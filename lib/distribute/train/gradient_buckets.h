// SPDX-License-Identifier: Apache-2.0
//
// The reduction of a step's gradients: an operation of the group for each bucket, begun as soon as the bucket is
// complete where that may be, and waited for before the update. With central storage the first rank alone gets sums.
// Where finish programs read the gradients of all contributors instead, an operation is left only for what all have to
// have written. What contributors leave for finish in memories of their own (factor_memory.h) is given to all of them
// last.
//
//   buckets.begin_step();
//   TUTTI_TRY(buckets.begin_complete(0));   // while programs run on
//   TUTTI_TRY(buckets.reduce(feeder));      // the rest; then all are done, or the stream waits for them
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_GRADIENT_BUCKETS_H_
#define TUTTI_DISTRIBUTE_TRAIN_GRADIENT_BUCKETS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "collective/group.h"
#include "distribute/input/step_feeder.h"
#include "distribute/train/contributor.h"
#include "distribute/train/factor_memory.h"
#include "distribute/train/rank.h"
#include "distribute/train/recording_agreement.h"
#include "distribute/train/step_clock.h"

namespace tutti::impl::distribute {

class GradientBuckets {
 public:
  GradientBuckets(Rank &rank, StepClock &clock, RecordingAgreement &recording)
      : rank_(rank), clock_(clock), recording_(recording) {}

  /// Of these, which are all there; once.
  void plan(std::span<const Contributor> contributors);

  /// Where the rank leaves its factors.
  void gather_in(FactorMemory &memory) { factors_ = &memory; }

  /// None has begun.
  void begin_step() {
    next_ = 0;
    last_ticket_ = -1;
  }
  /// Those up to this one are complete: begins what may begin before the rank's part of the step has succeeded.
  base::Status begin_complete(int32_t bucket) { return begin(std::min(bucket + 1, early())); }
  base::Status begin_all() { return begin(count()); }
  /// Begins what has not been begun, and waits for all.
  base::Status reduce(StepFeeder &feeder);
  /// Of the last operation that was begun; -1: none was.
  collective::Ticket last_ticket() const { return last_ticket_; }

 private:
  int32_t count() const { return static_cast<int32_t>(operations_.size()); }
  /// How many may begin before the rank knows that its part of the step has succeeded.
  int32_t early() {
    const bool may_all = rank_.device_stream() == nullptr || rank_.is_on_devices() || recording_.is_recording();
    return may_all ? count() : std::max(count() - 1, 0);
  }
  base::Status begin(int32_t end);
  base::Status finish(StepFeeder &feeder);
  base::Status begin_gathering();
  collective::Operation operation_of(size_t bucket);

  Rank &rank_;
  StepClock &clock_;
  RecordingAgreement &recording_;
  // Per bucket that is reduced before finish: the operation with its buffers. At least one, if only a barrier.
  std::vector<collective::Operation> operations_;
  std::vector<std::vector<void *>> buffers_;
  std::vector<collective::Slice> whole_;  // of each bucket; with central storage
  FactorMemory *factors_ = nullptr;       // null where there are none
  std::vector<void *> factor_buffers_;
  int32_t next_ = 0;
  collective::Ticket last_ticket_ = -1;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_GRADIENT_BUCKETS_H_
