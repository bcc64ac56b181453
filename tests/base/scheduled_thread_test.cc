// SPDX-License-Identifier: Apache-2.0
#include "base/scheduled_thread.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/thread.h"
#include "testing.h"

namespace tutti::testing::scheduled_thread_test {

using impl::base::ScheduledThread;

/// A thread that works while `busy` and sleeps otherwise, until it is destroyed.
class Worker {
 public:
  Worker() : thread_([this] { work(); }) {
    while (!known_.load())
      std::this_thread::yield();
  }
  ~Worker() {
    closing_.store(true);
    busy_.store(true);
    busy_.notify_all();
    thread_.join();
  }
  const ScheduledThread &scheduled() const { return scheduled_; }
  void work_from_now_on() {
    busy_.store(true);
    busy_.notify_all();
  }
  cpu_set_t mask() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    assert_int_equal(pthread_getaffinity_np(thread_.native_handle(), sizeof mask, &mask), 0);
    return mask;
  }

 private:
  void work() {
    scheduled_ = ScheduledThread::current();
    known_.store(true);
    busy_.wait(false);
    while (!closing_.load()) {
    }
  }

  std::atomic<bool> known_{false}, busy_{false}, closing_{false};
  ScheduledThread scheduled_;
  std::thread thread_;
};

static void test_processor_time_of_another_thread(void **) {
  Worker worker;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int64_t asleep = worker.scheduled().processor_ns();
  assert_true(asleep > 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  assert_int_equal(worker.scheduled().processor_ns(), asleep);
  worker.work_from_now_on();
  while (worker.scheduled().processor_ns() < asleep + 1'000'000)
    std::this_thread::yield();
}

static void test_threads_are_told_apart(void **) {
  Worker first, second;
  assert_false(first.scheduled() == second.scheduled());
  assert_true(ScheduledThread::current() == ScheduledThread::current());
  assert_false(ScheduledThread::current() == first.scheduled());
}

static void test_moving_keeps_the_mask(void **) {
  Worker worker;
  const cpu_set_t before = worker.mask();
  worker.scheduled().bring_here();
  cpu_set_t after = worker.mask();
  assert_true(CPU_EQUAL(&before, &after));
  worker.work_from_now_on();
  for (int i = 0; i < 100; ++i)
    worker.scheduled().bring_here();
  after = worker.mask();
  assert_true(CPU_EQUAL(&before, &after));
}

static void test_leaves_the_core(void **) {
  if (impl::base::available_cores() < 2) test_skip();
  cpu_set_t before, after;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  // The scheduler may move the thread back at any time.
  bool moved = false;
  for (int i = 0; i < 1000 && !moved; ++i) {
    const int32_t core = ScheduledThread::core();
    ScheduledThread::leave_core();
    moved = ScheduledThread::core() != core;
  }
  assert_true(moved);
  assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
  assert_true(CPU_EQUAL(&before, &after));
}

/// Who is brought while it leaves has the mask afterwards that it had before, not one of either.
static void test_moving_from_both_sides_keeps_the_mask(void **) {
  if (impl::base::available_cores() < 3) test_skip();  // of two cores a thread that leaves has one, and is not brought
  cpu_set_t before, after;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  std::atomic<bool> closing{false};
  const ScheduledThread self = ScheduledThread::current();
  std::thread other([&] {
    while (!closing.load())
      self.bring_here();
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end)
    ScheduledThread::leave_core();
  closing.store(true);
  other.join();
  assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
  assert_true(CPU_EQUAL(&before, &after));
}

static void test_one_core_is_kept(void **) {
  cpu_set_t before, one, after;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(ScheduledThread::core()), &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  ScheduledThread::leave_core();
  assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
  assert_true(CPU_EQUAL(&one, &after));
}

static void test_no_thread_is_nothing(void **) {
  const ScheduledThread none;
  assert_int_equal(none.processor_ns(), -1);
  none.bring_here();
  ScheduledThread ended;
  std::thread([&] { ended = ScheduledThread::current(); }).join();
  // The system may take a while to take it out of its books.
  const auto begin = std::chrono::steady_clock::now();
  while (ended.processor_ns() != -1) {
    assert_true(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    std::this_thread::yield();
  }
  ended.bring_here();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_processor_time_of_another_thread),
    cmocka_unit_test(test_threads_are_told_apart),
    cmocka_unit_test(test_moving_keeps_the_mask),
    cmocka_unit_test(test_leaves_the_core),
    cmocka_unit_test(test_moving_from_both_sides_keeps_the_mask),
    cmocka_unit_test(test_one_core_is_kept),
    cmocka_unit_test(test_no_thread_is_nothing),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::scheduled_thread_test
