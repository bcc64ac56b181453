// SPDX-License-Identifier: Apache-2.0
//
// Where the time of the step under way goes: for how long the thread waits, and the device (stream_waits.h).
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_CLOCK_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_CLOCK_H_

#include <utility>

#include "base/status.h"
#include "distribute/train/rank.h"
#include "distribute/train/step_times.h"
#include "distribute/train/stream_waits.h"

namespace tutti::impl::distribute {

class StepClock {
 public:
  explicit StepClock(Rank &rank) : rank_(rank) {}

  void begin_step() { now_ = {.steps = 1}; }
  /// Of the step under way.
  StepTimes &times() { return now_; }
  /// Waits of the device are written down there from now on; gives where they were before. It outlives them.
  StreamWaits *write_waits_to(StreamWaits *waits) { return std::exchange(waits_, waits); }

  /// Counts the time that `wait`, a function that gives a status, keeps the device from computing.
  template <typename Wait>
  base::Status wait_for_group(Wait wait) {
    if (rank_.device_stream() == nullptr) {
      const WaitClock clock(now_.communication_ns, rank_.tracer(), "communication");
      return wait();
    }
    // The device goes on while this thread waits: its own clock tells for how long it does not.
    TUTTI_TRY(waits_->begin(*rank_.device(), rank_.stream()));
    TUTTI_TRY(wait());
    return waits_->end(rank_.stream());
  }

 private:
  Rank &rank_;
  StepTimes now_;
  StreamWaits *waits_ = nullptr;  // of the step under way, or of the recording
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_CLOCK_H_
