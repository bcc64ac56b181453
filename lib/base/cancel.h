// SPDX-License-Identifier: Apache-2.0
//
// Cancel tokens and waits that honour them. A token has two strengths that only ever rise:
//   stop    finish the step, checkpoint, return ok with reason STOPPED: check() stays ok, stop_requested() is true;
//   cancel  leave as soon as possible: check() is CANCELLED, every wait returns it.
// A token has a deadline, which may move; while it has passed, check() is DEADLINE_EXCEEDED. A child follows level and
// deadline of its parent as they are at each moment, a worker the level alone; nothing goes back to the parent.
//
// Every wait of the library goes through wait_until() below, so none can outlast its deadline or its token. A deadline
// that moves closer wakes the waits on the token and its children; one that moves away lets them sleep on.
//
//   std::unique_lock lock(mutex);
//   TUTTI_TRY(wait_until(changed, lock, token, Deadline::after_ms(500), [&] { return !queue.empty(); }));
//
// A deadline is how to end one wait and go on later: whoever keeps what it has gathered when is_interrupt() holds can
// be called again once the deadline has moved (the stages of data/ do so).
//
// Threads: all functions of a token may be called from any thread. Listeners run on a thread that raises the level or
// moves the deadline, without any lock of the token held.
#ifndef TUTTI_BASE_CANCEL_H_
#define TUTTI_BASE_CANCEL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/object.h"
#include "base/status.h"

namespace tutti::impl::base {

/// A moment on the steady clock, or never.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// Never.
  constexpr Deadline() = default;
  static constexpr Deadline never() { return Deadline(); }
  static Deadline at(Clock::time_point time) { return Deadline(time); }
  /// From now on; a negative number means never, one too large to represent too.
  static Deadline after_ms(int64_t milliseconds);

  bool is_never() const { return time_ == Clock::time_point::max(); }
  bool passed() const { return !is_never() && Clock::now() >= time_; }
  Clock::time_point time() const { return time_; }
  /// Until then, not below 0; INT64_MAX for never.
  int64_t remaining_ms() const;
  /// The earlier of two.
  friend Deadline earlier(Deadline a, Deadline b) { return a.time_ <= b.time_ ? a : b; }
  friend bool operator==(Deadline a, Deadline b) { return a.time_ == b.time_; }

 private:
  explicit constexpr Deadline(Clock::time_point time) : time_(time) {}

  Clock::time_point time_ = Clock::time_point::max();
};

/// How strongly somebody asked to end; ordered.
enum class CancelLevel : int32_t { none = 0, stop = 1, cancel = 2 };

class CancelToken : public Object {
 public:
  static Ref<CancelToken> create(Deadline deadline = Deadline::never());
  /// A token that also follows `parent` (null allowed). Its deadline is at each moment the earlier of its own and the
  /// parent's.
  static Ref<CancelToken> create_child(Ref<CancelToken> parent, Deadline deadline = Deadline::never());
  /// A token for work in the background: follows the level of `parent` (null allowed) but not its deadline, which is a
  /// matter of whoever waits for that work.
  static Ref<CancelToken> create_worker(Ref<CancelToken> parent);
  ~CancelToken() override;

  /// Raises the level; a second call, or a weaker one, changes nothing.
  void stop() { raise(CancelLevel::stop, Status()); }
  void cancel() { raise(CancelLevel::cancel, Status()); }
  /// Cancels with a reason, which becomes the cause of what check() and the waits return.
  void cancel(Status reason) { raise(CancelLevel::cancel, std::move(reason)); }

  CancelLevel level() const { return static_cast<CancelLevel>(level_.load(std::memory_order_acquire)); }
  bool stop_requested() const { return level() >= CancelLevel::stop; }
  /// Moves the token's own deadline.
  void set_deadline(Deadline deadline);
  Deadline deadline() const;
  /// CANCELLED, DEADLINE_EXCEEDED or ok.
  Status check() const;

  /// A function called once after each rise of the level, by the thread that raised it, one call at a time. Lives in
  /// the caller's memory and allocates nothing (beyond what the function does).
  class Listener {
   public:
    /// Says that the function is not called for a level reached before.
    enum class Start { call_if_raised, later_only };
    /// Says whether the function is also called after the deadline has moved closer.
    enum class Hears { levels, levels_and_deadlines };

