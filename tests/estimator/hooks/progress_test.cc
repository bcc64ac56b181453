// SPDX-License-Identifier: Apache-2.0
//
// What progress looks like: lines of all widths, and what a terminal and a file get.
#include <string>
#include <vector>

#include "estimator/hooks/progress_hook.h"
#include "estimator/hooks/progress_line.h"
#include "testing.h"

namespace progress_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using namespace tutti::impl::estimator::hooks;

namespace {

const std::vector<NamedNumber> kValues = {{"loss", 0.314159}, {"accuracy", 0.9125}};

ProgressFacts some_facts() {
  return {.step = 1200,
          .goal_step = 5000,
          .epoch = 2,
          .examples_per_second = 12345.6,
          .seconds_left = 80.4,
          .values = kValues};
}

void test_sentences(void **) {
  ProgressFacts facts = some_facts();
  assert_string_equal(progress_sentence(facts).c_str(),
                      "step 1200 of 5000 (24%): loss 0.3142, accuracy 0.9125, 12346 examples/s, 1:20 left");
  facts.goal_step = -1;
  facts.seconds_left = -1;
  assert_string_equal(progress_sentence(facts).c_str(),
                      "step 1200, pass 3: loss 0.3142, accuracy 0.9125, 12346 examples/s");
  facts.seconds_taken = 3671;
  facts.examples_per_second = 0.25;
  assert_string_equal(progress_sentence(facts).c_str(),
                      "step 1200, pass 3: loss 0.3142, accuracy 0.9125, 0.25 examples/s, in 1:01:11");
}

void test_bars(void **) {
  ProgressFacts facts = some_facts();
  assert_string_equal(progress_bar(facts, 120).c_str(),
                      "step 1200/5000 [=======>                      ]  24%  loss 0.3142  accuracy 0.9125  "
                      "12346 examples/s  1:20 left");
  // The bar becomes shorter first, then words go.
  assert_string_equal(progress_bar(facts, 95).c_str(),
                      "step 1200/5000 [===>         ]  24%  loss 0.3142  accuracy 0.9125  12346 examples/s  1:20 left");
  assert_string_equal(progress_bar(facts, 80).c_str(),
                      "step 1200/5000  24%  loss 0.3142  accuracy 0.9125  12346 examples/s  1:20 left");
  assert_string_equal(progress_bar(facts, 60).c_str(), "step 1200/5000 [===>         ]  24%  loss 0.3142  1:20 left");
  facts.step = 5000;
  assert_string_equal(progress_bar(facts, 50).c_str(), "step 5000/5000 100%  loss 0.3142  1:20 left");
  facts.goal_step = -1;
  assert_string_equal(progress_bar(facts, 32).c_str(), "step 5000  pass 3  loss 0.3142");
}

void test_no_line_is_wider_than_its_terminal(void **) {
  const std::string name(300, 'm');
  const std::vector<NamedNumber> values = {{"loss", 1e-300}, {name, -1.23456e300}, {"accuracy", 0.5}};
  ProgressFacts facts{
      .step = INT64_MAX, .goal_step = INT64_MAX, .examples_per_second = 1e300, .seconds_left = 1e300, .values = values};
  for (int columns = -1; columns < 500; ++columns) {
    const size_t room = columns > 21 ? static_cast<size_t>(columns) - 1 : 20;
    assert_true(progress_bar(facts, columns).size() <= room);
  }
  facts = ProgressFacts();
  facts.goal_step = 0;
  assert_contains(progress_bar(facts, 80).c_str(), "step 0/0 [==============================] 100%");
}

void test_durations(void **) {
  assert_string_equal(duration_text(0.4).c_str(), "0:00");
  assert_string_equal(duration_text(59.6).c_str(), "1:00");
  assert_string_equal(duration_text(3599).c_str(), "59:59");
  assert_string_equal(duration_text(360000).c_str(), "100:00:00");
  assert_string_equal(duration_text(-3).c_str(), "0:00");
}

// What a run of ten steps with one evaluation writes.
std::string written(bool is_terminal) {
  std::string all;
  const Hook hook = progress_hook(
      {.write = [&](std::string_view text) { all += text; }, .is_terminal = is_terminal, .columns = [] { return 60; }});
  assert_true(hook.every_secs == (is_terminal ? 0.25 : 10) && hook.every_steps == 0);
  const auto send = [&](EventKind kind, int64_t step) {
    Event event;
    event.kind = kind;
    event.step = step;
    event.examples = step * 8;
    event.goal_step = 10;
    event.values = kValues;
    const auto answer = hook.function(event);
    assert_true(answer.ok() && *answer == Answer::go_on);
  };
  send(EventKind::begin, 0);
  send(EventKind::step, 5);
  send(EventKind::checkpoint_saved, 5);
  send(EventKind::evaluated, 5);
  send(EventKind::step, 10);
  send(EventKind::epoch_end, 10);
  send(EventKind::end, 10);
  send(static_cast<EventKind>(77), 10);
  return all;
}

void test_a_terminal(void **) {
  const std::string all = written(true);
  const std::string begin =
      "\r\033[Kstep 5/10 [======>     ]  50%  loss 0.3142  accuracy 0.9125\r\033[K"
      "evaluation at step 5: loss 0.3142, accuracy 0.9125\n\r\033[Kstep 10/10 ";
  assert_string_equal(all.substr(0, begin.size()).c_str(), begin.c_str());
  assert_true(all.ends_with("\n") && all.find("\n\n") == std::string::npos);
}

void test_a_file(void **) {
  const std::string all = written(false);
  assert_true(
      all.starts_with("step 5 of 10 (50%): loss 0.3142, accuracy 0.9125\n"
                      "evaluation at step 5: loss 0.3142, accuracy 0.9125\n"
                      "step 10 of 10 (100%): loss 0.3142, accuracy 0.9125, "));
  assert_true(all.ends_with(" examples/s, in 0:00\n"));
  assert_true(all.find('\r') == std::string::npos && all.find('\033') == std::string::npos);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_sentences),
      cmocka_unit_test(test_bars),
      cmocka_unit_test(test_no_line_is_wider_than_its_terminal),
      cmocka_unit_test(test_durations),
      cmocka_unit_test(test_a_terminal),
      cmocka_unit_test(test_a_file),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace progress_test
