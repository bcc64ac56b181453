// SPDX-License-Identifier: Apache-2.0
//
// When a bad efficiency of replicas is told, from given times.
#include "estimator/efficiency_watch.h"

#include <cmath>
#include <vector>

#include "testing.h"

namespace efficiency_watch_test {

namespace {

using tutti::impl::distribute::StepTimes;
using tutti::impl::estimator::EfficiencyWatch;

constexpr int64_t kMs = 1'000'000;

/// `steps` of 100 ms on two replicas, of which they compute `compute_ms`.
std::vector<StepTimes> steps_of(int64_t steps, int64_t compute_ms) {
  const StepTimes times{steps, steps * 100 * kMs, 0, steps * (100 - compute_ms) * kMs};
  return {times, times};
}

void bad_scaling_is_told_once(void **) {
  EfficiencyWatch watch;
  assert_true(watch.add(steps_of(99, 20)).empty());  // not yet a window
  const std::string warning = watch.add(steps_of(1, 20));
  assert_non_null(strstr(warning.c_str(), "2 replicas train at 20 % of 2 times the speed of one"));
  assert_non_null(strstr(warning.c_str(), "80 % of their time is spent on communication"));
  assert_true(watch.add(steps_of(200, 20)).empty());
  assert_int_equal(watch.shares().steps, 300);
  assert_true(std::abs(watch.shares().compute - 0.2) < 1e-9);
}

void one_replica_of_several_workers_counts(void **) {
  EfficiencyWatch watch;
  const std::vector<StepTimes> own = {steps_of(100, 20)[0]};
  assert_true(watch.add(own).empty());  // as far as it knows it is alone
  watch.set_replicas(3);
  assert_non_null(strstr(watch.add(own).c_str(), "3 replicas train at 20 % of 3 times the speed of one"));
  assert_int_equal(watch.shares().replicas, 3);
}

void good_windows_do_not_excuse_bad_ones(void **) {
  EfficiencyWatch watch;
  assert_true(watch.add(steps_of(1000, 90)).empty());
  assert_true(watch.add(steps_of(50, 20)).empty());
  assert_false(watch.add(steps_of(50, 20)).empty());
}

void short_windows_tell_nothing(void **) {
  EfficiencyWatch watch;
  const StepTimes quick{1000, 4 * 1000 * kMs, 0, 3 * 1000 * kMs};
  assert_true(watch.add(std::vector<StepTimes>{quick, quick}).empty());
  assert_true(watch.add({}).empty());
  assert_false(watch.add(std::vector<StepTimes>{quick, quick}).empty());
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(bad_scaling_is_told_once),
      cmocka_unit_test(one_replica_of_several_workers_counts),
      cmocka_unit_test(good_windows_do_not_excuse_bad_ones),
      cmocka_unit_test(short_windows_tell_nothing),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace efficiency_watch_test
