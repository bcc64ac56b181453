// SPDX-License-Identifier: Apache-2.0
//
// Runs that end, fail, or are found damaged, and go on from their checkpoints.
#include <errno.h>

#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/reader.h"
#include "data/pipeline/pipeline.h"
#include "estimator/estimator.h"
#include "estimator/fake_distribute.h"
#include "estimator/hooks/standing_hooks.h"
#include "testing.h"

namespace resume_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using checkpoint::RememberingLogger;
using checkpoint::TemporaryDirectory;

namespace {

RunConfig config_in(const std::string &model_dir, int64_t every_steps = 4) {
  RunConfig config;
  config.model_dir = model_dir;
  config.save_checkpoints_steps = every_steps;
  config.log_step_count_steps = 0;
  config.seed = 3;
  return config;
}

base::Ref<Estimator> make_estimator(const RunConfig &config, const base::Ref<base::Logger> &logger = nullptr) {
  Environment environment;
  environment.logger = logger;
  return *Estimator::create(fake_model_function(), config, fake_strategy(), environment,
                            hooks::standing_hooks(config, logger));
}

TrainRequest epochs_of(int64_t epochs) {
  TrainRequest request;
  request.dataset = fake_dataset(10, 1, true);
  request.epochs = epochs;
  return request;
}

std::vector<int64_t> steps_in(const std::string &directory) {
  std::vector<int64_t> steps;
  const auto names = checkpoint::list_checkpoints(directory);
  if (!names.ok()) return steps;
  for (const auto &name : *names) {
    steps.push_back(name.step);
  }
  return steps;
}

void assert_same_checkpoint(const std::string &a, const std::string &b) {
  const auto names = assert_ok_value(base::list_directory(a));
  assert_true(names == assert_ok_value(base::list_directory(b)));
  for (const std::string &name : names) {
    const std::string left = assert_ok_value(base::read_file(a + "/" + name));
    const std::string right = assert_ok_value(base::read_file(b + "/" + name));
    size_t at = 0;
    while (at < left.size() && at < right.size() && left[at] == right[at]) {
      ++at;
    }
    if (left != right) {
      print_error("%s: '%s' became '%s'\n", name.c_str(), left.substr(at, 60).c_str(), right.substr(at, 60).c_str());
    }
    assert_true(left == right);
  }
}

void test_cadence_and_retention(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  RunConfig config = config_in(directory.path());
  config.keep_checkpoint_max = 0;
  TrainRequest request = epochs_of(1);
  std::vector<std::string> seen;
  Hook hook;
  hook.name = "recorder";
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::checkpoint_saved) {
      seen.push_back(base::concat(event.step, " ", base::path_exists(std::string(event.checkpoint_path))));
    }
    return Answer::go_on;
  };
  request.hooks = {hook};
  assert_ok(make_estimator(config)->train(request));
  assert_true(steps_in(directory.path()) == std::vector<int64_t>({0, 4, 8, 10}));
  assert_true(seen == std::vector<std::string>({"0 true", "4 true", "8 true", "10 true"}));
  config.keep_checkpoint_max = 2;
  assert_ok(make_estimator(config)->train(epochs_of(1)));
  assert_true(steps_in(directory.path()) == std::vector<int64_t>({16, 20}));
}

void test_cadence_by_seconds(void **) {
  const std::pair<double, std::vector<int64_t>> cases[] = {
      {1e-9, {0, 2, 3, 4, 5, 6, 7, 8, 9, 10}},  // has passed at each step, but the first, just behind the start
      {1e6, {0, 10}},
  };
  for (const auto &[seconds, expected] : cases) {
    reset_fake_orders();
    TemporaryDirectory directory;
    RunConfig config = config_in(directory.path());
    config.save_checkpoints_steps.reset();
    config.save_checkpoints_secs = seconds;
    config.keep_checkpoint_max = 0;
    assert_ok(make_estimator(config)->train(epochs_of(1)));
    assert_true(steps_in(directory.path()) == expected);
  }
}

void test_an_interrupted_run_ends_with_the_same_bytes(void **) {
  reset_fake_orders();
  TemporaryDirectory whole, split;
  assert_ok(make_estimator(config_in(whole.path()))->train(epochs_of(3)));
  for (const int64_t fail_at : {3, 9, 10, 11, 12, 21, 30}) {
    fake_orders().fail_at_step = fail_at;
    assert_error_contains(make_estimator(config_in(split.path()))->train(epochs_of(3)), "replica 0 failed");
    // The final checkpoint is written on the way out.
    assert_int_equal(steps_in(split.path()).back(), fail_at - 1);
  }
  fake_orders().fail_at_step = -1;
  const auto estimator = make_estimator(config_in(split.path()));
  const TrainResult result = assert_ok_value(estimator->train(epochs_of(3)));
  assert_int_equal(result.step, 30);
  assert_int_equal(result.steps, 1);
  assert_same_checkpoint(whole.path() + "/checkpoint-30", split.path() + "/checkpoint-30");
  // The goal is reached: the same call asks for three more.
  assert_int_equal(assert_ok_value(estimator->train(epochs_of(3))).step, 60);
}

