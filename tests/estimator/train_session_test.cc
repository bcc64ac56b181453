// SPDX-License-Identifier: Apache-2.0
#include "estimator/train_session.h"

#include <cmath>

#include "checkpoint/checkpoint_testing.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "estimator/estimator.h"
#include "estimator/fake_distribute.h"
#include "estimator/variables.h"
#include "testing.h"

namespace train_session_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;

namespace {

base::Ref<Estimator> make_estimator(const RunConfig &config = {}, std::vector<Hook> standing_hooks = {},
                                    int32_t workers = 1) {
  reset_fake_orders();
  return *Estimator::create(fake_model_function(), config, fake_strategy(workers), {}, std::move(standing_hooks));
}

TrainRequest request_for(data::DatasetRef dataset) {
  TrainRequest request;
  request.dataset = std::move(dataset);
  return request;
}

Hook recorder(int64_t every_steps, std::vector<std::string> *seen) {
  Hook hook;
  hook.name = "recorder";
  hook.every_steps = every_steps;
  if (every_steps > 0) hook.values = {"loss"};
  hook.function = [seen](const Event &event) -> base::Result<Answer> {
    seen->push_back(base::concat(estimator::name(event.kind), " ", event.step));
    return Answer::go_on;
  };
  return hook;
}

void test_steps_add_up(void **) {
  const auto estimator = make_estimator();
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.steps = 7;
  const TrainResult first = assert_ok_value(estimator->train(request));
  assert_int_equal(first.reason, EndReason::max_steps);
  assert_int_equal(first.step, 7);
  assert_int_equal(first.examples, 7);
  assert_true(std::isfinite(first.loss) && first.metrics.size() == 2);
  const TrainResult second = assert_ok_value(estimator->train(request));
  assert_int_equal(second.step, 14);
  assert_int_equal(second.steps, 7);
  assert_int_equal(estimator->global_step(), 14);
  // One trainer, one first value: the second call went on.
  assert_int_equal(fake_orders().trainers_opened, 1);
  assert_int_equal(fake_orders().initialized, 1);
}

void test_bad_scaling_is_logged_once(void **) {
  checkpoint::RememberingLogger log;
  reset_fake_orders();
  // Steps of 100 ms, of which the replicas compute 30 and 10 and wait for no input.
  constexpr int64_t kMs = 1'000'000;
  fake_orders().step_times = {{1, 100 * kMs, 0, 70 * kMs}, {1, 100 * kMs, 0, 90 * kMs}};
  Environment environment;
  environment.logger = log.logger();
  const auto estimator = *Estimator::create(fake_model_function(), {}, fake_strategy(), environment, {});
  TrainRequest request = request_for(fake_dataset(400, 1));
  const TrainResult result = assert_ok_value(estimator->train(request));
  const std::string text = log.text();
  const size_t first = text.find("WARNING: 2 replicas train at 20 % of 2 times the speed of one; 70 % of their time");
  assert_true(first != std::string::npos);
  assert_true(text.find("WARNING", first + 1) == std::string::npos);
  assert_contains(text.c_str(),
                  "2 replicas: compute 20 %, input 0 %, communication 70 %, imbalance 10 %; "
                  "idle: fake:0 70 %, fake:1 90 %");
  assert_int_equal(result.step_shares.steps, 400);
  assert_true(std::abs(result.step_shares.compute - 0.2) < 1e-9);
}

void test_max_steps_is_absolute(void **) {
  const auto estimator = make_estimator();
  std::vector<std::string> seen;
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.max_steps = 10;
  assert_int_equal(assert_ok_value(estimator->train(request)).steps, 10);
  request.hooks = {recorder(1, &seen)};
  const TrainResult again = assert_ok_value(estimator->train(request));
  assert_int_equal(again.steps, 0);
  assert_int_equal(again.step, 10);
  assert_int_equal(again.reason, EndReason::max_steps);
  assert_true(seen.empty());
}

void test_epochs_are_whole_passes(void **) {
  const auto estimator = make_estimator();
  std::vector<std::string> seen;
  TrainRequest request = request_for(fake_dataset(10, 4));
  request.hooks = {recorder(0, &seen)};
  request.epochs = 2;
  const TrainResult result = assert_ok_value(estimator->train(request));
  assert_int_equal(result.reason, EndReason::epochs);
  assert_int_equal(result.step, 6);
  assert_int_equal(result.examples, 20);
  assert_true(seen == std::vector<std::string>({"begin 0", "epoch_end 3", "epoch_end 6", "end 6"}));
  assert_int_equal(assert_ok_value(estimator->train(request)).step, 12);
  // A pass left in the middle is not counted as one.
  TrainRequest some = request_for(fake_dataset(10, 4));
  some.steps = 1;
  assert_int_equal(assert_ok_value(estimator->train(some)).step, 13);
  request.epochs = 1;
  assert_int_equal(assert_ok_value(estimator->train(request)).step, 16);
}

void test_an_empty_dataset_is_an_error(void **) {
  const auto estimator = make_estimator();
  const auto empty = assert_ok_value(data::Pipeline(fake_dataset(8, 2)).apply("skip", {{"count", int64_t{4}}}).build());
  for (const int64_t epochs : {0, 2}) {
    TrainRequest request = request_for(empty);
    if (epochs > 0) request.epochs = epochs;
    assert_error_contains(estimator->train(request), "the dataset gave no elements in pass 1: there are no rows");
  }
  assert_int_equal(assert_ok_value(estimator->train(request_for(fake_dataset(8, 2)))).step, 4);
}

void test_a_training_without_an_end_says_so(void **) {
  for (const bool is_endless : {true, false}) {
    checkpoint::RememberingLogger log;
    reset_fake_orders();
    Environment environment;
    environment.logger = log.logger();
    const auto estimator = *Estimator::create(fake_model_function(), {}, fake_strategy(), environment, {});
    fake_orders().token = base::CancelToken::create();
    fake_orders().stop_token_at = 5;
    TrainRequest request = request_for(assert_ok_value(data::Pipeline(fake_dataset(8, 2)).repeat().build()));
    if (!is_endless) request.steps = 3;
    request.cancel = fake_orders().token;
    assert_int_equal(assert_ok_value(estimator->train(request)).step, is_endless ? 5 : 3);
    assert_int_equal(log.text().find("the dataset has no end") != std::string::npos, is_endless);
  }
}

// Whoever shows progress is told where a run will end, and others how far it is.
void test_the_end_is_foreseen(void **) {
  const auto estimator = make_estimator();
  std::vector<int64_t> goals, steps;
  Hook hook;
  hook.name = "watcher";
  hook.every_steps = 1;
  hook.values = {"loss"};
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::step) {
      goals.push_back(event.goal_step);
      steps.push_back(estimator->global_step());
    }
    return Answer::go_on;
  };
  TrainRequest request = request_for(fake_dataset(10, 4));
  request.hooks = {hook};
  assert_ok(estimator->train(request));  // as long as the dataset
  request.epochs = 2;
  assert_ok(estimator->train(request));
  request.epochs.reset();
  request.steps = 2;
  assert_ok(estimator->train(request));
  assert_true(goals == std::vector<int64_t>({3, 3, 3, 9, 9, 9, 9, 9, 9, 11, 11}));
  assert_true(steps == std::vector<int64_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  request.steps.reset();
  goals.clear();
  assert_ok(estimator->train(request));  // the rest of a pass
  assert_true(goals == std::vector<int64_t>({12}));
}

