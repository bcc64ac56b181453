// SPDX-License-Identifier: Apache-2.0
//
// Samples of steps have what the same steps report where each is a run of its own, and change nothing of them.
#include "distribute/train/step_history.h"

#include <chrono>
#include <cmath>

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::step_history_test {

using impl::distribute::NamedNumber;
using impl::distribute::RunReport;
using impl::distribute::SampleMoment;
using impl::distribute::StepSamples;

constexpr int64_t kBatch = 7, kBatches = 12, kRows = kBatch * (kBatches - 1) + 3;  // the last one is smaller

static int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

static std::unique_ptr<Trainer> trainer_of(int32_t replicas) {
  NetworkCase network;
  network.optimizer = Optimizer::adam;
  network.dropout = true;
  const Model model = assert_ok_value(build_network(network));
  auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), {}));
  assert_ok(trainer->initialize());
  const auto rows = make_rows(kRows, network.features, network.classes, network.dtype, kBatch);
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  return trainer;
}

/// What each step reports.
static std::vector<std::vector<NamedNumber>> reports_of(int32_t replicas) {
  const auto trainer = trainer_of(replicas);
  std::vector<std::vector<NamedNumber>> reports;
  while (assert_ok_value(trainer->run(1, nullptr)).steps == 1)
    reports.push_back(assert_ok_value(trainer->report()));
  return reports;
}

static std::vector<int64_t> steps_of(const StepSamples &samples) {
  std::vector<int64_t> steps;
  for (size_t i = 0; i < samples.size(); ++i)
    steps.push_back(samples.moment(i).step);
  return steps;
}

static void check_values(const StepSamples &samples, const std::vector<std::vector<NamedNumber>> &reports) {
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<NamedNumber> &report = reports.at(static_cast<size_t>(samples.moment(i).step - 1));
    assert_int_equal(samples.names().size(), report.size());
    for (size_t k = 0; k < report.size(); ++k) {
      assert_string_equal(samples.names()[k].c_str(), report[k].name.c_str());
      if (samples.values(i)[k] != report[k].value)
        fail_msg("%s of step %d: %.9g, expected %.9g", report[k].name.c_str(), static_cast<int>(samples.moment(i).step),
                 samples.values(i)[k], report[k].value);
    }
  }
}

static void test_samples(void **) {
  for (const int32_t replicas : {1, 2, 3}) {
    const auto reports = reports_of(replicas);
    assert_int_equal(reports.size(), kBatches);
    for (const int64_t every : {1, 3, 5, 100}) {
      const auto trainer = trainer_of(replicas);
      StepSamples &samples = *trainer->samples();
      samples.start(1, every);
      const int64_t begin_ns = now_ns();
      assert_ok(trainer->run(-1, nullptr));
      std::vector<int64_t> expected;
      for (int64_t step = 1; step <= kBatches; step += every)
        expected.push_back(step);
      assert_true(steps_of(samples) == expected);
      check_values(samples, reports);
      SampleMoment before{.time_ns = begin_ns};
      for (size_t i = 0; i < samples.size(); ++i) {
        const SampleMoment &moment = samples.moment(i);
        assert_int_equal(moment.examples, std::min(kRows, moment.step * kBatch));
        assert_true(moment.time_ns >= before.time_ns && moment.input_wait_ns >= before.input_wait_ns);
        before = moment;
      }
      assert_true(before.time_ns <= now_ns());
    }
  }
}

// Over several runs, after a pause without samples, and no more of them than there is room for.
static void test_runs(void **) {
  const auto reports = reports_of(2);
  const auto trainer = trainer_of(2);
  StepSamples &samples = *trainer->samples();
  assert_ok(trainer->run(1, nullptr));
  assert_int_equal(samples.size(), 0);
  assert_true(samples.steps_until_full(1) == INT64_MAX);
  samples.start(2, 4);
  assert_int_equal(samples.steps_until_full(1), 1 + 4 * static_cast<int64_t>(StepSamples::kCapacity - 1));
  assert_ok(trainer->run(2, nullptr));
  assert_ok(trainer->run(4, nullptr));
  assert_true((steps_of(samples) == std::vector<int64_t>{2, 6}));
  assert_int_equal(samples.moment(0).examples, kBatch);      // of its run
  assert_int_equal(samples.moment(1).examples, 3 * kBatch);  // of the next one
  check_values(samples, reports);
  samples.clear();
  assert_ok(trainer->run(-1, nullptr));
  assert_true((steps_of(samples) == std::vector<int64_t>{10}));
  check_values(samples, reports);
}

static void test_capacity(void **) {
  StepSamples samples;
  samples.set_names({"a", "b"});
  samples.start(5, 2);
  int64_t taken = 0;
  for (int64_t step = 1; step < 5000; ++step) {
    if (!samples.is_due(step)) continue;
    samples.add({.step = step})[1] = static_cast<double>(step);
    assert_int_equal(step, 5 + 2 * taken++);
  }
  assert_int_equal(taken, StepSamples::kCapacity);
  assert_true(samples.values(7)[1] == 19 && samples.values(7)[0] == 0);
  assert_int_equal(samples.steps_until_full(5000), 1);
  samples.start(1, 0);
  assert_false(samples.is_on() || samples.is_due(1));
}

static const CMUnitTest tests[] = {
    cmocka_unit_test(test_samples),
    cmocka_unit_test(test_runs),
    cmocka_unit_test(test_capacity),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::step_history_test
