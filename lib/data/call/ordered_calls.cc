// SPDX-License-Identifier: Apache-2.0
#include "data/call/ordered_calls.h"

#include <algorithm>
#include <utility>

#include "base/exceptions.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::JsonReader;
using base::now_ns;
using base::Ref;
using base::Result;
using base::Status;

namespace {

/// How long the threads are looked at before more are started; the consumer's waiting that is too much, and the use of
/// the cores that is not, as parts of that time.
constexpr int64_t kLookNanoseconds = 20'000'000;
constexpr double kMuchWaiting = 0.1, kBusyCores = 0.7;

}  // namespace

OrderedCallsStage::OrderedCallsStage(const char *kind, std::unique_ptr<Stage> input, std::vector<Call> calls,
                                     Limits limits, Ref<CancelToken> cancel, Ref<CancelToken> worker,
                                     StageCounters *counters)
    : PrefetchingStage(kind, std::move(input), std::move(cancel), std::move(worker)),
      calls_(std::move(calls)),
      slots_per_thread_(limits.slots),
      first_(limits.first == 0 ? calls_.size() : std::min(limits.first, calls_.size())),
      keeps_order_(limits.keeps_order),
      counters_(counters),
      slots_(calls_.size() * static_cast<size_t>(limits.slots)),
      share_(limits.budget),
      scheduled_(calls_.size()) {}

OrderedCallsStage::~OrderedCallsStage() {
  // Waits that a thread is in, in any stage before this one, see the token.
  worker_->cancel();
  stopping_.store(true);
  room_.wake();
  threads_.clear();
}

Result<bool> OrderedCallsStage::next(Element &element) {
  if (has_ended()) return last_answer();
  if (threads_.empty()) TUTTI_TRY(begin());
  if (counters_ != nullptr && counters_->wants_time()) counters_->add_depth(ready(taken_.load()));
  TUTTI_ASSIGN(Slot *const slot, await_done());
  Result<bool> more = give_out_early(*slot, element);
  if (share_.is_limited()) largest_bytes_ = std::max(largest_bytes_, element.size_bytes());
  if (slot->number != taken_.load(std::memory_order_relaxed)) {
    taken_early_.insert(slot->number);
    return more;
  }
  pass(*slot);
  pass_early();
  // Waking costs the consumer a system call: only when there is a good deal to do.
  if (drawn_.load() - taken_.load(std::memory_order_relaxed) <= enough_room()) room_.wake();
  return more;
}

Result<OrderedCallsStage::Slot *> OrderedCallsStage::await_done() {
  pass_early();
  if (Slot *const slot = find_done()) return slot;
  awaited_.store(&slot_of(taken_.load(std::memory_order_relaxed)));
  const int64_t begin = now_ns();
  Slot *slot = nullptr;
  const Status status = finished_.wait(cancel_.get(), [&] {
    pass_early();
    slot = find_done();
    return slot != nullptr;
  });
  awaited_.store(nullptr, std::memory_order_relaxed);
  TUTTI_TRY(status);
  if (threads_.size() < calls_.size()) consider_more(now_ns() - begin);
  return slot;
}

OrderedCallsStage::Slot *OrderedCallsStage::find_done() {
  const int64_t taken = taken_.load(std::memory_order_relaxed);
  Slot &first = slot_of(taken);
  if (first.done.load() && !taken_early_.contains(taken)) return &first;
  if (keeps_order_) return nullptr;
  for (int64_t number = taken + 1; number < taken + static_cast<int64_t>(slots_.size()); ++number) {
    Slot &slot = slot_of(number);
    // The last answer comes when nothing lies before it.
    if (slot.done.load() && !taken_early_.contains(number) && !is_last(slot.more)) return &slot;
  }
  return nullptr;
}

void OrderedCallsStage::pass(Slot &slot) {
  commit(slot);
  slot.done.store(false, std::memory_order_relaxed);
  taken_.store(slot.number + 1);
}

void OrderedCallsStage::pass_early() {
  while (!taken_early_.empty()) {
    const int64_t taken = taken_.load(std::memory_order_relaxed);
    Slot &slot = slot_of(taken);
    if (*taken_early_.begin() != taken || !slot.done.load()) return;
    taken_early_.erase(taken_early_.begin());
    pass(slot);
  }
}

void OrderedCallsStage::save_more(State &state) const {
  if (taken_early_.empty()) return;
  state.key("taken_early");
  state.open_list();
  for (const int64_t number : taken_early_) {
    state.open("taken");
    state.number("behind", number - taken_.load(std::memory_order_relaxed));
    state.close();
  }
  state.close();
}