void test_the_input_ends(void **) {
  const auto estimator = make_estimator();
  TrainRequest request = request_for(fake_dataset(10, 4));
  const TrainResult all = assert_ok_value(estimator->train(request));
  assert_int_equal(all.reason, EndReason::end_of_input);
  assert_int_equal(all.step, 3);
  request.steps = 100;
  const TrainResult short_of = assert_ok_value(estimator->train(request));
  assert_int_equal(short_of.reason, EndReason::end_of_input);
  assert_int_equal(short_of.steps, 3);
  // Ten rows again: a call after the end begins a new pass.
  assert_int_equal(short_of.examples, 10);
}

void test_a_call_after_exactly_one_pass(void **) {
  const auto estimator = make_estimator();
  TrainRequest request = request_for(fake_dataset(10, 1));
  request.steps = 10;
  assert_int_equal(assert_ok_value(estimator->train(request)).reason, EndReason::max_steps);
  request.steps = 3;
  assert_int_equal(assert_ok_value(estimator->train(request)).steps, 3);
}

void test_the_input_goes_on_where_it_was(void **) {
  const auto split = make_estimator();
  TrainRequest request = request_for(fake_dataset(100, 1, true));
  for (const int64_t steps : {3, 1, 16}) {
    request.steps = steps;
    assert_ok(split->train(request));
  }
  const double loss = assert_ok_value(split->train(request)).loss;
  const auto whole = make_estimator();
  request.steps = 36;
  assert_true(assert_ok_value(whole->train(request)).loss == loss);
}

