// SPDX-License-Identifier: Apache-2.0
#include "estimator/hook_list.h"

#include <cmath>

#include "testing.h"

namespace hook_list_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;

namespace {

// A hook that writes down what it saw: "step 4", ...
Hook recorder(const std::string &name, int64_t every_steps, std::vector<std::string> *seen) {
  Hook hook;
  hook.name = name;
  hook.every_steps = every_steps;
  hook.function = [seen, name](const Event &event) -> base::Result<Answer> {
    seen->push_back(base::concat(name, " ", estimator::name(event.kind), " ", event.step));
    return Answer::go_on;
  };
  return hook;
}

Event step_event(int64_t step) {
  Event event;
  event.kind = EventKind::step;
  event.step = step;
  return event;
}

void test_bad_hooks(void **) {
  std::vector<std::string> seen;
  Hook none;
  none.name = "empty";
  assert_error_contains(HookList::make({none}), "hook 'empty' has no function");
  assert_error_contains(HookList::make({recorder("a", -1, &seen)}), "every_steps is -1");
  Hook both = recorder("a", 1, &seen);
  both.every_secs = 1;
  assert_error_contains(HookList::make({both}), "set only one of them");
  Hook negative = recorder("a", 0, &seen);
  negative.every_secs = -1;
  assert_error_contains(HookList::make({negative}), "every_secs is -1");
  Hook values = recorder("a", 0, &seen);
  values.values = {"loss"};
  assert_error_contains(HookList::make({values}), "no cadence");
  values.every_steps = 1;
  values.values = {"los"};
  const HookList list = assert_ok_value(HookList::make({values}));
  assert_error_contains(list.check_values({"loss", "accuracy"}), "did you mean 'loss'");
  assert_ok(list.check_values({"los"}));
}

void test_cadence_in_steps(void **) {
  std::vector<std::string> seen;
  HookList list = assert_ok_value(HookList::make({recorder("a", 3, &seen), recorder("b", 2, &seen)}));
  assert_int_equal(list.steps_until_due(0), 2);
  assert_int_equal(list.steps_until_due(2), 1);
  assert_int_equal(list.steps_until_due(4), 2);
  assert_int_equal(list.steps_until_due(6), 2);
  assert_true(std::isinf(list.secs_until_due(0)));
  for (int64_t step = 1; step <= 6; ++step)
    assert_false(assert_ok_value(list.send_step(step_event(step), 0)));
  // Asking twice for the same step sends once.
  assert_false(assert_ok_value(list.send_step(step_event(6), 0)));
  const std::vector<std::string> expected = {"b step 2", "a step 3", "b step 4", "a step 6", "b step 6"};
  assert_true(seen == expected);
}

void test_cadence_in_seconds(void **) {
  std::vector<std::string> seen;
  Hook hook = recorder("a", 0, &seen);
  hook.every_secs = 10;
  HookList list = assert_ok_value(HookList::make({hook}));
  assert_int_equal(list.steps_until_due(0), 1);
  assert_true(list.secs_until_due(100) == 0);
  assert_ok(list.send_step(step_event(1), 100));
  assert_int_equal(list.steps_until_due(1), INT64_MAX);
  assert_true(list.secs_until_due(104) == 6);
  assert_ok(list.send_step(step_event(2), 109));
  assert_ok(list.send_step(step_event(3), 111));
  assert_true(seen == std::vector<std::string>({"a step 1", "a step 3"}));
}

void test_values_come_in_the_order_asked_for(void **) {
  std::vector<NamedNumber> got;
  Hook hook;
  hook.name = "a";
  hook.every_steps = 1;
  hook.values = {"accuracy", "loss"};
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    got.assign(event.values.begin(), event.values.end());
    return Answer::go_on;
  };
  HookList list = assert_ok_value(HookList::make({hook}));
  const std::vector<NamedNumber> all = {{"loss", 0.5}, {"learning_rate", 0.1}, {"accuracy", 0.75}};
  Event event = step_event(1);
  event.values = all;
  assert_ok(list.send_step(event, 0));
  assert_int_equal(got.size(), 2);
  assert_string_equal(got[0].name.c_str(), "accuracy");
  assert_true(got[0].value == 0.75 && got[1].value == 0.5);
}

void test_answers_and_errors(void **) {
  std::vector<std::string> seen;
  Hook stopper, failer;
  stopper.name = "stopper";
  stopper.every_steps = 1;
  stopper.function = [](const Event &) -> base::Result<Answer> { return Answer::stop; };
  failer.name = "failer";
  failer.every_steps = 2;
  failer.function = [](const Event &) -> base::Result<Answer> { return base::data_loss("no good"); };
  HookList list = assert_ok_value(HookList::make({stopper, failer, recorder("last", 1, &seen)}));
  assert_true(assert_ok_value(list.send_step(step_event(1), 0)));
  const auto failed = list.send_step(step_event(2), 0);
  assert_int_equal(failed.code(), base::Code::data_loss);
  assert_error_contains(failed, "hook 'failer' failed on event 'step' at step 2");
  assert_error_contains(failed, "no good");
  Event end;
  end.kind = EventKind::end;
  assert_error_contains(list.send(end), "no good");
  // Everybody sees the end, whoever failed before.
  assert_true(seen == std::vector<std::string>({"last step 1", "last end 0"}));
}

void test_state_goes_by_name(void **) {
  std::vector<std::string> seen;
  int64_t counter = 5;
  Hook hook = recorder("counting", 1, &seen);
  hook.save = [&] { return base::Json(counter); };
  hook.restore = [&](const base::Json &state) -> base::Status {
    if (!state.is_integer()) return base::invalid_argument("expected a number");
    counter = state.integer();
    return base::Status();
  };
  HookList list = assert_ok_value(HookList::make({recorder("other", 1, &seen), hook}));
  const base::Json state = list.save();
  assert_string_equal(state.dump().c_str(), "{\"counting\":5}");
  counter = 0;
  assert_ok(list.restore(state));
  assert_int_equal(counter, 5);
  assert_ok(list.restore(base::Json()));
  assert_error_contains(list.restore(base::JsonObject{{"counting", "x"}}), "hook 'counting'");
  assert_true(assert_ok_value(HookList::make({recorder("a", 1, &seen)})).save().is_null());
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_bad_hooks),          cmocka_unit_test(test_cadence_in_steps),
      cmocka_unit_test(test_cadence_in_seconds), cmocka_unit_test(test_values_come_in_the_order_asked_for),
      cmocka_unit_test(test_answers_and_errors), cmocka_unit_test(test_state_goes_by_name),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace hook_list_test
