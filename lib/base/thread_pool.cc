// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>
#include <atomic>

#include "base/exceptions.h"
#include "base/scheduled_thread.h"
#include "base/spin.h"
#include "base/thread.h"

namespace tutti::impl::base {

// One parallel_for in progress; lives on its caller's stack. The caller leaves when no helper is inside.
struct ThreadPool::Loop {
  Loop(int64_t begin, int64_t end, int64_t grain, FunctionRef<Status(int64_t, int64_t)> body)
      : next(begin), end(end), grain(grain), body(body) {}

  bool has_work() const {
    return next.load(std::memory_order_relaxed) < end && !failed.load(std::memory_order_relaxed);
  }
  void fail(int64_t at, Status bad) {
    std::lock_guard lock(mutex);
    if (failed.load(std::memory_order_relaxed) && at >= failed_at) return;
    status = std::move(bad);
    failed_at = at;
    failed.store(true, std::memory_order_relaxed);
  }

  std::atomic<int64_t> next;
  const int64_t end;
  const int64_t grain;
  const FunctionRef<Status(int64_t, int64_t)> body;
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status status;          // guarded by mutex
  int64_t failed_at = 0;  // guarded by mutex
  // Written with the pool's mutex; who helps does not touch the loop after it has counted itself out.
  std::atomic<int32_t> helpers{0};
  // Guarded by the pool's mutex:
  Loop *next_loop = nullptr;
};

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(const std::string &name, int32_t count) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  // With fewer cores than threads a spinning thread is in the way of one with work.
  if (count < available_cores()) pool->spin_time_ = kSpinTime;
  // A thread that has no place to be kept in could not be told to end.
  pool->threads_.reserve(static_cast<size_t>(std::max(count, 0)));
  for (int32_t i = 0; i < count; ++i) {
    TUTTI_ASSIGN(Thread thread, Thread::start(concat(name, "-", i), [self = pool.get()] { self->work(); }));
    pool->threads_.push_back(std::move(thread));
  }
  return pool;
}

ThreadPool::~ThreadPool() { shut_down(); }

void ThreadPool::shut_down() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    ++arrivals_;
  }
  work_arrived_.notify_all();
  for (Thread &thread : threads_)
    thread.join();
}

Status ThreadPool::submit(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (ending_) return failed_precondition("the thread pool was shut down");
    if (!threads_.empty()) {
      tasks_.push_back(std::move(task));
      ++arrivals_;
      work_arrived_.notify_one();
      return Status();
    }
  }
  run_task(task);
  return Status();
}

void ThreadPool::run_task(const std::function<void()> &task) {
  try {
    task();
  } catch (const std::exception &) {
    // A task reports by its own ways; see the header.
  }
}

void ThreadPool::wait_idle() {
  std::unique_lock lock(mutex_);
  became_idle_.wait(lock, [this] { return tasks_.empty() && running_tasks_ == 0; });
}

ThreadPool::Loop *ThreadPool::open_loop() const {
  Loop *loop = loops_;
  while (loop != nullptr && !loop->has_work())
    loop = loop->next_loop;
  return loop;
}

bool ThreadPool::has_work() const { return open_loop() != nullptr || !tasks_.empty() || ending_; }

void ThreadPool::wait_for_work(std::unique_lock<std::mutex> &lock) {
  if (!has_work()) {
    const uint32_t seen = arrivals_.load(std::memory_order_relaxed);
    lock.unlock();
    // On the caller's core it would not run while the caller works; who sleeps is woken on a core that is free.
    const auto is_over = [&] {
      return arrivals_.load(std::memory_order_relaxed) != seen ||
             ScheduledThread::core() == caller_core_.load(std::memory_order_relaxed);
    };
    spin_until(is_over, spin_time_, sched_yield);
    lock.lock();
  }
  work_arrived_.wait(lock, [this] { return has_work(); });
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wait_for_work(lock);
    if (Loop *const loop = open_loop()) {
      ++loop->helpers;
      lock.unlock();
      run_ranges(loop);
      lock.lock();
      if (loop->helpers.fetch_sub(1, std::memory_order_release) == 1) loop_left_.notify_all();
    } else if (!tasks_.empty()) {
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      ++running_tasks_;
      lock.unlock();
      run_task(task);
      task = nullptr;  // what it holds dies without the lock
      lock.lock();
      if (--running_tasks_ == 0 && tasks_.empty()) became_idle_.notify_all();
    } else if (ending_) {
      return;
    }
  }
}

void ThreadPool::run_ranges(Loop *loop) {
  while (!loop->failed.load(std::memory_order_relaxed)) {
    const int64_t from = loop->next.fetch_add(loop->grain, std::memory_order_relaxed);
    if (from >= loop->end) return;
    const int64_t to = loop->end - from <= loop->grain ? loop->end : from + loop->grain;
    Status status = without_exceptions([&] { return loop->body(from, to); });
    if (!status.ok()) loop->fail(from, std::move(status));
  }
}

Status ThreadPool::parallel_for(int64_t begin, int64_t end, int64_t grain, FunctionRef<Status(int64_t, int64_t)> body) {
  if (begin >= end) return Status();
  grain = std::clamp<int64_t>(grain, 1, end - begin);
  Loop loop(begin, end, grain, body);
  const int64_t ranges = (end - begin - 1) / grain + 1;
  const int64_t helpers = std::min<int64_t>(ranges - 1, thread_count());
  if (helpers == 0) {
    run_ranges(&loop);
    return loop.status;
  }
  {
    std::lock_guard lock(mutex_);
    loop.next_loop = loops_;
    loops_ = &loop;
    caller_core_.store(ScheduledThread::core(), std::memory_order_relaxed);
    ++arrivals_;
  }
  for (int64_t i = 0; i < helpers; ++i)
    work_arrived_.notify_one();
  run_ranges(&loop);
  leave_loop(&loop);
  return loop.status;
}

void ThreadPool::leave_loop(Loop *loop) {
  std::unique_lock lock(mutex_);
  Loop **link = &loops_;
  while (*link != loop)
    link = &(*link)->next_loop;
  *link = loop->next_loop;
  const auto is_left = [loop] { return loop->helpers.load(std::memory_order_acquire) == 0; };
  if (is_left()) return;
  lock.unlock();
  if (spin_until(is_left, spin_time_, sched_yield)) return;
  lock.lock();
  loop_left_.wait(lock, is_left);
}

}  // namespace tutti::impl::base
