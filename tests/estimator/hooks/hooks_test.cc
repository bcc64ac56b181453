// SPDX-License-Identifier: Apache-2.0
//
// The hooks of lib/estimator/hooks/, each by the events it gets.
#include <cmath>
#include <limits>

#include "checkpoint/checkpoint_testing.h"
#include "estimator/hook_list.h"
#include "estimator/hooks/checkpoint_hook.h"
#include "estimator/hooks/early_stopping_hook.h"
#include "estimator/hooks/logging_hook.h"
#include "estimator/hooks/nan_guard_hook.h"
#include "estimator/hooks/standing_hooks.h"
#include "estimator/hooks/stop_at_step_hook.h"
#include "testing.h"

namespace hooks_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using namespace tutti::impl::estimator::hooks;

namespace {

class CountingControl : public RunControl {
 public:
  int saves = 0;
  base::Status save_checkpoint() override {
    ++saves;
    return base::Status();
  }
  base::Status set_host_scalar(std::string_view, double) override { return base::unimplemented("no"); }
  base::Result<tensor::Tensor> get_variable(std::string_view) override { return base::unimplemented("no"); }
  base::Status set_variable(std::string_view, const tensor::Tensor &) override { return base::unimplemented("no"); }
  base::Result<tensor::Tensor> gradient(std::string_view) override { return base::unimplemented("no"); }
};

base::Result<Answer> send(const Hook &hook, EventKind kind, int64_t step, const std::vector<NamedNumber> &values = {},
                          RunControl *control = nullptr) {
  Event event;
  event.kind = kind;
  event.step = step;
  event.goal_step = 100;
  event.values = values;
  event.control = control;
  return hook.function(event);
}

bool stops(const Hook &hook, EventKind kind, int64_t step, double loss) {
  const std::vector<NamedNumber> values = {{"loss", loss}};
  const auto answer = send(hook, kind, step, values);
  return answer.ok() && *answer == Answer::stop;
}

void test_logging(void **) {
  checkpoint::RememberingLogger log;
  const Hook hook = logging_hook(log.logger(), 10);
  assert_int_equal(hook.every_steps, 10);
  assert_true(hook.values == std::vector<std::string>{"loss"});
  assert_ok(send(hook, EventKind::begin, 0));
  assert_ok(send(hook, EventKind::step, 10, {{"loss", 0.125}}));
  assert_contains(log.text().c_str(), "step 10 of 100: loss 0.125, ");
  assert_contains(log.text().c_str(), "examples/s");
  assert_contains(log.text().c_str(), " s left");
  assert_ok(send(hook, EventKind::evaluated, 10, {{"loss", 0.5}, {"accuracy", 0.75}}));
  assert_contains(log.text().c_str(), "evaluation at step 10: loss 0.5, accuracy 0.75");
  assert_ok(send(hook, static_cast<EventKind>(77), 10));
}

void test_checkpoint(void **) {
  CountingControl control;
  const Hook by_steps = checkpoint_hook(10, 0);
  assert_ok(send(by_steps, EventKind::begin, 0, {}, &control));
  assert_int_equal(control.saves, 0);
  assert_ok(send(by_steps, EventKind::step, 10, {}, &control));
  assert_int_equal(control.saves, 1);
  const Hook by_time = checkpoint_hook(0, 5);
  assert_true(by_time.every_secs == 5 && by_time.every_steps == 0);
  assert_ok(send(by_time, EventKind::begin, 0, {}, &control));
  assert_ok(send(by_time, EventKind::step, 1, {}, &control));
  assert_int_equal(control.saves, 1);
  assert_ok(send(by_time, EventKind::step, 50, {}, &control));
  assert_int_equal(control.saves, 2);
}

/// The steps at which a run whose steps end at these seconds saves, by a list of hooks as a session has it.
std::vector<int64_t> saved_at(const Hook &hook, const std::vector<double> &seconds) {
  CountingControl control;
  HookList list = assert_ok_value(HookList::make({hook}));
  Event event;
  event.control = &control;
  assert_false(assert_ok_value(list.send(event)));
  event.kind = EventKind::step;
  std::vector<int64_t> steps;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const auto before = control.saves;
    event.step = static_cast<int64_t>(i + 1);
    assert_false(assert_ok_value(list.send_step(event, seconds[i])));
    if (control.saves != before) steps.push_back(event.step);
  }
  return steps;
}

void test_checkpoints_by_the_clock(void **) {
  // Every 10 s behind the first step, which follows the checkpoint of the start; then behind the last that was due.
  const std::vector<double> seconds = {100, 104, 109.9, 110, 119.9, 121, 130.9, 131, 170, 179.9, 180};
  assert_true(saved_at(checkpoint_hook(0, 10), seconds) == std::vector<int64_t>({4, 6, 8, 9, 11}));
  assert_true(saved_at(checkpoint_hook(0, 1000), seconds).empty());
  // Steps do not care for the clock.
  assert_true(saved_at(checkpoint_hook(4, 0), seconds) == std::vector<int64_t>({4, 8}));
}