void test_going_on_from_an_older_checkpoint_gives_the_same_bytes(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  RunConfig config = config_in(directory.path());
  config.keep_checkpoint_max = 0;
  assert_ok(make_estimator(config)->train(epochs_of(3)));
  TemporaryDirectory kept;
  assert_ok(base::rename_synced(directory.path() + "/checkpoint-30", kept.path() + "/checkpoint-30"));
  for (const int64_t from : {24, 8, 4, 0}) {
    for (const int64_t step : steps_in(directory.path())) {
      if (step > from) assert_ok(base::remove_tree(directory.path(), base::concat("checkpoint-", step)));
    }
    assert_int_equal(assert_ok_value(make_estimator(config)->train(epochs_of(3))).steps, 30 - from);
    assert_same_checkpoint(kept.path() + "/checkpoint-30", directory.path() + "/checkpoint-30");
  }
}

void test_a_damaged_newest_falls_back(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  RememberingLogger log;
  RunConfig config = config_in(directory.path());
  config.keep_checkpoint_max = 2;
  assert_ok(make_estimator(config)->train(epochs_of(1)));
  checkpoint::flip_bit(directory.path() + "/checkpoint-10/weights.safetensors", 90);
  TrainRequest request = epochs_of(1);
  request.epochs.reset();
  request.max_steps = 9;
  const TrainResult result = assert_ok_value(make_estimator(config, log.logger())->train(request));
  assert_int_equal(result.steps, 1);
  assert_contains(log.text().c_str(), "WARNING: ignoring a bad checkpoint");
  assert_contains(log.text().c_str(), "checkpoint-10/weights.safetensors");
  // What could not be read has not pushed out what was written since.
  assert_true(steps_in(directory.path()) == std::vector<int64_t>({8, 9, 10}));
  request.max_steps = 10;
  assert_ok(make_estimator(config)->train(request));
  assert_ok(checkpoint::read_checkpoint(directory.path() + "/checkpoint-10", {}));
}

void test_none_good_is_an_error(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  assert_ok(make_estimator(config_in(directory.path()))->train(epochs_of(1)));
  for (const int64_t step : steps_in(directory.path())) {
    checkpoint::flip_bit(base::concat(directory.path(), "/checkpoint-", step, "/manifest.json"), 50);
  }
  assert_error_contains(make_estimator(config_in(directory.path()))->train(epochs_of(1)), "none of the");
  EvaluateRequest evaluation;
  evaluation.dataset = fake_dataset(4, 2);
  assert_int_equal(make_estimator(config_in(directory.path()))->evaluate(evaluation).code(), base::Code::data_loss);
}

void test_where_none_is_good_what_is_in_memory_stays(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  const auto estimator = make_estimator(config_in(directory.path()));
  TrainRequest request = epochs_of(1);
  request.epochs.reset();
  request.steps = 4;
  assert_ok(estimator->train(request));
  for (const int64_t step : steps_in(directory.path())) {
    checkpoint::flip_bit(base::concat(directory.path(), "/checkpoint-", step, "/manifest.json"), 50);
  }
  assert_error_contains(estimator->train(request), "none of the");
  for (const int64_t step : steps_in(directory.path())) {
    assert_ok(base::remove_tree(directory.path(), base::concat("checkpoint-", step)));
  }
  const TrainResult result = assert_ok_value(estimator->train(request));
  assert_int_equal(result.step, 8);
  assert_int_equal(fake_orders().initialized, 1);
}

void test_stop_writes_the_final_checkpoint(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  fake_orders().token = base::CancelToken::create();
  fake_orders().stop_token_at = 6;
  TrainRequest request = epochs_of(3);
  request.cancel = fake_orders().token;
  const TrainResult result = assert_ok_value(make_estimator(config_in(directory.path()))->train(request));
  assert_int_equal(result.reason, EndReason::stopped);
  assert_int_equal(steps_in(directory.path()).back(), 6);
  reset_fake_orders();
  assert_int_equal(assert_ok_value(make_estimator(config_in(directory.path()))->train(epochs_of(3))).step, 30);
}

void test_a_full_disk_ends_the_run(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  TrainRequest request = epochs_of(3);
  Hook hook;
  hook.name = "fills the disk";
  hook.every_steps = 1;
  hook.function = [](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::checkpoint_saved && event.step == 4) {
      base::fail_file_operation(base::FileOperation::write, 1, ENOSPC);
    }
    return Answer::go_on;
  };
  fake_orders().step_time_us = 5000;
  request.hooks = {hook};
  const auto trained = make_estimator(config_in(directory.path()))->train(request);
  base::fail_file_operation(base::FileOperation::write, 0, 0);
  assert_int_equal(trained.code(), base::Code::resource_exhausted);
  assert_error_contains(trained, "No space left");
  const auto names = assert_ok_value(base::list_directory(directory.path()));
  for (const std::string &name : names)
    assert_true(name.starts_with("checkpoint-") || name == "training.lock" || name == "run.jsonl");
  const auto newest = checkpoint::read_newest_checkpoint(directory.path(), {}, base::Logger());
  assert_true(assert_ok_value(newest).manifest.step >= 4);
}

