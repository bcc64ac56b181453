// SPDX-License-Identifier: Apache-2.0
//
// Shares of the time of steps from given times, worked out by hand.
#include "distribute/train/step_times.h"

#include <cmath>

#include "testing.h"

namespace step_times_test {

namespace {

using tutti::impl::distribute::add_times;
using tutti::impl::distribute::shares_of;
using tutti::impl::distribute::StepShares;
using tutti::impl::distribute::StepTimes;

void assert_near(double wanted, double got) { assert_true(std::abs(wanted - got) < 1e-12); }

/// 10 steps of 1 us in all: nanoseconds that were waited.
StepTimes ten_steps(int64_t input, int64_t communication) { return {10, 1000, input, communication}; }

void one_replica_has_no_efficiency(void **) {
  const StepTimes times[] = {ten_steps(700, 0)};
  const StepShares shares = shares_of(times);
  assert_near(0.3, shares.compute);
  assert_near(0.7, shares.input);
  assert_near(0, shares.communication);
  assert_near(0, shares.imbalance);
  assert_near(1e-7, shares.step_seconds);
  assert_string_equal(shares.text().c_str(), "compute 30 %, input 70 %");
  assert_string_equal(shares.warning().c_str(), "");
  assert_null(shares.to_json().find("efficiency"));
}

void a_replica_of_several_workers_has_an_efficiency(void **) {
  const StepTimes times[] = {ten_steps(100, 600)};
  const StepShares shares = shares_of(times, {}, 4);
  assert_int_equal(shares.replicas, 4);
  assert_near(0.3, shares.compute);
  assert_near(0.6, shares.communication);
  assert_near(0, shares.imbalance);
  assert_near(0.3, shares.to_json().find("efficiency")->number());
  assert_string_equal(shares.text().c_str(), "compute 30 %, input 10 %, communication 60 %, imbalance 0 %");
  assert_string_equal(shares.warning().c_str(),
                      "4 replicas train at 30 % of 4 times the speed of one; 60 % of their time is spent on "
                      "communication: use larger batches, more accumulation_steps or fewer devices");
}

void replicas_that_wait_for_each_other_are_not_balanced(void **) {
  // Computing takes 300, 500, 900: the slowest has waited 100, so communication itself takes as much.
  const StepTimes times[] = {ten_steps(0, 700), ten_steps(0, 500), ten_steps(0, 100)};
  const StepShares shares = shares_of(times);
  assert_near(17.0 / 30, shares.compute);
  assert_near(10.0 / 30, shares.imbalance);
  assert_near(0.1, shares.communication);
  assert_near(0, shares.input);
  assert_near(17.0 / 30, shares.to_json().find("efficiency")->number());
  assert_string_equal(shares.text().c_str(), "compute 57 %, input 0 %, communication 10 %, imbalance 33 %");
  assert_string_equal(shares.warning().c_str(), "");
}

void the_slowest_step_counts(void **) {
  // A replica that a clock says was done sooner has no share of the rest.
  const StepTimes times[] = {{10, 1000, 100, 100}, {10, 800, 100, 100}};
  const StepShares shares = shares_of(times);
  assert_near(0.7, shares.compute);
  assert_near(0.1, shares.imbalance);
  assert_near(0.1, shares.input);
  assert_near(0.1, shares.communication);
}

void each_device_has_its_idle_share(void **) {
  // Computing takes 200, 500 and, told by a clock that was done sooner, 400.
  const StepTimes times[] = {ten_steps(100, 700), ten_steps(0, 500), {10, 800, 300, 100}};
  const std::string names[] = {"gpu:0", "gpu:1", "gpu:2"};
  const StepShares shares = shares_of(times, names);
  const double wanted[3][4] = {{0.2, 0.1, 0.4, 0.3}, {0.5, 0, 0.5, 0}, {0.4, 0.3, 0.2, 0.1}};
  const tutti::impl::base::Json json = shares.to_json();
  const tutti::impl::base::JsonArray &devices = json.find("devices")->array();
  assert_int_equal(devices.size(), 3);
  for (size_t d = 0; d < 3; ++d) {
    assert_string_equal(devices[d].find("device")->string().c_str(), names[d].c_str());
    assert_near(wanted[d][0], devices[d].find("utilisation")->number());
    assert_near(1 - wanted[d][0], devices[d].find("idle")->number());
    assert_near(wanted[d][1], devices[d].find("input")->number());
    assert_near(wanted[d][2], devices[d].find("communication")->number());
    assert_near(wanted[d][3], devices[d].find("imbalance")->number());
  }
  assert_string_equal(shares.text().c_str(),
                      "compute 37 %, input 13 %, communication 37 %, imbalance 13 %; "
                      "idle: gpu:0 80 %, gpu:1 50 %, gpu:2 60 %");
  assert_int_equal(shares_of(times).devices.size(), 0);
}

void no_steps_have_no_shares(void **) {
  assert_near(0, shares_of({}).compute);
  const StepTimes none[] = {{}, {}};
  assert_string_equal(shares_of(none).warning().c_str(), "");
  assert_near(0, shares_of(none).step_seconds);
}

void a_warning_names_the_main_cause(void **) {
  const StepTimes communicating[] = {ten_steps(50, 600), ten_steps(50, 600)};
  assert_string_equal(shares_of(communicating).warning().c_str(),
                      "2 replicas train at 35 % of 2 times the speed of one; 60 % of their time is spent on "
                      "communication: use larger batches, more accumulation_steps or fewer devices");
  const StepTimes fed_slowly[] = {ten_steps(600, 50), ten_steps(600, 50)};
  assert_string_equal(shares_of(fed_slowly).warning().c_str(),
                      "2 replicas train at 35 % of 2 times the speed of one; 60 % of their time is spent waiting for "
                      "input: speed up the input pipeline, whose report names the limiting stage");
  const StepTimes uneven[] = {ten_steps(0, 900), ten_steps(0, 900), ten_steps(0, 100)};
  assert_string_equal(shares_of(uneven).warning().c_str(),
                      "3 replicas train at 37 % of 3 times the speed of one; 53 % of their time is spent waiting for "
                      "the slowest of them: use devices of equal speed without other load");
  const StepTimes just_enough[] = {ten_steps(0, 500), ten_steps(0, 500)};
  assert_string_equal(shares_of(just_enough).warning().c_str(), "");
  const StepTimes not_enough[] = {ten_steps(0, 501), ten_steps(0, 500)};
  assert_true(shares_of(not_enough).warning() != "");
}

void times_of_runs_are_added(void **) {
  std::vector<StepTimes> sums;
  const StepTimes first[] = {{1, 10, 2, 3}, {1, 11, 2, 4}}, second[] = {{2, 20, 1, 1}, {2, 21, 0, 5}};
  add_times(sums, first);
  add_times(sums, second);
  assert_int_equal(sums.size(), 2);
  assert_int_equal(sums[0].steps, 3);
  assert_int_equal(sums[0].total_ns, 30);
  assert_int_equal(sums[1].input_ns, 2);
  assert_int_equal(sums[1].communication_ns, 9);
  assert_int_equal(sums[1].compute_ns(), 21);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(one_replica_has_no_efficiency),
      cmocka_unit_test(a_replica_of_several_workers_has_an_efficiency),
      cmocka_unit_test(replicas_that_wait_for_each_other_are_not_balanced),
      cmocka_unit_test(the_slowest_step_counts),
      cmocka_unit_test(each_device_has_its_idle_share),
      cmocka_unit_test(no_steps_have_no_shares),
      cmocka_unit_test(a_warning_names_the_main_cause),
      cmocka_unit_test(times_of_runs_are_added),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace step_times_test
