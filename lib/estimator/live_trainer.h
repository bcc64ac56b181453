// SPDX-License-Identifier: Apache-2.0
//
// The trainer of an estimator as others than its session see it: they get it between two steps, never during one. The
// session takes a turn for each of its chunks of steps; who waits meanwhile comes before its next one.
//
// Threads: look() and take_turn() from any thread; a turn belongs to the session. No callback runs inside of a turn, so
// hooks may look.
#ifndef TUTTI_ESTIMATOR_LIVE_TRAINER_H_
#define TUTTI_ESTIMATOR_LIVE_TRAINER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/status.h"
#include "distribute/train/trainer.h"

namespace tutti::impl::estimator {

class LiveTrainer {
 public:
  /// For the session, while it runs steps or copies state; waits for those who came to look before.
  std::unique_lock<std::mutex> take_turn();

  /// From now on it can be looked at; null: no more. `in_session`: a session has it. The caller holds a turn.
  void set(distribute::Trainer *trainer, bool in_session) {
    trainer_ = trainer;
    in_session_ = in_session;
  }

  /// Its weights have changed. In a turn, or a look.
  void note_change() { changes_.fetch_add(1); }
  /// How often they have; what was published at one number is what there is while the number is the same.
  int64_t changes() const { return changes_.load(); }

  using Function = std::function<base::Status(distribute::Trainer &trainer, bool in_session)>;
  /// Calls the function at the next step boundary, with the trainer. False when there is none.
  base::Result<bool> look(const Function &function);

 private:
  std::atomic<int64_t> arrived_{0};  // who came to look
  std::atomic<int64_t> changes_{0};
  std::mutex mutex_;
  std::condition_variable looked_;
  // Guarded by mutex_:
  int64_t served_ = 0;
  distribute::Trainer *trainer_ = nullptr;
  bool in_session_ = false;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_LIVE_TRAINER_H_