void push_rows(data::Feed &feed, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    data::Element element;
    element.components = {assert_ok_value(tensor::Tensor::from_values<float>({1}, {static_cast<float>(row)}))};
    assert_ok(feed.push(std::move(element), nullptr, base::Deadline::after_ms(10000)));
  }
  assert_ok(feed.end());
}

/// A pass under way is left for a feed's elements, whatever was pushed before; a feed can be opened once.
void test_a_feed_after_another_dataset(void **) {
  const auto estimator = make_estimator();
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.steps = 3;
  assert_ok(estimator->train(request));
  for (int64_t feeds = 0; feeds < 3; ++feeds) {
    const auto feed = assert_ok_value(data::Feed::create(fake_dataset(1, 1)->inputs()[0]->spec(), 16));
    push_rows(*feed, 8);
    request.dataset = assert_ok_value(data::Pipeline(feed->dataset()).batch(2).build());
    request.steps = 3;  // the second one finds the first's pass, in which it could go on
    const TrainResult result = assert_ok_value(estimator->train(request));
    assert_int_equal(result.steps, 3);
    assert_int_equal(result.step, 6 + 3 * feeds);
    assert_int_equal(result.examples, 6);
  }
}

/// A run that goes on from a checkpoint takes the elements from there on, and says so where others were pushed.
void test_a_feed_after_a_checkpoint(void **) {
  checkpoint::TemporaryDirectory directory;
  RunConfig config;
  config.model_dir = directory.path();
  for (const char *const expected : {"", "the input cannot continue at the position of the checkpoint"}) {
    const auto feed = assert_ok_value(data::Feed::create(fake_dataset(1, 1)->inputs()[0]->spec(), 16));
    push_rows(*feed, 8);
    TrainRequest request = request_for(assert_ok_value(data::Pipeline(feed->dataset()).batch(2).build()));
    request.steps = 3;
    const base::Status status = make_estimator(config)->train(request).status();
    if (*expected == 0) {
      assert_ok(status);
    } else {
      assert_error_contains(status, expected);
      assert_error_contains(status,
                            "at element 6, but 8 elements were pushed before; start pushing at the resume position");
    }
  }
}

void test_stop_ends_with_ok(void **) {
  const auto estimator = make_estimator();
  fake_orders().token = base::CancelToken::create();
  fake_orders().stop_token_at = 5;
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.cancel = fake_orders().token;
  const TrainResult result = assert_ok_value(estimator->train(request));
  assert_int_equal(result.reason, EndReason::stopped);
  assert_int_equal(result.step, 5);
}

void test_an_interrupted_epochs_call_is_taken_up(void **) {
  const auto estimator = make_estimator();
  fake_orders().token = base::CancelToken::create();
  fake_orders().stop_token_at = 5;
  TrainRequest request = request_for(fake_dataset(10, 4));
  request.epochs = 3;
  request.cancel = fake_orders().token;
  assert_int_equal(assert_ok_value(estimator->train(request)).step, 5);
  request.cancel.reset();
  const TrainResult rest = assert_ok_value(estimator->train(request));
  assert_int_equal(rest.step, 9);
  assert_int_equal(rest.reason, EndReason::epochs);
}

void test_cancel_keeps_what_was_done(void **) {
  const auto estimator = make_estimator();
  fake_orders().token = base::CancelToken::create();
  fake_orders().cancel_token_at = 5;
  std::vector<std::string> seen;
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.cancel = fake_orders().token;
  request.hooks = {recorder(0, &seen)};
  assert_int_equal(estimator->train(request).code(), base::Code::cancelled);
  assert_true(seen == std::vector<std::string>({"begin 0", "error 5"}));
  assert_int_equal(estimator->global_step(), 5);
  request.cancel.reset();
  request.steps = 2;
  assert_int_equal(assert_ok_value(estimator->train(request)).step, 7);
  assert_int_equal(fake_orders().initialized, 1);
}

