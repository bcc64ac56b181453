// SPDX-License-Identifier: Apache-2.0
//
// Where one thread sleeps until another has changed something that is read without a lock. As long as nobody sleeps,
// wake() is one load; as long as the condition holds, wait() is one call of it.
//
//   waiter:  TUTTI_TRY(room.wait(token, [&] { return tail.load() - head.load() < size; }));
//   other:   head.store(head + 1); room.wake();
//
// The condition reads atomics, and who changes them does so with sequentially consistent stores before wake(): then
// either the waiter sees the change, or wake() sees the waiter.
//
// Threads: any number on both sides.
#ifndef TUTTI_DATA_THREAD_SLEEP_POINT_H_
#define TUTTI_DATA_THREAD_SLEEP_POINT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/cancel.h"
#include "base/status.h"

namespace tutti::impl::data {

class SleepPoint {
 public:
  /// Until ready() or the token (null allowed) says otherwise.
  template <typename Ready>
  base::Status wait(const base::CancelToken *token, Ready ready) {
    if (ready()) return base::Status();
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    base::Status status = base::wait_until(changed_, lock, token, base::Deadline::never(), ready);
    sleepers_.fetch_sub(1);
    return status;
  }
  void wake() {
    if (sleepers_.load() == 0) return;
    { std::lock_guard hold(mutex_); }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int32_t> sleepers_{0};
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_THREAD_SLEEP_POINT_H_