    /// `token` may be null: nothing is ever called. The listener keeps the token alive.
    Listener(const CancelToken *token, std::function<void()> function, Start start = Start::call_if_raised,
             Hears hears = Hears::levels);
    /// Removes it; waits for a call in progress on another thread: hold no lock that the function takes.
    ~Listener() { remove(); }
    Listener(const Listener &) = delete;
    Listener &operator=(const Listener &) = delete;

    void add();
    void remove();
    /// Removes it unless a call is in progress on another thread; true when removed.
    bool try_remove();

   private:
    friend class CancelToken;

    const Ref<const CancelToken> token_;
    const std::function<void()> function_;
    const Hears hears_;
    // Guarded by the token's mutex.
    Listener *next_ = nullptr;
    Listener *previous_ = nullptr;
    int64_t seen_ = 0;  // as CancelToken::news() was
    bool added_ = false;
  };

 private:
  template <typename T, typename... A>
  friend Ref<T> make_ref(A &&...);

  explicit CancelToken(Deadline deadline) : deadline_(deadline.time()) {}
  static Ref<CancelToken> create_below(Ref<CancelToken> parent, Deadline deadline, Listener::Hears hears);
  void raise(CancelLevel level, Status reason);
  void follow_parent();
  void deadline_came_closer();
  // A number that grows with each change that such a listener hears of.
  int64_t news(Listener::Hears hears) const;
  void call_listeners(std::unique_lock<std::mutex> &lock) const;
  void unlink(Listener *listener) const;
  bool called_by_other(const Listener *listener) const;

  std::atomic<Deadline::Clock::time_point> deadline_;
  std::atomic<int32_t> level_{0};
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  mutable std::condition_variable call_ended_;
  mutable Listener *first_ = nullptr;
  mutable Listener *calling_ = nullptr;  // whose function runs just now
  mutable std::thread::id calling_thread_;
  mutable bool raising_ = false;
  int64_t closer_deadlines_ = 0;  // how often the deadline came closer
  Status reason_;                 // set with level cancel

  Ref<CancelToken> parent_;
  bool has_parents_deadline_ = false;
  std::unique_ptr<Listener> parent_listener_;
};

/// Ok, or the status of a token that may be null.
inline Status check(const CancelToken *token) { return token == nullptr ? Status() : token->check(); }

/// Does this status say that a token, and nothing else, ended the work? Then a wait has changed nothing, and the same
/// call goes on where it stood once the token allows it. False for a CANCELLED or DEADLINE_EXCEEDED from elsewhere (a
/// callback, a wait that had a limit of its own) and for a status that was wrapped.
bool is_interrupt(const Status &status);

/// What a wait that ran out of time returns.
Status wait_timed_out();

/// Sleeps until ready(), the token's end or `deadline`; the token's listener is registered by the caller.
template <typename Predicate>
Status sleep_until(std::condition_variable &condition, std::unique_lock<std::mutex> &lock, const CancelToken *token,
                   Deadline deadline, Predicate &ready) {
  while (!ready()) {
    TUTTI_TRY(check(token));
    if (deadline.passed()) return wait_timed_out();
    const Deadline limit = token == nullptr ? deadline : earlier(deadline, token->deadline());
    if (limit.is_never()) {
      condition.wait(lock);
    } else {
      condition.wait_until(lock, limit.time());
    }
  }
  return Status();
}

/// Waits on `condition` until ready() holds, called with the lock held. Returns ok then, with the lock held in every
/// case; else CANCELLED or DEADLINE_EXCEEDED (the token's or `deadline`). A stop wakes the wait so that ready() may ask
/// the token for it. Allocates nothing.
template <typename Predicate>
Status wait_until(std::condition_variable &condition, std::unique_lock<std::mutex> &lock, const CancelToken *token,
                  Deadline deadline, Predicate ready) {
  if (token == nullptr || ready()) return sleep_until(condition, lock, token, deadline, ready);
  std::mutex *mutex = lock.mutex();
  const auto wake_up = [mutex, &condition] {
    // Taking the mutex first closes the gap between the waiter's check and its sleep.
    { std::lock_guard hold(*mutex); }
    condition.notify_all();
  };
  using Listener = CancelToken::Listener;
  Listener wake(token, wake_up, Listener::Start::later_only, Listener::Hears::levels_and_deadlines);
  for (;;) {
    const Status status = sleep_until(condition, lock, token, deadline, ready);
    if (wake.try_remove()) return status;
    lock.unlock();
    wake.remove();
    lock.lock();
    // Another thread may have used the moment without the lock.
    if (!status.ok() || ready()) return status;
    wake.add();
  }
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_CANCEL_H_
