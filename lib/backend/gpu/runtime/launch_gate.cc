// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/runtime/launch_gate.h"

#include <algorithm>
#include <chrono>

namespace tutti::impl::backend::gpu {

namespace {

thread_local const BetweenLaunches *innermost = nullptr;

std::chrono::steady_clock::time_point after_ms(int64_t milliseconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace

// ---- launches ----

const std::shared_ptr<LaunchGate::Launches::Thread> &LaunchGate::Launches::this_thread() {
  struct Holder {
    const std::shared_ptr<Thread> thread = std::make_shared<Thread>();
    ~Holder() { thread->is_over.store(true); }
  };
  static thread_local const Holder holder;
  return holder.thread;
}

LaunchGate::Launches::Launches(LaunchGate &gate, size_t ranks) : gate_(gate), ranks_(ranks) {
  const std::lock_guard lock(gate_.mutex_);
  gate_.cliques_.push_back(this);
}

LaunchGate::Launches::~Launches() {
  end();
  const std::lock_guard lock(gate_.mutex_);
  std::erase(gate_.cliques_, this);
}

bool LaunchGate::Launches::begin(size_t rank) {
  Rank &self = ranks_[rank];
  const uint64_t number = self.begun.load(std::memory_order_relaxed) + 1;
  if (self.thread != this_thread()) {
    const std::lock_guard lock(gate_.mutex_);
    self.thread = this_thread();
  }
  if (opened_.load() < number) open(number);
  if (is_closed()) return false;
  self.begun.store(number, std::memory_order_relaxed);
  return true;
}

bool LaunchGate::Launches::open(uint64_t number) {
  if (!gate_.try_open(ranks_.size()) && !gate_.open(*this, number)) return false;
  uint64_t before = number - 1;
  if (!opened_.compare_exchange_strong(before, number)) {
    gate_.pay(ranks_.size());
    return false;
  }
  // Another rank may wait to begin the same, because of a section that came in between.
  if (gate_.word_.load() >= kSection) gate_.wake();
  return true;
}

void LaunchGate::Launches::launched(size_t rank) {
  Rank &self = ranks_[rank];
  const uint64_t number = self.begun.load(std::memory_order_relaxed);
  uint64_t before = self.launched.load(std::memory_order_relaxed);
  // Only end() changes it, too: it has paid then.
  if (before < number && self.launched.compare_exchange_strong(before, number)) gate_.pay(number - before);
}

void LaunchGate::Launches::close() {
  const std::lock_guard lock(gate_.mutex_);
  const uint64_t opened = opened_.exchange(kClosed);
  if (opened != kClosed) closed_at_ = opened;
  gate_.changed_.notify_all();
}

void LaunchGate::Launches::end() {
  close();
  uint64_t owed = 0;
  {
    const std::lock_guard lock(gate_.mutex_);
    if (has_ended_) return;
    has_ended_ = true;
    for (Rank &rank : ranks_)
      owed += closed_at_ - rank.launched.exchange(kClosed);
  }
  gate_.pay(owed);
}

uint64_t LaunchGate::Launches::last_opened() const {
  const uint64_t opened = opened_.load();
  return opened == kClosed ? closed_at_ : opened;
}

uint64_t LaunchGate::Launches::owed() const {
  uint64_t owed = 0;
  const uint64_t opened = last_opened();
  for (const Rank &rank : ranks_) {
    const uint64_t launched = rank.launched.load();
    if (launched < opened) owed += opened - launched;
  }
  return owed;
}

uint64_t LaunchGate::Launches::least_launched() const {
  uint64_t least = kClosed;
  for (const Rank &rank : ranks_)
    least = std::min(least, rank.launched.load());
  return least;
}

bool LaunchGate::Launches::owes(const Thread *thread) const {
  const uint64_t opened = last_opened();
  return std::ranges::any_of(
      ranks_, [&](const Rank &rank) { return rank.thread.get() == thread && rank.launched.load() < opened; });
}

bool LaunchGate::Launches::has_unknown_debtor() const {
  const uint64_t opened = last_opened();
  return std::ranges::any_of(ranks_, [&](const Rank &rank) {
    return rank.launched.load() < opened && (rank.thread == nullptr || rank.thread->is_over.load());
  });
}

// ---- the gate ----

bool LaunchGate::try_open(uint64_t launches) {
  uint64_t word = word_.load(std::memory_order_relaxed);
  while (word < kSection) {
    if (word_.compare_exchange_weak(word, word + launches)) return true;
  }
  return false;
}

bool LaunchGate::open(Launches &launches, uint64_t number) {
  std::unique_lock lock(mutex_);
  ++first_ranks_;
  bool opened = false;
  const auto is_late = [&] { return launches.opened_.load() >= number; };
  changed_.wait_until(lock, after_ms(bounds_.begin_ms),
                      [&] { return is_late() || owes_this_thread() || (opened = try_open(launches.ranks_.size())); });
  if (!opened && !is_late()) {
    word_.fetch_add(launches.ranks_.size());
    opened = true;
  }
  --first_ranks_;
  changed_.notify_all();
  return opened;
}

void LaunchGate::pay(uint64_t launches) {
  if (launches != 0 && word_.fetch_sub(launches) >= kSection) wake();
}

void LaunchGate::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

/// What no section waits for may be owed, and nothing else.
bool LaunchGate::is_even(Kind kind, Counting counting) const {
  uint64_t disregarded = 0;
  for (const Launches *const clique : cliques_) {
    const bool is_left_out = clique->least_launched() == clique->overdue_ ||
                             (kind == Kind::ending && clique->is_closed()) ||
                             (counting == Counting::known_threads && clique->has_unknown_debtor());
    if (is_left_out) disregarded += clique->owed();
  }
  return (word_.load() & kOwed) == disregarded;
}

bool LaunchGate::may_enter(Kind kind, Counting counting) const { return is_even(kind, counting) || owes_this_thread(); }

bool LaunchGate::owes_this_thread() const {
  const Launches::Thread *const thread = Launches::this_thread().get();
  return std::ranges::any_of(cliques_, [&](const Launches *clique) { return clique->owes(thread); });
}

void LaunchGate::note_overdue() {
  ++overdue_sections_;
  for (Launches *const clique : cliques_) {
    if (clique->owed() != 0) clique->overdue_ = clique->least_launched();
  }
}

void LaunchGate::enter(Kind kind) {
  std::unique_lock lock(mutex_);
  const auto deadline = after_ms(kind == Kind::ending ? bounds_.ending_ms : bounds_.section_ms);
  if (kind == Kind::usual) {
    changed_.wait_until(lock, deadline, [&] { return first_ranks_ == 0 || owes_this_thread(); });
  }
  word_.fetch_add(kSection);
  const auto moment = std::min(deadline, after_ms(bounds_.unknown_ms));
  if (changed_.wait_until(lock, moment, [&] { return may_enter(kind, Counting::all); })) return;
  (void)changed_.wait_until(lock, deadline, [&] { return may_enter(kind, Counting::known_threads); });
  if (kind == Kind::usual && !may_enter(kind, Counting::all)) note_overdue();
}

void LaunchGate::leave() {
  const std::lock_guard lock(mutex_);
  word_.fetch_sub(kSection);
  changed_.notify_all();
}

LaunchGate &launch_gate() {
  static auto *const gate = new LaunchGate;
  return *gate;
}

bool BetweenLaunches::is_within(const LaunchGate &gate) {
  const BetweenLaunches *section = innermost;
  while (section != nullptr && &section->gate_ != &gate)
    section = section->outer_;
  return section != nullptr;
}

BetweenLaunches::BetweenLaunches(LaunchGate &gate, LaunchGate::Kind kind)
    : gate_(gate), outer_(innermost), is_nested_(is_within(gate)) {
  if (!is_nested_) gate_.enter(kind);
  innermost = this;
}

BetweenLaunches::~BetweenLaunches() {
  innermost = outer_;
  if (!is_nested_) gate_.leave();
}

}  // namespace tutti::impl::backend::gpu
