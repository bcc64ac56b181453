// SPDX-License-Identifier: Apache-2.0
//
// Steps that are launched at once: programs of a micro-batch together with the operations between workers that they go
// on behind, recorded once for each combination of programs that the workers run. All workers record together, and
// launch what they recorded together. Internal to this folder.
//
// A step is recorded when its programs have run before on every worker, piece by piece; so everything is connected and
// loaded. What a worker would run, it says in its control words (step_rows.h): from these all know alike whether a step
// is launched, recorded or run in pieces, and the lists of all workers are equal in number and order.
//
// How long the device waits for operations of a recording, events in it tell (stream_waits.h).
//
// Threads: one.
#ifndef TUTTI_DISTRIBUTE_RECORDED_STEPS_H_
#define TUTTI_DISTRIBUTE_RECORDED_STEPS_H_

#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "collective/group.h"
#include "distribute/stream_waits.h"

namespace tutti::impl::distribute {

struct RecordedStep {
  std::vector<int64_t> programs;  ///< of all workers, in order: BoundProgram::id
  StreamWaits waits;              ///< for the group; outlives the recording
  backend::Recording recording;
  collective::RecordedOperations operations;
};

class RecordedSteps {
 public:
  /// Whether steps are recorded from now on: ok, or why not. Nothing is recorded yet.
  void open(base::Status may);
  /// As far as one knows.
  bool are_recorded() const { return may_.ok(); }
  /// Also: a step of this group has run in pieces.
  bool may_record() const { return may_.ok() && is_connected_; }
  /// One does.
  void note_pieces() { is_connected_ = true; }
  bool is_empty() const { return steps_.empty(); }
  /// Steps run in pieces from now on. The device has done what was launched.
  void give_up(base::Status why) { open(std::move(why)); }
  /// The device has done what was launched; so for add(), where a list that is full gives up its oldest.
  void clear() { steps_.clear(); }

  /// Null: not recorded.
  RecordedStep *find(std::span<const int64_t> programs);
  RecordedStep &add(RecordedStep step);
  /// How steps run, for people.
  std::string describe() const;

 private:
  static constexpr size_t kMost = 16;

  bool is_connected_ = false;
  base::Status may_ = base::failed_precondition("there is no group");
  std::list<RecordedStep> steps_;  // oldest first
};

/// Not ok when the environment's TUTTI_RECORD_STEPS is 0 (<tutti/strategy.h>).
base::Status recording_from_environment();

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_RECORDED_STEPS_H_
