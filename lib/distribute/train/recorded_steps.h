// SPDX-License-Identifier: Apache-2.0
//
// Steps that are launched at once: the programs of all micro-batches, the operations between workers that they go on
// behind, and the update, which waits on the device until all workers have settled (Group::record_settle). Recorded
// for each combination of programs that the workers run; all of them record together, and launch what they recorded
// together. Internal to this folder.
//
// A step is recorded when its programs have run before on every worker, piece by piece; so everything is connected and
// loaded. What a worker would run, it says in its control words (step_rows.h): from these all know alike whether a step
// is launched, recorded or run in pieces, and the lists of all workers are equal in number and order.
//
// How long the device waits for others in a recording, events in it tell (stream_waits.h). So that those of one step
// can be read while the next is under way, there is a recording for each step that may be in flight; they take turns.
//
// Threads: one.
#ifndef TUTTI_DISTRIBUTE_TRAIN_RECORDED_STEPS_H_
#define TUTTI_DISTRIBUTE_TRAIN_RECORDED_STEPS_H_

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "collective/group.h"
#include "distribute/train/step_reports.h"
#include "distribute/train/stream_waits.h"

namespace tutti::impl::distribute {

struct RecordedStep {
  StreamWaits waits;  ///< for the group; outlives the recording
  backend::Recording recording;
  collective::RecordedOperations operations;
};
using RecordedStepRef = std::shared_ptr<RecordedStep>;

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
  /// Steps run in pieces from now on.
  void give_up(base::Status why) { open(std::move(why)); }
  /// What is under way lives as long as somebody has it.
  void clear() { steps_.clear(); }

  /// `programs`: of all workers, in order: BoundProgram::id of what each begins with. `turn`: less than
  /// StepReports::kMostInFlight. Null: not recorded.
  RecordedStepRef find(std::span<const int64_t> programs, size_t turn) const;
  /// Where there are too many the oldest go.
  void add(std::span<const int64_t> programs, size_t turn, RecordedStepRef step);
  /// How steps run, for people.
  std::string describe() const;

 private:
  static constexpr size_t kMost = 16;

  struct Combination {
    std::vector<int64_t> programs;
    std::array<RecordedStepRef, StepReports::kMostInFlight> by_turn;
  };

  bool is_connected_ = false;
  base::Status may_ = base::failed_precondition("there is no group");
  std::list<Combination> steps_;  // oldest first
};

/// Not ok when the environment's TUTTI_RECORD_STEPS is 0 (<tutti/strategy.h>).
base::Status recording_from_environment();

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_RECORDED_STEPS_H_