void test_a_model_dir_that_cannot_be_used(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  assert_ok(base::write_file_synced(directory.path() + "/file", "x"));
  const auto blocked = make_estimator(config_in(directory.path() + "/file/run"))->train(epochs_of(1));
  assert_error_contains(blocked, "cannot train in model_dir");
  assert_error_contains(blocked, "/file/run");
  const auto first = make_estimator(config_in(directory.path() + "/run"));
  const auto session = assert_ok_value(first->open_session(epochs_of(1)));
  const auto second = make_estimator(config_in(directory.path() + "/run"))->train(epochs_of(1));
  assert_int_equal(second.code(), base::Code::failed_precondition);
  assert_error_contains(second, "another training run uses");
  assert_ok(session->close());
}

void test_another_dataset_begins_a_new_pass(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  RememberingLogger log;
  TrainRequest request;
  request.dataset = fake_dataset(10, 1);
  request.steps = 5;
  assert_ok(make_estimator(config_in(directory.path()))->train(request));
  request.dataset = fake_dataset(20, 2);
  request.steps.reset();
  const TrainResult result = assert_ok_value(make_estimator(config_in(directory.path()), log.logger())->train(request));
  assert_int_equal(result.examples, 20);
  assert_contains(log.text().c_str(), "the dataset is not the one of the checkpoint");
  const auto evaluated = [&] {
    EvaluateRequest evaluation;
    evaluation.dataset = fake_dataset(4, 2);
    return make_estimator(config_in(directory.path()))->evaluate(evaluation);
  }();
  assert_int_equal(assert_ok_value(evaluated).global_step, 15);
}

void test_no_checkpoints_when_turned_off(void **) {
  reset_fake_orders();
  TemporaryDirectory directory;
  RunConfig config = config_in(directory.path() + "/run", 0);
  config.save_summary_steps = 0;
  assert_ok(make_estimator(config)->train(epochs_of(1)));
  assert_false(base::path_exists(directory.path() + "/run"));
}

data::DatasetRef failing_dataset() {
  data::TransformArguments arguments;
  arguments.map = [](const data::Element &, data::Element &) -> base::Status { return base::data_loss("a bad row"); };
  return assert_ok_value(data::Pipeline(fake_dataset(4, 2)).apply("map_callback", {}, std::move(arguments)).build());
}

// A model that cannot be evaluated ends the training before its first step, data that cannot when they are read.
void test_an_evaluation_that_fails_is_a_training_that_fails(void **) {
  for (const bool by_model : {true, false}) {
    const TemporaryDirectory directory;
    const auto function = [&](graph::GraphBuilder &b, Mode mode) -> base::Status {
      if (by_model && mode == Mode::evaluate) return base::invalid_argument("nothing to evaluate");
      return fake_model_function()(b, mode);
    };
    const RunConfig config = config_in(directory.path(), 100);
    const auto estimator =
        *Estimator::create(function, config, fake_strategy(), {}, hooks::standing_hooks(config, nullptr));
    std::vector<std::string> seen;
    Hook hook;
    hook.name = "recorder";
    hook.function = [&](const Event &event) -> base::Result<Answer> {
      if (event.kind == EventKind::error) seen.push_back(base::concat(event.step, ": ", event.error.message()));
      return Answer::go_on;
    };
    TrainAndEvaluateRequest request;
    request.train = epochs_of(2);
    request.train.hooks = {hook};
    request.evaluate.dataset = by_model ? fake_dataset(4, 2) : failing_dataset();
    request.every_steps = 7;
    assert_error_contains(estimator->train_and_evaluate(request), by_model ? "nothing to evaluate" : "a bad row");
    const int64_t last = by_model ? 0 : 7;
    assert_int_equal(seen.size(), 1);
    assert_true(seen[0].starts_with(base::concat(last, ": ", by_model ? "the model function failed" : "evaluating")));
    assert_int_equal(steps_in(directory.path()).back(), last);
    // What was trained is kept in memory, too.
    assert_int_equal(assert_ok_value(estimator->train(epochs_of(2))).step, 20);
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_an_evaluation_that_fails_is_a_training_that_fails),
      cmocka_unit_test(test_cadence_and_retention),
      cmocka_unit_test(test_cadence_by_seconds),
      cmocka_unit_test(test_an_interrupted_run_ends_with_the_same_bytes),
      cmocka_unit_test(test_going_on_from_an_older_checkpoint_gives_the_same_bytes),
      cmocka_unit_test(test_a_damaged_newest_falls_back),
      cmocka_unit_test(test_none_good_is_an_error),
      cmocka_unit_test(test_where_none_is_good_what_is_in_memory_stays),
      cmocka_unit_test(test_stop_writes_the_final_checkpoint),
      cmocka_unit_test(test_a_full_disk_ends_the_run),
      cmocka_unit_test(test_a_model_dir_that_cannot_be_used),
      cmocka_unit_test(test_another_dataset_begins_a_new_pass),
      cmocka_unit_test(test_no_checkpoints_when_turned_off),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace resume_test
