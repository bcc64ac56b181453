// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/device_pool.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "testing.h"

namespace device_pool_test {

using namespace tutti::impl;
using distribute::DevicePool;
using distribute::JobGroup;

namespace {

// Jobs that note the lane they run on and stay there until they are let go.
class HeldJobs {
 public:
  explicit HeldJobs(DevicePool &pool) : pool_(pool) {}

  void submit(int32_t device) {
    done_.add(1);
    pool_.submit(device, [this](int32_t lane) {
      std::unique_lock lock(mutex_);
      lanes_.push_back(lane);
      changed_.notify_all();
      changed_.wait(lock, [this] { return is_let_go_; });
      lock.unlock();
      done_.done(base::Status());
    });
  }
  // The lanes of the first `count` jobs to begin, in that order.
  std::vector<int32_t> lanes(size_t count) {
    const base::Deadline deadline = base::Deadline::after_ms(20000);
    std::unique_lock lock(mutex_);
    assert_ok(base::wait_until(changed_, lock, nullptr, deadline, [&] { return lanes_.size() >= count; }));
    return lanes_;
  }
  void let_go() {
    {
      const std::lock_guard lock(mutex_);
      is_let_go_ = true;
    }
    changed_.notify_all();
    assert_ok(done_.wait(nullptr));
  }

 private:
  DevicePool &pool_;
  JobGroup done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int32_t> lanes_;
  bool is_let_go_ = false;
};

std::set<int32_t> as_set(const std::vector<int32_t> &list) { return {list.begin(), list.end()}; }

void jobs_for_any_device_go_where_the_fewest_are(void **) {
  for (int turn = 0; turn < 50; ++turn) {
    const std::unique_ptr<DevicePool> pool = assert_ok_value(DevicePool::create({2, 2, 2}));
    HeldJobs jobs(*pool);
    for (int i = 0; i < 3; ++i)
      jobs.submit(DevicePool::any_device);
    assert_true(as_set(jobs.lanes(3)) == (std::set<int32_t>{0, 1, 2}));
    for (int i = 0; i < 3; ++i)
      jobs.submit(DevicePool::any_device);
    assert_true(as_set(jobs.lanes(6)) == (std::set<int32_t>{0, 1, 2, 3, 4, 5}));
    jobs.let_go();
  }
}

void jobs_of_a_device_stay_on_its_lanes(void **) {
  const std::unique_ptr<DevicePool> pool = assert_ok_value(DevicePool::create({2, 2, 2}));
  HeldJobs jobs(*pool);
  jobs.submit(1);
  jobs.submit(1);
  assert_true(as_set(jobs.lanes(2)) == (std::set<int32_t>{1, 4}));
  // The third waits for one of them, and the others do not wait for it.
  jobs.submit(1);
  jobs.submit(2);
  const int32_t fourth = jobs.lanes(3)[2];
  assert_true(fourth == 2 || fourth == 5);
  jobs.let_go();
}

void what_was_submitted_runs_before_the_pool_ends(void **) {
  JobGroup jobs;
  {
    const std::unique_ptr<DevicePool> pool = assert_ok_value(DevicePool::create({2, 2}));
    for (int i = 0; i < 100; ++i) {
      jobs.add(1);
      pool->submit(i % 3 - 1, [&](int32_t) { jobs.done(base::Status()); });
    }
  }
  assert_true(jobs.is_done());
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(jobs_for_any_device_go_where_the_fewest_are),
      cmocka_unit_test(jobs_of_a_device_stay_on_its_lanes),
      cmocka_unit_test(what_was_submitted_runs_before_the_pool_ends),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace device_pool_test
