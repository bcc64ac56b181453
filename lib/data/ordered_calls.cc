// SPDX-License-Identifier: Apache-2.0
#include "data/ordered_calls.h"

#include <chrono>
#include <utility>

namespace tutti::impl::data {

using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;

OrderedCallsStage::OrderedCallsStage(const char *kind, std::unique_ptr<Stage> input, std::vector<Call> calls,
                                     int64_t slots, Ref<CancelToken> cancel, Ref<CancelToken> worker,
                                     StageCounters *counters)
    : RunAheadStage(kind, std::move(input), std::move(cancel), std::move(worker)),
      calls_(std::move(calls)),
      counters_(counters),
      slots_(calls_.size() * static_cast<size_t>(slots)) {}

OrderedCallsStage::~OrderedCallsStage() {
  // Waits that a thread is in, in any stage before this one, see the token.
  worker_->cancel();
  stopping_.store(true);
  room_.wake();
  threads_.clear();
}

Result<bool> OrderedCallsStage::next(Element &element) {
  if (has_ended()) return last_answer();
  if (threads_.empty()) TUTTI_TRY(start());
  const int64_t taken = taken_.load(std::memory_order_relaxed);
  Slot &slot = slot_of(taken);
  if (!slot.done.load()) {
    awaited_.store(&slot);
    const Status status = finished_.wait(cancel_.get(), [&] { return slot.done.load(); });
    awaited_.store(nullptr, std::memory_order_relaxed);
    TUTTI_TRY(status);
  }
  slot.done.store(false, std::memory_order_relaxed);
  Result<bool> more = give_out(slot, element);
  taken_.store(taken + 1);
  // Waking costs the consumer a system call: only when there is a good deal to do.
  if (drawn_.load() - taken - 1 <= enough_room()) room_.wake();
  return more;
}

Status OrderedCallsStage::start() {
  give_up_input();
  for (const Call &call : calls_) {
    TUTTI_ASSIGN(base::Thread thread, base::Thread::start("tutti-map", [this, &call] { work(call); }));
    threads_.push_back(std::move(thread));
  }
  return Status();
}

void OrderedCallsStage::work(const Call &call) {
  while (Slot *slot = draw()) {
    if (slot->more.ok() && *slot->more) {
      const auto start = std::chrono::steady_clock::now();
      const Status status = call(slot->input, slot->element);
      if (!status.ok()) slot->more = status;
      if (counters_ != nullptr) {
        const std::chrono::nanoseconds work = std::chrono::steady_clock::now() - start;
        counters_->add_work(work.count());
      }
    }
    slot->done.store(true);
    if (awaited_.load() == slot) finished_.wake();
  }
}

OrderedCallsStage::Slot *OrderedCallsStage::draw() {
  std::lock_guard drawing(draw_mutex_);
  const int64_t drawn = drawn_.load(std::memory_order_relaxed);
  if (drawn - taken_.load() >= static_cast<int64_t>(slots_.size())) {
    (void)room_.wait(nullptr, [&] { return stopping_.load() || drawn - taken_.load() <= enough_room(); });
  }
  if (stopping_.load() || drawn_all_) return nullptr;
  Slot &slot = slot_of(drawn);
  slot.more = input_->next(slot.input);
  slot.state.clear();
  input_->save(slot.state);
  drawn_all_ = is_last(slot.more);
  drawn_.store(drawn + 1);
  return &slot;
}

}  // namespace tutti::impl::data
