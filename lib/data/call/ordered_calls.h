// SPDX-License-Identifier: Apache-2.0
//
// OrderedCallsStage: one call for each element, several at a time on threads of their own, results in the order of the
// input. A free thread draws the next input, one thread at a time, so the slots of a ring are numbered in order; then
// it makes the call while others draw. The consumer takes slots out in that order and never touches the input. Each
// slot keeps the input's state behind its element (prefetching_stage.h).
//
//   draw ─┬─ call ─┐
//         ├─ call ─┼─ slot 0, slot 1, ... ─ next()
//         └─ call ─┘
//
// A call that fails is the error of its element. When the ring is full nobody draws.
//
// Where order does not matter the consumer takes the first slot that is done. A slot is drawn into again when all
// before it have been taken, too; what was taken early is part of the state (prefetching_stage.h).
//
// Automatic parallelism: where there may be more calls at once than begin, and the consumer waits for elements while
// the threads leave the cores idle (they wait for disks, servers, other threads), more of them are started.
//
// Threads: as Stage. Calls may block.
#ifndef TUTTI_DATA_CALL_ORDERED_CALLS_H_
#define TUTTI_DATA_CALL_ORDERED_CALLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/scheduled_thread.h"
#include "base/thread.h"
#include "data/call/prefetching_stage.h"
#include "data/dataset/walk_report.h"
#include "data/thread/buffer_budget.h"
#include "data/thread/sleep_point.h"

namespace tutti::impl::data {

class OrderedCallsStage : public PrefetchingStage {
 public:
  /// Fills `output`, whose contents are those of some earlier element; may do with `input` as it likes.
  using Call = std::function<base::Status(Element &input, Element &output)>;

  struct Limits {
    int64_t slots = 1;  ///< of the ring for each thread
    size_t first = 0;   ///< threads at the beginning, the others when they help; 0 = all of them
    bool keeps_order = true;
    std::shared_ptr<BufferBudget> budget{};  ///< of the ring, as far as it grows; null = without a limit
  };

  /// `kind` is a literal. One thread for each call; each is used by its thread alone. `counters` may be null.
  OrderedCallsStage(const char *kind, std::unique_ptr<Stage> input, std::vector<Call> calls, Limits limits,
                    base::Ref<base::CancelToken> cancel, base::Ref<base::CancelToken> worker, StageCounters *counters);
  ~OrderedCallsStage() override;

  base::Result<bool> next(Element &element) override;

 protected:
  void save_more(State &state) const override;
  base::Status restore_more(const base::JsonReader &state) override;

 private:
  struct Slot : Handover {
    int64_t number = 0;  // of the element drawn into it
    bool is_left_out = false;
    Element input;
    std::atomic<bool> done{false};
  };
  Slot &slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  /// Slots that may be in use with the threads that there are.
  int64_t room() const { return running_.load() * slots_per_thread_; }
  // Slots in use below which a sleeping thread draws again.
  int64_t enough_room() const { return room() / 2; }

  /// Results that the consumer may take without waiting, from the next one on.
  int64_t ready(int64_t taken);
  /// The slot to take now; null as long as none is done.
  Slot *find_done();
  /// Waits for it.
  base::Result<Slot *> await_done();
  /// All up to this slot, which is the first, have been taken.
  void pass(Slot &slot);
  /// The same with those in front that were taken early.
  void pass_early();
  /// Gives the input to the threads.
  base::Status begin();
  base::Status start(size_t threads);
  void work(size_t number);
  /// The consumer has waited for so long: are there too few threads?
  void consider_more(int64_t waited_ns);
  /// Of all threads.
  int64_t processor_ns() const;
  /// The next slot with its input in it; null when there is nothing more to draw.
  Slot *draw();

  const std::vector<Call> calls_;
  const int64_t slots_per_thread_;
  const size_t first_;
  const bool keeps_order_;
  StageCounters *const counters_;  // null when nobody counts
  std::vector<Slot> slots_;

  std::mutex draw_mutex_;  // guards the input
  // Guarded by draw_mutex_:
  bool drawn_all_ = false;
  std::set<int64_t> left_out_;  // numbers that were taken early before the walk was restored
  std::atomic<bool> stopping_{false};
  std::atomic<Slot *> awaited_{nullptr};       // what the consumer sleeps for,
  bool awaits_any_ = false;                    // or all; set before the threads begin
  alignas(64) std::atomic<int64_t> drawn_{0};  // changed under draw_mutex_
  alignas(64) std::atomic<int64_t> taken_{0};  // changed by the consumer alone
  SleepPoint finished_;
  SleepPoint room_;

  // Of the consumer: numbers from taken_ on that were taken early.
  std::set<int64_t> taken_early_;
  BufferBudget::Share share_;
  int64_t largest_bytes_ = 0;  // of an element taken
  // Since when it looks at how the threads do, and what they and it have done since.
  int64_t since_ns_ = 0, waited_ns_ = 0, processor_before_ns_ = 0;
  std::vector<std::atomic<base::ScheduledThread>> scheduled_;  // for each call
  std::atomic<int64_t> running_{0};

  std::vector<base::Thread> threads_;  // last: joined before anything else goes
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_ORDERED_CALLS_H_