void test_a_failing_step(void **) {
  const auto estimator = make_estimator();
  fake_orders().fail_at_step = 4;
  std::vector<std::string> seen;
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.hooks = {recorder(1, &seen)};
  assert_error_contains(estimator->train(request), "replica 0 failed at step 4");
  assert_true(seen == std::vector<std::string>({"begin 0", "step 1", "step 2", "step 3", "error 3"}));
  fake_orders().fail_at_step = -1;
  request.max_steps = 6;
  assert_int_equal(assert_ok_value(estimator->train(request)).steps, 3);
}

void test_hooks_see_the_steps_they_asked_for(void **) {
  const auto estimator = make_estimator();
  std::vector<std::string> thirds, none;
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.hooks = {recorder(3, &thirds), recorder(0, &none)};
  request.steps = 8;
  assert_ok(estimator->train(request));
  assert_true(thirds == std::vector<std::string>({"begin 0", "step 3", "step 6", "end 8"}));
  assert_true(none == std::vector<std::string>({"begin 0", "end 8"}));
}

void test_hooks_can_stop_and_fail(void **) {
  const auto estimator = make_estimator();
  Hook hook;
  hook.name = "mine";
  hook.every_steps = 2;
  hook.function = [](const Event &event) -> base::Result<Answer> {
    return event.kind == EventKind::step && event.step >= 4 ? Answer::stop : Answer::go_on;
  };
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.hooks = {hook};
  const TrainResult stopped = assert_ok_value(estimator->train(request));
  assert_int_equal(stopped.reason, EndReason::stopped);
  assert_int_equal(stopped.step, 4);
  request.hooks[0].function = [](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::step) return base::unavailable("the sky is falling");
    return Answer::go_on;
  };
  const auto failed = estimator->train(request);
  assert_int_equal(failed.code(), base::Code::unavailable);
  assert_error_contains(failed, "hook 'mine' failed on event 'step' at step 6");
  assert_error_contains(failed, "the sky is falling");
  request.hooks[0].values = {"accuracy"};
  assert_error_contains(estimator->train(request), "requests the value 'accuracy'");
}

void test_one_training_at_a_time(void **) {
  const auto estimator = make_estimator();
  base::Status inner;
  Hook hook;
  hook.name = "nested";
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::begin) inner = estimator->train(request_for(fake_dataset(4, 1))).status();
    return Answer::go_on;
  };
  TrainRequest request = request_for(fake_dataset(10, 1));
  request.hooks = {hook};
  assert_ok(estimator->train(request));
  assert_int_equal(inner.code(), base::Code::failed_precondition);
  assert_error_contains(inner, "one training at a time");
}

void test_requests_that_contradict(void **) {
  const auto estimator = make_estimator();
  TrainRequest request;
  assert_error_contains(estimator->train(request), "no dataset");
  request = request_for(fake_dataset(10, 1));
  request.steps = 1;
  request.max_steps = 2;
  assert_error_contains(estimator->train(request), "steps is 1 and max_steps is 2");
  request.steps.reset();
  request.epochs = 3;
  assert_error_contains(estimator->train(request), "epochs is 3 and max_steps is 2");
  request.epochs.reset();
  for (const int64_t bad : {0, -1}) {
    request.max_steps = bad;
    assert_error_contains(estimator->train(request), "expected at least 1");
  }
  assert_error_contains(Estimator::create(nullptr, {}, fake_strategy(), {}, {}), "model function");
  assert_error_contains(Estimator::create(fake_model_function(), {}, nullptr, {}, {}), "strategy");
  RunConfig config;
  config.accumulation = 0;
  assert_error_contains(Estimator::create(fake_model_function(), config, fake_strategy(), {}, {}), "accumulation");
}