Status OrderedCallsStage::restore_more(const JsonReader &state) {
  if (!state.has("taken_early")) return Status();
  TUTTI_ASSIGN(const JsonReader list, state.get("taken_early"));
  TUTTI_ASSIGN(const std::vector<JsonReader> entries, list.elements());
  for (const JsonReader &entry : entries) {
    TUTTI_ASSIGN(const int64_t behind, saved_count(entry, "behind", 1));
    taken_early_.insert(behind);
  }
  return Status();
}

Status OrderedCallsStage::begin() {
  give_up_input();
  left_out_ = taken_early_;
  awaits_any_ = !keeps_order_ || !left_out_.empty();
  return start(first_);
}

int64_t OrderedCallsStage::ready(int64_t taken) {
  const auto slots = static_cast<int64_t>(slots_.size());
  int64_t count = 0;
  while (count < slots && slot_of(taken + count).done.load(std::memory_order_relaxed))
    ++count;
  return count;
}

Status OrderedCallsStage::start(size_t threads) {
  // A thread that has no place to be kept in could not be told to end.
  threads_.reserve(threads);
  for (size_t number = threads_.size(); number < threads; ++number) {
    TUTTI_ASSIGN(base::Thread thread, base::Thread::start("tutti-map", [this, number] { work(number); }));
    threads_.push_back(std::move(thread));
    running_.store(static_cast<int64_t>(threads_.size()));
  }
  if (counters_ != nullptr) counters_->mark_ahead(running_.load());
  room_.wake();
  return Status();
}

int64_t OrderedCallsStage::processor_ns() const {
  int64_t sum = 0;
  for (const std::atomic<base::ScheduledThread> &thread : scheduled_)
    sum += std::max<int64_t>(0, thread.load(std::memory_order_relaxed).processor_ns());
  return sum;
}

void OrderedCallsStage::consider_more(int64_t waited_ns) {
  waited_ns_ += waited_ns;
  const int64_t now = now_ns(), looked = now - since_ns_;
  if (looked < kLookNanoseconds) return;
  const bool is_first = std::exchange(since_ns_, now) == 0;
  const int64_t waited = std::exchange(waited_ns_, 0), before = processor_before_ns_;
  processor_before_ns_ = processor_ns();
  if (is_first || static_cast<double>(waited) < kMuchWaiting * static_cast<double>(looked)) return;
  const double cores = static_cast<double>(processor_before_ns_ - before) / static_cast<double>(looked);
  if (cores > kBusyCores * base::available_cores()) return;
  const size_t more = std::min(calls_.size(), 2 * threads_.size());
  if (!share_.resize(static_cast<int64_t>(more) * slots_per_thread_ * largest_bytes_)) return;
  // Without more threads it goes on as it did.
  (void)start(more);
}

void OrderedCallsStage::work(size_t number) {
  const Call &call = calls_[number];
  scheduled_[number].store(base::ScheduledThread::current(), std::memory_order_relaxed);
  while (Slot *slot = draw()) {
    if (slot->more.ok() && *slot->more && !slot->is_left_out) {
      const int64_t begin = now_ns();
      const Status status = base::without_exceptions([&] { return call(slot->input, slot->element); });
      if (!status.ok()) slot->more = status;
      if (counters_ != nullptr) counters_->add_work(now_ns() - begin);
    }
    slot->done.store(true);
    if (awaits_any_ || awaited_.load() == slot) finished_.wake();
  }
}

OrderedCallsStage::Slot *OrderedCallsStage::draw() {
  std::lock_guard drawing(draw_mutex_);
  const int64_t drawn = drawn_.load(std::memory_order_relaxed);
  if (drawn - taken_.load() >= room()) {
    const int64_t begin = now_ns();
    (void)room_.wait(nullptr, [&] { return stopping_.load() || drawn - taken_.load() <= enough_room(); });
    // The other threads come to wait for this one.
    if (counters_ != nullptr) counters_->add_full((now_ns() - begin) * running_.load());
  }
  if (stopping_.load() || drawn_all_) return nullptr;
  Slot &slot = slot_of(drawn);
  draw_input(slot.input, slot);
  slot.number = drawn;
  slot.is_left_out = left_out_.erase(drawn) > 0;
  drawn_all_ = is_last(slot.more);
  drawn_.store(drawn + 1);
  return &slot;
}

}  // namespace tutti::impl::data
