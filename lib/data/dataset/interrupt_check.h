// SPDX-License-Identifier: Apache-2.0
//
// Where a walk looks at its token although it waits for nothing: before each element that a stage is asked for
// (Dataset::walk()), and between the steps of work that gives many rows at once. So one slow function, and a batch of a
// thousand quick ones, end with the element that is under way.
//
//   next(), deadline in 200 ms   300 ms per element: an interrupt after the first; the next call goes on with it
//   next_if_ready()              its deadline has passed before; what comes within kReadyMilliseconds is given
//
// Threads: a CurrentDraw may be used from any thread; an InterruptCheck belongs to its stage.
#ifndef TUTTI_DATA_DATASET_INTERRUPT_CHECK_H_
#define TUTTI_DATA_DATASET_INTERRUPT_CHECK_H_

#include <atomic>
#include <memory>

#include "base/cancel.h"
#include "base/status.h"
#include "data/dataset/dataset.h"

namespace tutti::impl::data {

/// The element that the outermost iterator is asked for.
class CurrentDraw {
 public:
  /// For so long what need not be waited for may take. Longer than a thread that is ready waits for a core.
  static constexpr int64_t kReadyMilliseconds = 100;

  /// Whoever begins with a deadline that has passed wants what is ready.
  void begin(const base::CancelToken &token) {
    const bool wants_ready = token.deadline().passed();
    const base::Deadline end = wants_ready ? base::Deadline::after_ms(kReadyMilliseconds) : base::Deadline::at({});
    ready_end_.store(end.time(), std::memory_order_relaxed);
  }
  /// May the deadline of the token have passed, since what is ready is still being looked for?
  bool ignores_deadline() const { return !base::Deadline::at(ready_end_.load(std::memory_order_relaxed)).passed(); }

 private:
  std::atomic<base::Deadline::Clock::time_point> ready_end_{};
};

class InterruptCheck {
 public:
  explicit InterruptCheck(const IteratorContext &context) : cancel_(context.cancel), draw_(context.draw) {}

  /// Ok, or the interrupt (base::is_interrupt) that ends the call.
  base::Status operator()() const {
    if (cancel_ == nullptr) return base::Status();
    if (cancel_->level() < base::CancelLevel::cancel && !ends_now()) [[likely]]
      return base::Status();
    return cancel_->check();
  }

 private:
  /// An error that nobody looks at would cost more than most elements.
  bool ends_now() const { return cancel_->deadline().passed() && (draw_ == nullptr || !draw_->ignores_deadline()); }

  base::Ref<base::CancelToken> cancel_;      // null = never
  std::shared_ptr<const CurrentDraw> draw_;  // null: deadlines are never ignored
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_INTERRUPT_CHECK_H_