void test_session_form(void **) {
  const auto estimator = make_estimator();
  TrainRequest request = request_for(fake_dataset(10, 4));
  request.epochs = 2;
  auto session = assert_ok_value(estimator->open_session(request));
  RunLimit two;
  two.steps = 2;
  SessionReport report = assert_ok_value(session->run(two));
  assert_int_equal(report.step, 2);
  assert_false(report.reason.has_value());
  assert_int_equal(estimator->train(request).code(), base::Code::failed_precondition);
  RunLimit pass;
  pass.until_epoch_end = true;
  report = assert_ok_value(session->run(pass));
  assert_int_equal(report.step, 3);
  report = assert_ok_value(session->run({}));
  assert_true(report.reason == EndReason::epochs);
  assert_int_equal(assert_ok_value(session->run({})).steps, 0);
  const TrainResult result = assert_ok_value(session->close());
  assert_int_equal(result.step, 6);
  assert_error_contains(session->close(), "closed");
  assert_error_contains(session->run({}), "closed");
  // Closed or dropped, the next one may open.
  session = assert_ok_value(estimator->open_session(request));
  assert_ok(session->run(two));
  session.reset();
  session = assert_ok_value(estimator->open_session(request));
  assert_int_equal(session->step(), 8);
}

// ---- the newest weights ----

int64_t evaluated_step(Estimator &estimator) {
  EvaluateRequest request;
  request.dataset = fake_dataset(4, 2);
  return assert_ok_value(estimator.evaluate(request)).global_step;
}

float newest_w(Estimator &estimator) {
  const auto version = assert_ok_value(estimator.weights(""));
  return assert_ok_value(version->read(0)).data_as<float>()[0];
}

void test_the_newest_weights_are_those_of_the_last_step(void **) {
  const auto estimator = make_estimator();
  auto session = assert_ok_value(estimator->open_session(request_for(fake_dataset(100, 1))));
  RunLimit two;
  two.steps = 2;
  for (int64_t step = 0; step <= 6; step += 2) {
    if (step > 0) assert_ok(session->run(two));
    const int64_t before = fake_orders().published;
    assert_int_equal(evaluated_step(*estimator), step);
    const float w = assert_ok_value(read_variable(estimator->state(), "w")).data_as<float>()[0];
    assert_true(newest_w(*estimator) == w);
    assert_int_equal(evaluated_step(*estimator), step);
    // Once for each piece of the training, whoever asks and however often; the first at the beginning.
    assert_int_equal(fake_orders().published - before, step == 0 ? 0 : 1);
  }
  // Neither the end of the session nor reading takes another.
  assert_ok(session->close());
  session.reset();
  const int64_t before = fake_orders().published;
  assert_int_equal(evaluated_step(*estimator), 6);
  (void)assert_ok_value(read_variable(estimator->state(), "w"));
  assert_int_equal(evaluated_step(*estimator), 6);
  assert_int_equal(fake_orders().published, before);
}

void test_weights_that_are_written_count_at_once(void **) {
  const auto estimator = make_estimator();
  auto session = assert_ok_value(estimator->open_session(request_for(fake_dataset(100, 1))));
  RunLimit one;
  one.steps = 1;
  assert_ok(session->run(one));
  const float values[] = {41, 42};
  const tensor::Tensor first = *tensor::Tensor::from_values<float>({1}, std::span<const float>(values, 1)),
                       second = *tensor::Tensor::from_values<float>({1}, std::span<const float>(values + 1, 1));
  assert_ok(write_variable(estimator->state(), "w", first));
  assert_true(newest_w(*estimator) == 41);
  assert_ok(write_variable(estimator->state(), "w", second));
  assert_true(newest_w(*estimator) == 42);
  session.reset();
  assert_ok(write_variable(estimator->state(), "w", first));
  assert_true(newest_w(*estimator) == 41);
}

// ---- sessions that cannot be opened ----

Hook refusing(EventKind refused) {
  Hook hook;
  hook.name = "refusing";
  hook.function = [refused](const Event &event) -> base::Result<Answer> {
    if (event.kind == refused) return base::invalid_argument("no");
    return Answer::go_on;
  };
  return hook;
}

