// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/team.h"

#include <linux/futex.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include "backend/cpu/kernel/floating_point_mode.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::spin_until;
using base::Status;

namespace {

constexpr int kPartBits = 12;
constexpr int kHelperBits = 8;
constexpr uint64_t kPartMask = (uint64_t{1} << kPartBits) - 1;

int32_t end_of(uint64_t word) { return static_cast<int32_t>(word & kPartMask); }
int32_t first_of_word(uint64_t word) { return static_cast<int32_t>(word >> kPartBits & kPartMask); }
int32_t helpers_of(uint64_t word) { return static_cast<int32_t>(word >> 2 * kPartBits & ((1 << kHelperBits) - 1)); }

uint64_t next_job(uint64_t word, int32_t helpers, int32_t parts) {
  const uint64_t number = (word >> 32) + 1;
  return number << 32 | static_cast<uint64_t>(helpers) << 2 * kPartBits | static_cast<uint64_t>(parts);
}

template <typename Value>
void sleep_while(std::atomic<Value> &word, Value value) {
  static_assert(sizeof(word) == 4);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

template <typename Value>
void wake(std::atomic<Value> &word, int32_t count) {
  static_assert(sizeof(word) == 4);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/// The teams in use, by backend and device.
struct Teams {
  std::mutex mutex;
  std::map<std::pair<const void *, int32_t>, std::weak_ptr<Team>> teams;  // guarded by mutex
};

}  // namespace

Result<std::shared_ptr<Team>> Team::of_device(const void *backend, int32_t device, int32_t threads) {
  static Teams *const all = new Teams;
  std::shared_ptr<Team> team;
  {
    const std::lock_guard lock(all->mutex);
    std::erase_if(all->teams, [](const auto &entry) { return entry.second.expired(); });
    std::weak_ptr<Team> &known = all->teams[{backend, device}];
    team = known.lock();
    if (team == nullptr) known = team = std::make_shared<Team>();
  }
  TUTTI_TRY(team->grow(threads));
  return team;
}

Status Team::grow(int32_t threads) {
  threads = std::min(threads, kMostThreads);
  const std::lock_guard lock(mutex_);
  // With fewer cores than threads a spinning thread is in the way of one with work.
  spins_.store(std::max(threads, size()) <= base::available_cores(), std::memory_order_relaxed);
  // A thread that has no place to be kept in could not be told to end.
  if (threads > 1) threads_.reserve(static_cast<size_t>(threads) - 1);
  while (static_cast<int32_t>(threads_.size()) + 1 < threads) {
    const auto number = static_cast<int32_t>(threads_.size()) + 1;
    TUTTI_ASSIGN(base::Thread thread,
                 base::Thread::start(base::concat("tutti-team-", number), [this, number] { work(number); }));
    threads_.push_back(std::move(thread));
    size_.store(number + 1, std::memory_order_relaxed);
  }
  return Status();
}

Team::~Team() {
  closing_.store(true, std::memory_order_seq_cst);
  wake_count_.fetch_add(1, std::memory_order_seq_cst);
  wake(wake_count_, INT_MAX);
}

// ---- the caller ----------------------------------------------------------------------------------------------------

void Team::run(int32_t parts, int32_t threads, Body body) {
  const int32_t helpers = std::min({threads, size(), parts}) - 1;
  if (helpers <= 0 || taken_.exchange(true, std::memory_order_acquire)) {
    for (int32_t part = 0; part < parts; ++part)
      body(part, 0);
    return;
  }
  body_ = &body;
  unfinished_.store(parts, std::memory_order_relaxed);
  uint64_t word = next_job(word_.load(std::memory_order_relaxed), helpers, parts);
  word_.store(word, std::memory_order_seq_cst);
  if (const int32_t wakes = std::min(helpers, sleepers_.load(std::memory_order_seq_cst)); wakes > 0) {
    sleepers_.fetch_sub(wakes, std::memory_order_seq_cst);
    wake_count_.fetch_add(1, std::memory_order_seq_cst);
    wake(wake_count_, wakes);
  }
  int32_t done = 0;
  for (;;) {
    if (first_of_word(word) >= end_of(word)) break;
    if (!word_.compare_exchange_weak(word, word + (uint64_t{1} << kPartBits), std::memory_order_acq_rel)) continue;
    call(first_of_word(word), 0);
    ++done;
    word = word_.load(std::memory_order_acquire);
  }
  if (unfinished_.fetch_sub(done, std::memory_order_seq_cst) != done) wait_for_helpers();
  if (has_thrown_.load(std::memory_order_relaxed)) [[unlikely]]
    return rethrow();
  taken_.store(false, std::memory_order_release);
}

void Team::call(int32_t part, int32_t thread) noexcept {
  try {
    (*body_)(part, thread);
  } catch (...) {
    if (!has_thrown_.exchange(true, std::memory_order_relaxed)) thrown_ = std::current_exception();
  }
}

void Team::rethrow() {
  const std::exception_ptr thrown = std::exchange(thrown_, nullptr);
  has_thrown_.store(false, std::memory_order_relaxed);
  taken_.store(false, std::memory_order_release);
  std::rethrow_exception(thrown);
}

void Team::wait_for_helpers() {
  const auto all_done = [&] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (spin_until(all_done, spin_time())) return;
  caller_sleeps_.store(1, std::memory_order_seq_cst);
  for (;;) {
    const int32_t left = unfinished_.load(std::memory_order_seq_cst);
    if (left == 0) break;
    sleep_while(unfinished_, left);
  }
  caller_sleeps_.store(0, std::memory_order_relaxed);
}

// ---- the others ----------------------------------------------------------------------------------------------------

bool Team::may_help(uint64_t word, int32_t thread) const {
  return first_of_word(word) < end_of(word) && thread <= helpers_of(word);
}

int32_t Team::help(int32_t thread) {
  int32_t done = 0;
  uint64_t word = word_.load(std::memory_order_acquire);
  while (may_help(word, thread)) {
    if (!word_.compare_exchange_weak(word, word - 1, std::memory_order_acq_rel)) continue;
    // The job cannot end before this part, so the body is still that of this job.
    call(end_of(word) - 1, thread);
    ++done;
    word = word_.load(std::memory_order_acquire);
  }
  return done;
}

void Team::work(int32_t thread) {
  const FloatingPointMode mode;
  omp_set_num_threads(1);
  while (!closing_.load(std::memory_order_acquire)) {
    const int32_t done = help(thread);
    if (done == 0) {
      wait_for_work(thread);
    } else if (unfinished_.fetch_sub(done, std::memory_order_seq_cst) == done &&
               caller_sleeps_.load(std::memory_order_seq_cst) != 0) {
      wake(unfinished_, 1);
    }
  }
}

void Team::wait_for_work(int32_t thread) {
  const auto wanted = [&] {
    return may_help(word_.load(std::memory_order_seq_cst), thread) || closing_.load(std::memory_order_seq_cst);
  };
  if (spin_until(wanted, spin_time())) return;
  // Whoever takes from sleepers_ counts up afterwards: a count read before that is out of date then. A thread that
  // finds work now stays counted, which costs the next job a call of the system and no more.
  const uint32_t seen = wake_count_.load(std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!wanted() && wake_count_.load(std::memory_order_seq_cst) == seen)
    sleep_while(wake_count_, seen);
}

}  // namespace tutti::impl::backend::cpu