void test_nan_guard(void **) {
  const Hook hook = nan_guard_hook({});
  assert_ok(send(hook, EventKind::step, 3, {{"loss", 1.0}}));
  assert_error_contains(send(hook, EventKind::step, 4, {{"loss", NAN}}), "'loss' is nan at step 4");
  assert_error_contains(send(hook, EventKind::step, 5, {{"loss", -INFINITY}}), "at step 5");
  NanGuardOptions options;
  options.stop_instead_of_error = true;
  assert_true(stops(nan_guard_hook(options), EventKind::step, 6, INFINITY));
}

void test_stop_at_step(void **) {
  assert_error_contains(stop_at_step_hook(0), "last_step is 0");
  const Hook hook = assert_ok_value(stop_at_step_hook(7));
  assert_false(stops(hook, EventKind::begin, 0, 0));
  assert_true(stops(hook, EventKind::step, 7, 0));
  assert_true(stops(hook, EventKind::begin, 9, 0));
}

void test_early_stopping_counts_steps_since_the_best(void **) {
  EarlyStoppingOptions options;
  options.patience_steps = 20;
  const Hook hook = assert_ok_value(early_stopping_hook(options));
  assert_false(stops(hook, EventKind::evaluated, 10, 1.0));
  assert_false(stops(hook, EventKind::evaluated, 20, 0.5));
  assert_false(stops(hook, EventKind::evaluated, 30, 0.5));  // equal is not better
  assert_false(stops(hook, EventKind::step, 50, 9.0));
  assert_true(stops(hook, EventKind::evaluated, 40, 0.6));
}

void test_early_stopping_minimum_direction_and_nan(void **) {
  EarlyStoppingOptions options;
  options.patience_steps = 1;
  options.min_steps = 100;
  options.higher_is_better = true;
  const Hook hook = assert_ok_value(early_stopping_hook(options));
  assert_false(stops(hook, EventKind::evaluated, 10, NAN));
  assert_false(stops(hook, EventKind::evaluated, 20, -5.0));
  assert_false(stops(hook, EventKind::evaluated, 99, -6.0));
  assert_true(stops(hook, EventKind::evaluated, 100, -6.0));
  assert_false(stops(hook, EventKind::evaluated, 101, -4.0));
}

void test_early_stopping_state_and_errors(void **) {
  EarlyStoppingOptions options;
  assert_error_contains(early_stopping_hook(options), "patience_steps is 0");
  options.patience_steps = 20;
  const Hook first = assert_ok_value(early_stopping_hook(options));
  assert_false(stops(first, EventKind::evaluated, 10, 0.5));
  const Hook second = assert_ok_value(early_stopping_hook(options));
  assert_ok(second.restore(first.save()));
  assert_false(stops(second, EventKind::evaluated, 20, 0.6));
  assert_true(stops(second, EventKind::evaluated, 30, 0.6));
  assert_ok(second.restore(assert_ok_value(early_stopping_hook(options)).save()));
  assert_error_contains(second.restore(base::Json(1)), "early_stopping");
  options.value = "acuracy";
  const Hook misspelt = assert_ok_value(early_stopping_hook(options));
  assert_error_contains(send(misspelt, EventKind::evaluated, 1, {{"loss", 1}, {"accuracy", 1}}),
                        "did you mean 'accuracy'");
}

void test_early_stopping_on_training_values(void **) {
  EarlyStoppingOptions options;
  options.patience_steps = 2;
  options.every_steps = 1;
  const Hook hook = assert_ok_value(early_stopping_hook(options));
  assert_int_equal(hook.every_steps, 1);
  assert_false(stops(hook, EventKind::step, 1, 1.0));
  assert_false(stops(hook, EventKind::evaluated, 50, 9.0));
  assert_true(stops(hook, EventKind::step, 3, 1.0));
}

void test_standing_hooks_follow_the_configuration(void **) {
  checkpoint::RememberingLogger log;
  RunConfig config;
  assert_int_equal(standing_hooks(config, log.logger()).size(), 1);
  assert_int_equal(standing_hooks(config, nullptr).size(), 0);
  config.log_step_count_steps = 0;
  config.model_dir = "run";
  config.save_checkpoints_steps = 7;
  const auto hooks = standing_hooks(config, log.logger());
  assert_int_equal(hooks.size(), 1);
  assert_int_equal(hooks[0].every_steps, 7);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_logging),
      cmocka_unit_test(test_checkpoint),
      cmocka_unit_test(test_checkpoints_by_the_clock),
      cmocka_unit_test(test_nan_guard),
      cmocka_unit_test(test_stop_at_step),
      cmocka_unit_test(test_early_stopping_counts_steps_since_the_best),
      cmocka_unit_test(test_early_stopping_minimum_direction_and_nan),
      cmocka_unit_test(test_early_stopping_state_and_errors),
      cmocka_unit_test(test_early_stopping_on_training_values),
      cmocka_unit_test(test_standing_hooks_follow_the_configuration),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace hooks_test