void check_sessions_that_cannot_open(int32_t workers) {
  const auto estimator = make_estimator({}, {}, workers);
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.steps = 1;
  assert_int_equal(assert_ok_value(estimator->train(request)).step, 1);
  std::vector<TrainRequest> bad(4, request);
  // From what is found before the trainer is asked for to what is found last.
  bad[0].hooks = {Hook()};
  bad[1].steps = INT64_MAX;
  bad[2].hooks = {recorder(1, nullptr)};
  bad[2].hooks.front().values = {"nothing"};
  bad[3].hooks = {refusing(EventKind::begin)};
  for (size_t i = 0; i < bad.size(); ++i) {
    assert_false(estimator->open_session(bad[i]).ok());
    // What is written counts, and training goes on from there with the rows that come next.
    const float value = 40 + static_cast<float>(i);
    assert_ok(write_variable(estimator->state(), "w",
                             *tensor::Tensor::from_values<float>({1}, std::span<const float>(&value, 1))));
    assert_true(newest_w(*estimator) == value);
    const TrainResult result = assert_ok_value(estimator->train(request));
    const int64_t step = static_cast<int64_t>(i) + 2;
    assert_int_equal(result.step, step);
    const float x = static_cast<float>(step - 1), number = static_cast<float>(step);
    assert_true(std::abs(newest_w(*estimator) - (0.9F * value + 0.1F * x + number / 1000)) < 1e-4F);
  }
  // Other workers see the trainer go where there were steps to be made together.
  assert_int_equal(fake_orders().trainers_opened, workers == 1 ? 1 : 4);
  assert_int_equal(fake_orders().initialized, 1);
  assert_int_equal(fake_orders().left_for.size(), 3);  // each time but the first, which came to no trainer
  assert_contains(fake_orders().left_for.back().c_str(), "failed on event 'begin'");
}

void test_a_session_that_cannot_open_changes_nothing(void **) { check_sessions_that_cannot_open(1); }

void test_nor_does_one_of_several_workers(void **) { check_sessions_that_cannot_open(2); }

void test_a_dropped_session_leaves_its_last_step(void **) {
  const auto estimator = make_estimator();
  TrainRequest request = request_for(fake_dataset(100, 1));
  auto session = assert_ok_value(estimator->open_session(request));
  RunLimit three;
  three.steps = 3;
  assert_ok(session->run(three));
  session.reset();
  assert_int_equal(estimator->global_step(), 3);
  assert_int_equal(evaluated_step(*estimator), 3);
  session = assert_ok_value(estimator->open_session(request));
  assert_int_equal(session->step(), 3);
}

void test_hooks_evaluate_the_step_they_see(void **) {
  base::Ref<Estimator> estimator;
  std::vector<int64_t> seen;
  Hook hook;
  hook.name = "evaluates";
  hook.every_steps = 2;
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::step) seen.push_back(evaluated_step(*estimator));
    return Answer::go_on;
  };
  estimator = make_estimator({}, {hook});
  TrainRequest request = request_for(fake_dataset(100, 1));
  request.steps = 6;
  assert_ok(estimator->train(request));
  assert_true(seen == std::vector<int64_t>({2, 4, 6}));
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_steps_add_up),
      cmocka_unit_test(test_bad_scaling_is_logged_once),
      cmocka_unit_test(test_max_steps_is_absolute),
      cmocka_unit_test(test_epochs_are_whole_passes),
      cmocka_unit_test(test_an_empty_dataset_is_an_error),
      cmocka_unit_test(test_a_training_without_an_end_says_so),
      cmocka_unit_test(test_the_end_is_foreseen),
      cmocka_unit_test(test_the_input_ends),
      cmocka_unit_test(test_a_call_after_exactly_one_pass),
      cmocka_unit_test(test_the_input_goes_on_where_it_was),
      cmocka_unit_test(test_a_feed_after_another_dataset),
      cmocka_unit_test(test_a_feed_after_a_checkpoint),
      cmocka_unit_test(test_stop_ends_with_ok),
      cmocka_unit_test(test_an_interrupted_epochs_call_is_taken_up),
      cmocka_unit_test(test_cancel_keeps_what_was_done),
      cmocka_unit_test(test_a_failing_step),
      cmocka_unit_test(test_hooks_see_the_steps_they_asked_for),
      cmocka_unit_test(test_hooks_can_stop_and_fail),
      cmocka_unit_test(test_one_training_at_a_time),
      cmocka_unit_test(test_requests_that_contradict),
      cmocka_unit_test(test_session_form),
      cmocka_unit_test(test_the_newest_weights_are_those_of_the_last_step),
      cmocka_unit_test(test_weights_that_are_written_count_at_once),
      cmocka_unit_test(test_a_session_that_cannot_open_changes_nothing),
      cmocka_unit_test(test_nor_does_one_of_several_workers),
      cmocka_unit_test(test_a_dropped_session_leaves_its_last_step),
      cmocka_unit_test(test_hooks_evaluate_the_step_they_see),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace train_session_test
