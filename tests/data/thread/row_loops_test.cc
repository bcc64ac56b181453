// SPDX-License-Identifier: Apache-2.0
//
// Loops over rows: every row once, whoever runs it, and the choice between one thread and several.
#include <atomic>
#include <vector>

#include "data/thread/row_loops.h"
#include "testing.h"

namespace row_loops_test {

using namespace tutti::impl;
using data::LoopThreads;
using data::ParallelChoice;
using data::RowLoops;

namespace {

// Loops so long that times per row are those given, until the choice is that of the time between two trials.
bool outcome(ParallelChoice &choice, double spread_ns, double alone_ns, int64_t loops) {
  for (int64_t i = 0; i < loops; ++i) {
    const bool is_spread = choice.next();
    choice.took(is_spread, 100, static_cast<int64_t>(100 * (is_spread ? spread_ns : alone_ns)));
  }
  return choice.next();
}

constexpr int64_t kTrial = ParallelChoice::kWarmUps + ParallelChoice::kTrialLoops;

void test_the_faster_kind_is_kept(void **) {
  ParallelChoice slower, faster;
  assert_true(slower.next());
  assert_false(outcome(slower, 20, 10, kTrial));
  assert_true(outcome(faster, 10, 20, kTrial));
}

void test_a_few_odd_times_change_nothing(void **) {
  ParallelChoice choice;
  for (int64_t i = 0; i < kTrial; ++i) {
    const bool is_spread = choice.next();
    const bool is_odd = i % 5 == 0;
    choice.took(is_spread, 1, is_odd ? 900'000 : is_spread ? 2000 : 1000);
  }
  assert_false(choice.next());
}

// The first spread loop behind others wakes the threads.
void test_the_waking_of_threads_does_not_count(void **) {
  ParallelChoice choice;
  bool was_spread = false;
  for (int64_t i = 0; i < kTrial; ++i) {
    const bool is_spread = choice.next();
    const bool wakes = is_spread && !was_spread;
    choice.took(is_spread, 1, wakes ? 3000 : is_spread ? 800 : 1000);
    was_spread = is_spread;
  }
  assert_true(choice.next());
}

void test_both_kinds_take_turns(void **) {
  ParallelChoice choice;
  (void)outcome(choice, 10, 20, ParallelChoice::kWarmUps);
  int spread = 0;
  for (int i = 0; i < ParallelChoice::kTrialLoops; ++i) {
    const bool is_spread = choice.next();
    spread += is_spread ? 1 : 0;
    choice.took(is_spread, 1, 1000);
  }
  assert_int_equal(spread, ParallelChoice::kTrialLoops / 2);
}

void test_what_changes_is_found_later(void **) {
  ParallelChoice choice;
  assert_false(outcome(choice, 20, 10, kTrial));
  assert_true(outcome(choice, 5, 10, ParallelChoice::kFirstDistance + ParallelChoice::kTrialLoops));
  assert_false(outcome(choice, 20, 10, ParallelChoice::kFirstDistance + ParallelChoice::kTrialLoops));
}

void test_long_loops_are_always_spread(void **) {
  constexpr double kLong = ParallelChoice::kLongNanoseconds / 100.0;
  ParallelChoice choice;
  for (int64_t i = 0; i < 3 * ParallelChoice::kFirstDistance; ++i) {
    assert_true(choice.next());
    choice.took(true, 100, ParallelChoice::kLongNanoseconds);
  }
  // Loops that become long are spread from the next time on that the choice is looked at.
  assert_false(outcome(choice, 20, 10, ParallelChoice::kFirstDistance + ParallelChoice::kTrialLoops));
  assert_true(outcome(choice, kLong, 2 * kLong, ParallelChoice::kLongestDistance));
}

void check_each_row_once(const LoopThreads &threads) {
  RowLoops loops(threads);
  for (int pass = 0; pass < 60; ++pass) {
    for (const int64_t rows : {0, 1, 7, 64, 65, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(rows + 1));
      assert_ok(loops.run(-1, rows, 7, [&](int64_t from, int64_t to) {
        for (int64_t row = from; row < to; ++row)
          ++seen[static_cast<size_t>(row + 1)];
        return base::Status();
      }));
      for (const std::atomic<int> &one : seen)
        assert_int_equal(one.load(), 1);
    }
    const base::Status status = loops.run(0, 1000, 10, [&](int64_t from, int64_t) {
      return from == 30 ? base::data_loss("row ", from) : base::Status();
    });
    assert_string_equal(status.message().c_str(), "row 30");
  }
}

void test_each_row_once(void **) {
  std::unique_ptr<base::ThreadPool> pool = base::ThreadPool::create("rows", 3).take();
  check_each_row_once({});
  check_each_row_once({pool.get(), false});
  check_each_row_once({pool.get(), true});
}

void test_threads_of_a_parameter(void **) {
  data::WorkerThreads alone(1), four(4);
  assert_null(alone.for_loops(0).take().pool);
  assert_true(four.for_loops(0).take().is_automatic);
  assert_int_equal(RowLoops(four.for_loops(0).take()).threads(), 4);
  assert_false(four.for_loops(3).take().is_automatic);
  assert_int_equal(RowLoops(four.for_loops(3).take()).threads(), 3);
  assert_null(four.for_loops(1).take().pool);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_the_faster_kind_is_kept),
      cmocka_unit_test(test_a_few_odd_times_change_nothing),
      cmocka_unit_test(test_the_waking_of_threads_does_not_count),
      cmocka_unit_test(test_both_kinds_take_turns),
      cmocka_unit_test(test_what_changes_is_found_later),
      cmocka_unit_test(test_long_loops_are_always_spread),
      cmocka_unit_test(test_each_row_once),
      cmocka_unit_test(test_threads_of_a_parameter),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace row_loops_test
