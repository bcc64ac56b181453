// SPDX-License-Identifier: Apache-2.0
//
// While a step is recorded (step_recorder.h) ranks tell each other, before each operation of the group and at the end,
// whether they can go on recording. Who could not says no more, nor does anybody then.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_RECORDING_AGREEMENT_H_
#define TUTTI_DISTRIBUTE_TRAIN_RECORDING_AGREEMENT_H_

#include "base/status.h"
#include "distribute/train/rank.h"

namespace tutti::impl::distribute {

class RecordingAgreement {
 public:
  explicit RecordingAgreement(Rank &rank) : rank_(rank) {}

  /// All ranks are about to record a step.
  void begin() { all_can_ = true; }
  /// Whether what is issued is recorded from now on.
  void set_recording(bool recording) { is_recording_ = recording; }
  bool is_recording() const { return is_recording_; }
  /// As far as they have said.
  bool all_can() const { return all_can_; }

  /// Says whether this rank can go on, and hears whether all can.
  base::Status tell(bool can_go_on);
  /// Before an operation: UNAVAILABLE where another rank cannot. Nothing while nothing is recorded.
  base::Status go_on();
  static base::Status refused_elsewhere();

 private:
  Rank &rank_;
  bool is_recording_ = false, all_can_ = false;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_RECORDING_AGREEMENT_H_
