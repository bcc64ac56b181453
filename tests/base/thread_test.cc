// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "testing.h"

namespace thread_test {

using namespace tutti::impl::base;

namespace {

void threads_are_named_and_block_signals(void **) {
  std::string seen;
  bool blocked = false, reaches_handlers = false;
  {
    const Thread thread = assert_ok_value(Thread::start("tutti-a-name-too-long", [&] {
      char text[16] = {};
      pthread_getname_np(pthread_self(), text, sizeof(text));
      seen = text;
      sigset_t mask;
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
      // What a thread does to itself.
      reaches_handlers = sigismember(&mask, SIGSEGV) == 0 && sigismember(&mask, SIGFPE) == 0 &&
                         sigismember(&mask, SIGBUS) == 0 && sigismember(&mask, SIGABRT) == 0;
    }));
    assert_true(thread.running());
  }
  assert_string_equal(seen.c_str(), "tutti-a-name-to");
  assert_true(blocked);
  assert_true(reaches_handlers);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  assert_int_equal(sigismember(&mask, SIGINT), 0);
}

void exceptions_stay_inside(void **) {
  Thread thread = assert_ok_value(Thread::start("thrower", [] { throw std::runtime_error("x"); }));
  thread.join();
  assert_false(thread.running());
  thread.join();
}

void the_budget_counts(void **) {
  const Ref<ThreadBudget> budget = make_ref<ThreadBudget>(4);
  {
    const ThreadBudget::Lease most = budget->take(3, 1);
    assert_int_equal(most.count(), 3);
    const ThreadBudget::Lease rest = budget->take(3, 1);
    assert_int_equal(rest.count(), 1);
    const ThreadBudget::Lease none = budget->take(5, 0);
    assert_int_equal(none.count(), 0);
    ThreadBudget::Lease overdrawn = budget->take(5, 2);
    assert_int_equal(overdrawn.count(), 2);
    assert_int_equal(budget->available(), -2);
    const ThreadBudget::Lease moved = std::move(overdrawn);
    assert_int_equal(moved.count(), 2);
  }
  assert_int_equal(budget->available(), 4);
  assert_true(available_cores() >= 1);
}

void tasks_run(void **) {
  for (const int count : {0, 1, 3}) {
    std::atomic<int> ran{0};
    auto pool = assert_ok_value(ThreadPool::create("pool", count));
    assert_int_equal(pool->thread_count(), count);
    for (int i = 0; i < 100; ++i)
      assert_ok(pool->submit([&] { ++ran; }));
    assert_ok(pool->submit([] { throw std::runtime_error("swallowed"); }));
    pool->wait_idle();
    assert_int_equal(ran.load(), 100);
    for (int i = 0; i < 10; ++i)
      assert_ok(pool->submit([&] { ++ran; }));
    pool->shut_down();
    assert_int_equal(ran.load(), 110);
    assert_true(pool->submit([] {}).code() == Code::failed_precondition);
  }
}

void loops_cover_each_index_once(void **) {
  for (const int count : {0, 1, 3}) {
    auto pool = assert_ok_value(ThreadPool::create("pool", count));
    for (const int64_t size : {0, 1, 2, 17, 1000}) {
      for (const int64_t grain : {-1, 1, 7, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(size));
        assert_ok(pool->parallel_for(5, 5 + size, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            ++seen[static_cast<size_t>(i - 5)];
          return Status();
        }));
        for (const auto &times : seen)
          assert_int_equal(times.load(), 1);
      }
    }
  }
}

void loops_nest_and_run_beside_each_other(void **) {
  auto pool = assert_ok_value(ThreadPool::create("pool", 2));
  std::atomic<int64_t> sum{0};
  const auto nested = [&] {
    return pool->parallel_for(0, 8, 1, [&](int64_t, int64_t) {
      return pool->parallel_for(0, 100, 3, [&](int64_t begin, int64_t end) {
        sum += end - begin;
        return Status();
      });
    });
  };
  Status other;
  {
    const Thread beside = assert_ok_value(Thread::start("beside", [&] { other = nested(); }));
    assert_ok(nested());
  }
  assert_ok(other);
  assert_int_equal(sum.load(), 1600);
}

void a_loop_stops_at_the_first_failure(void **) {
  auto pool = assert_ok_value(ThreadPool::create("pool", 2));
  std::atomic<int> ran{0};
  const Status status = pool->parallel_for(0, 1000000, 1, [&](int64_t begin, int64_t) {
    ++ran;
    return begin >= 3 ? out_of_range("index ", begin) : Status();
  });
  assert_error_contains(status, "index 3");
  assert_true(ran.load() < 1000000);
  assert_error_contains(
      pool->parallel_for(0, 10, 1, [](int64_t, int64_t) -> Status { throw std::runtime_error("odd"); }),
      "INTERNAL: odd");
}

void a_forked_child_is_told(void **) {
  assert_ok(check_not_forked());
  const pid_t child = fork();
  if (child == 0) _exit(check_not_forked().code() == Code::failed_precondition ? 0 : 1);
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_ok(check_not_forked());
}

const CMUnitTest tests[] = {
    cmocka_unit_test(threads_are_named_and_block_signals),
    cmocka_unit_test(exceptions_stay_inside),
    cmocka_unit_test(the_budget_counts),
    cmocka_unit_test(tasks_run),
    cmocka_unit_test(loops_cover_each_index_once),
    cmocka_unit_test(loops_nest_and_run_beside_each_other),
    cmocka_unit_test(a_loop_stops_at_the_first_failure),
    cmocka_unit_test(a_forked_child_is_told),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace thread_test
