// SPDX-License-Identifier: Apache-2.0
//
// A program of several devices is issued once, when the last of them has come, and all of them take it or none.
#include "backend/pjrt/program/shared_launch.h"

#include <atomic>
#include <thread>
#include <vector>

#include "testing.h"

namespace {

using namespace tutti::impl;
using backend::pjrt::DeviceRun;
using backend::pjrt::SharedLaunch;
using base::Status;

int code_of(const Status &status) { return static_cast<int>(status.code()); }

void test_the_last_one_issues(void **) {
  SharedLaunch launch(3);
  std::vector<DeviceRun> runs(3);
  int issued = 0;
  const auto issue = [&](std::span<DeviceRun *const> all) {
    ++issued;
    for (size_t place = 0; place < all.size(); ++place)
      assert_ptr_equal(all[place], &runs[place]);
    return Status();
  };
  for (int round = 1; round <= 3; ++round) {
    for (const size_t place : {2, 0, 1}) {
      assert_int_equal(issued, round - 1);
      assert_true(launch.bring(place, runs[place], issue).ok());
    }
    assert_int_equal(issued, round);
    for (size_t place = 0; place < 3; ++place)
      assert_true(launch.take(place).ok());
  }
}

void test_all_hear_of_a_failure(void **) {
  SharedLaunch launch(2);
  std::vector<DeviceRun> runs(2);
  const auto fail = [](std::span<DeviceRun *const>) -> Status { return base::resource_exhausted("no memory"); };
  assert_true(launch.bring(0, runs[0], fail).ok());
  assert_int_equal(code_of(launch.bring(1, runs[1], fail)), static_cast<int>(base::Code::resource_exhausted));
  assert_int_equal(code_of(launch.take(0)), static_cast<int>(base::Code::resource_exhausted));
  assert_int_equal(code_of(launch.take(1)), static_cast<int>(base::Code::resource_exhausted));
}

/// Who takes before all have come is not waited for any more: the late one does not run either.
void test_all_or_none(void **) {
  SharedLaunch launch(2);
  std::vector<DeviceRun> runs(2);
  int issued = 0;
  const auto issue = [&](std::span<DeviceRun *const>) {
    ++issued;
    return Status();
  };
  assert_true(launch.bring(0, runs[0], issue).ok());
  assert_int_equal(code_of(launch.take(0)), static_cast<int>(base::Code::failed_precondition));
  assert_true(launch.bring(1, runs[1], issue).ok());
  assert_int_equal(issued, 0);
  launch.withdraw(1, runs[0]);  // another's
  launch.withdraw(1, runs[1]);
  assert_true(launch.bring(0, runs[0], issue).ok());
  assert_int_equal(issued, 0);
  assert_true(launch.bring(1, runs[1], issue).ok());
  assert_int_equal(issued, 1);
  assert_true(launch.take(0).ok());
  assert_true(launch.take(1).ok());
}

void test_from_threads(void **) {
  constexpr int kThreads = 4, kRounds = 2000;
  SharedLaunch launch(kThreads);
  std::vector<DeviceRun> runs(kThreads);
  std::atomic<int> issued{0}, taken{0}, arrived{0};
  const auto issue = [&](std::span<DeviceRun *const>) {
    ++issued;
    return Status();
  };
  std::vector<std::thread> threads;
  for (size_t place = 0; place < kThreads; ++place) {
    threads.emplace_back([&, place] {
      for (int round = 1; round <= kRounds; ++round) {
        (void)launch.bring(place, runs[place], issue);
        ++arrived;
        while (arrived < round * kThreads)
          std::this_thread::yield();
        if (launch.take(place).ok()) ++taken;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(issued, kRounds);
  assert_int_equal(taken, kRounds * kThreads);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_last_one_issues),
    cmocka_unit_test(test_all_hear_of_a_failure),
    cmocka_unit_test(test_all_or_none),
    cmocka_unit_test(test_from_threads),
};
TEST_MAIN(tests)
