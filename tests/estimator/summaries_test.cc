// SPDX-License-Identifier: Apache-2.0
//
// Summaries of runs: which steps are in them, what becomes of them where a run goes on from a checkpoint, and that
// nothing fails because of them.
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/cancel.h"
#include "base/file.h"
#include "base/temporary_directory.h"
#include "base/text.h"
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/reader.h"
#include "estimator/estimator.h"
#include "estimator/fake_distribute.h"
#include "estimator/hooks/standing_hooks.h"
#include "monitor/event_decoder.h"
#include "tensor/half.h"
#include "testing.h"

namespace tutti::testing::summaries_test {

using namespace tutti::impl::estimator;
namespace base = tutti::impl::base;
using impl::checkpoint::RememberingLogger;

using Points = std::vector<std::pair<int64_t, double>>;

static base::Ref<Estimator> make_estimator(const RunConfig &config, const base::Ref<base::Logger> &logger = {},
                                           int32_t workers = 1) {
  Environment environment;
  environment.logger = logger;
  return *Estimator::create(fake_model_function(), config, fake_strategy(workers), environment,
                            hooks::standing_hooks(config, logger));
}

static RunConfig config_in(const std::string &model_dir, int64_t every) {
  RunConfig config;
  config.model_dir = model_dir;
  config.save_checkpoints_steps = 10;
  config.save_summary_steps = every;
  config.log_step_count_steps = 0;
  return config;
}

/// A hook that keeps the loss of each step.
static Hook watch(Points &losses) {
  Hook hook;
  hook.name = "watch";
  hook.every_steps = 1;
  hook.values = {"loss"};
  hook.function = [&losses](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::step) losses.emplace_back(event.step, static_cast<float>(*event.find("loss")));
    return Answer::go_on;
  };
  return hook;
}

static TrainRequest steps_of(int64_t steps) {
  TrainRequest request;
  request.dataset = fake_dataset(1000, 1);
  request.steps = steps;
  return request;
}

static EvaluateRequest evaluation() {
  EvaluateRequest request;
  request.dataset = fake_dataset(10, 1);
  return request;
}

static std::vector<int64_t> steps_in(const std::string &folder) {
  std::vector<int64_t> steps;
  for (const auto &[step, loss] : curve(shown_events(decode_event_folder(folder)), "loss"))
    steps.push_back(step);
  return steps;
}

// The first step of a training, and every so many behind it, whether or not a hook wakes the caller in between.
static void test_cadence(void **) {
  for (const bool is_watched : {false, true}) {
    for (const int64_t every : {1, 7, 100}) {
      reset_fake_orders();
      fake_orders().takes_samples = true;
      const TemporaryDirectory folder;
      Points losses, expected;
      TrainRequest request = steps_of(25);
      if (is_watched) request.hooks = {watch(losses)};
      assert_ok(make_estimator(config_in(folder.path(), every))->train(request));
      std::vector<int64_t> steps;
      for (int64_t step = 1; step <= 25; step += every)
        steps.push_back(step);
      assert_true(steps_in(folder.path()) == steps);
      const auto events = decode_event_folder(folder.path());
      for (const auto &[step, rate] : curve(events, "learning_rate"))
        assert_true(rate == 0.1F);
      for (const auto &point : losses)
        if ((point.first - 1) % every == 0) expected.push_back(point);
      assert_true(!is_watched || curve(events, "loss") == expected);
      // Without anybody to see to it, all steps are one run of the trainer but for the first and the checkpoints.
      assert_true(is_watched || fake_orders().runs <= 5);
    }
  }
}

static void test_off_and_elsewhere(void **) {
  reset_fake_orders();
  fake_orders().takes_samples = true;
  const TemporaryDirectory folder, other;
  const auto estimator = make_estimator(config_in(folder.path(), 0));
  assert_ok(estimator->train(steps_of(5)));
  assert_ok(estimator->evaluate(evaluation()));
  assert_true(steps_in(folder.path()).empty() && !base::path_exists(folder / "eval"));
  RunConfig config = config_in("", 2);
  config.summary_dir = other / "summaries";
  const auto second = make_estimator(config);
  assert_ok(second->train(steps_of(5)));
  assert_ok(second->evaluate(evaluation()));
  assert_true((steps_in(other / "summaries") == std::vector<int64_t>{1, 3, 5}));
  assert_true((steps_in(other / "summaries/eval") == std::vector<int64_t>{5}));
}

// A run that is lost behind its last checkpoint: those steps come again, once.
static void test_resumed_run(void **) {
  reset_fake_orders();
  fake_orders().takes_samples = true;
  const TemporaryDirectory folder;
  RunConfig config = config_in(folder.path(), 1);
  config.summary_flush_secs = 0;
  Points losses;
  {
    const auto estimator = make_estimator(config);
    const auto session = assert_ok_value(estimator->open_session(steps_of(100)));
    assert_ok(session->run({.steps = 17}));
    assert_int_equal(steps_in(folder.path()).size(), 17);
    const auto newest = [&] {
      const auto names = impl::checkpoint::list_checkpoints(folder.path());
      return !names.ok() || names->empty() ? -1 : names->back().step;
    };
    while (newest() < 10)
      usleep(1000);
  }  // without its last checkpoint: as a run that was killed
  TrainRequest request = steps_of(30);
  request.hooks = {watch(losses)};
  assert_ok(make_estimator(config)->train(request));
  assert_int_equal(losses.front().first, 11);
  const auto events = decode_event_folder(folder.path());
  assert_int_equal(curve(events, "loss").size(), 17 + 30);
  const Points shown = curve(shown_events(events), "loss");
  assert_int_equal(shown.size(), 40);
  for (size_t i = 0; i < shown.size(); ++i)
    assert_int_equal(shown[i].first, i + 1);
  assert_true(Points(shown.begin() + 10, shown.end()) == losses);
}

// What is in a checkpoint is in the summaries: a run that goes on from it leaves no gap.
static void test_summaries_come_before_checkpoints(void **) {
  reset_fake_orders();
  fake_orders().takes_samples = true;
  const TemporaryDirectory folder;
  TrainRequest request = steps_of(35);
  Hook hook;
  hook.name = "look";
  std::vector<std::pair<int64_t, size_t>> seen;
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::checkpoint_saved) seen.emplace_back(event.step, steps_in(folder.path()).size());
    return Answer::go_on;
  };
  request.hooks = {hook};
  RunConfig config = config_in(folder.path(), 1);
  config.summary_flush_secs = 1'000'000;
  assert_ok(make_estimator(config)->train(request));
  assert_true(seen.size() > 1 && seen.back().first == 35);
  for (const auto &[step, summaries] : seen)
    assert_true(summaries >= static_cast<size_t>(step));
}

static void test_sessions_and_failures(void **) {
  reset_fake_orders();
  fake_orders().takes_samples = true;
  const TemporaryDirectory folder;
  const auto estimator = make_estimator(config_in(folder.path(), 4));
  assert_ok(estimator->train(steps_of(6)));
  assert_ok(estimator->train(steps_of(6)));
  fake_orders().fail_at_step = 18;
  assert_error_contains(estimator->train(steps_of(10)), "failed at step 18");
  assert_true((steps_in(folder.path()) == std::vector<int64_t>{1, 5, 7, 11, 13, 17}));
}

static void test_train_and_evaluate(void **) {
  reset_fake_orders();
  fake_orders().takes_samples = true;
  const TemporaryDirectory folder;
  const auto estimator = make_estimator(config_in(folder.path(), 10));
  TrainAndEvaluateRequest request;
  request.train = steps_of(30);
  request.evaluate.dataset = fake_dataset(10, 1);
  request.every_steps = 12;
  Points losses;
  Hook hook;
  hook.name = "evaluations";
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::evaluated) losses.emplace_back(event.step, static_cast<float>(*event.find("loss")));
    return Answer::go_on;
  };
  request.train.hooks = {hook};
  assert_ok(estimator->train_and_evaluate(request));
  const auto events = decode_event_folder(folder / "eval");
  assert_true(curve(events, "loss") == losses);
  assert_true((curve(events, "spread") == Points{{12, 1}, {24, 1}, {30, 1}}));
  assert_true((steps_in(folder.path()) == std::vector<int64_t>{1, 11, 21}));
}

// What is trained, and how, is told once by an estimator, and before its first step.
static void test_description(void **) {
  reset_fake_orders();
  fake_orders().takes_samples = true;
  const TemporaryDirectory folder;
  RunConfig config = config_in(folder.path(), 4);
  config.options = base::JsonObject{{"seed", base::JsonObject{{"value", 7}, {"origin", "set"}}}};
  const auto estimator = make_estimator(config);
  assert_ok(estimator->train(steps_of(6)));
  assert_ok(estimator->train(steps_of(6)));
  const auto events = decode_event_folder(folder.path());
  int64_t graphs = 0;
  for (const DecodedEvent &event : events) {
    if (event.graph.empty()) continue;
    ++graphs;
    assert_int_equal(event.step, 0);
    std::vector<std::string> ops;
    for (const auto &[number, node] : decode_message(event.graph))
      if (number == 1) ops.push_back(field_of(decode_message(node), 2));
    for (const char *op : {"input", "variable", "add", "reduce_mean"})
      assert_true(std::find(ops.begin(), ops.end(), op) != ops.end());
  }
  assert_int_equal(graphs, 1);
  const auto texts = curve(events, "settings");
  assert_true(texts.size() == 1 && texts[0].first == 0);
  for (const DecodedEvent &event : events) {
    if (!event.values.contains("settings")) continue;
    const std::string text = field_of(decode_message(field_of(event.values.at("settings"), 8)), 8);
    assert_contains(text.c_str(), "| seed | 7 |\n");
    assert_contains(text.c_str(), "| batch_size | 1 |\n");
    assert_contains(text.c_str(), "| optimizer | sgd_update |\n");
    assert_true(event.values.contains("_hparams_/session_start_info"));
  }
}

static void test_histograms(void **) {
  reset_fake_orders();
  const TemporaryDirectory folder;
  RunConfig config = config_in(folder.path(), 100);
  config.save_histogram_steps = 4;
  const RememberingLogger log;
  std::vector<std::pair<int64_t, float>> weights;
  TrainRequest request = steps_of(10);
  Hook hook;
  hook.name = "weights";
  hook.every_steps = 1;
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind != EventKind::step) return Answer::go_on;
    TUTTI_ASSIGN(const auto w, event.control->get_variable("w"));
    weights.emplace_back(event.step, w.data_as<float>()[0]);
    return Answer::go_on;
  };
  request.hooks = {hook};
  assert_ok(make_estimator(config, log.logger())->train(request));
  std::vector<std::pair<int64_t, float>> seen;
  for (const DecodedEvent &event : decode_event_folder(folder.path())) {
    if (!event.values.contains("weights/w")) continue;
    const Fields histogram = decode_message(field_of(event.values.at("weights/w"), 5));
    assert_true(double_of(field_of(histogram, 3)) == 1);
    seen.emplace_back(event.step, static_cast<float>(double_of(field_of(histogram, 4))));
  }
  assert_true((seen == std::vector{weights[0], weights[4], weights[8]}));
  // The gradients that this trainer does not have.
  const std::string text = log.text();
  const size_t first = text.find("WARNING: a histogram for TensorBoard is missing");
  assert_true(first != std::string::npos && text.find("WARNING", first + 1) == std::string::npos);
}

static std::vector<base::Json> record_in(const std::string &folder) {
  std::vector<base::Json> objects;
  std::string text = assert_ok_value(base::read_file(folder + "/run.jsonl"));
  assert_true(text.ends_with('\n'));
  text.pop_back();
  for (const std::string &line : base::split(text, '\n'))
    objects.push_back(assert_ok_value(base::Json::parse(line)));
  return objects;
}

static std::string text_in(const base::Json &object, std::string_view key) { return object.find(key)->string(); }

// One line for each training, however it ends, and for each evaluation; none where there was nothing to train.
static void test_record(void **) {
  reset_fake_orders();
  const TemporaryDirectory folder;
  const base::Ref<base::CancelToken> cancel = base::CancelToken::create();
  RunConfig config = config_in(folder.path(), 100);
  config.options.set("seed", base::JsonObject{{"value", 7}, {"origin", "set"}});
  const auto estimator = make_estimator(config);
  assert_ok(estimator->train(steps_of(5)));
  const EvaluateResult evaluated = assert_ok_value(estimator->evaluate(evaluation()));
  TrainRequest nothing = steps_of(5);
  nothing.steps.reset();
  nothing.max_steps = 5;
  assert_ok(estimator->train(nothing));
  fake_orders().fail_at_step = 8;
  assert_false(estimator->train(steps_of(5)).ok());
  fake_orders().fail_at_step = -1;
  fake_orders().cancel_token_at = 9;
  fake_orders().token = cancel;
  TrainRequest cancelled = steps_of(5);
  cancelled.cancel = cancel;
  assert_false(estimator->train(cancelled).ok());
  fake_orders().cancel_token_at = -1;
  assert_ok(estimator->train_and_evaluate({.train = steps_of(4), .evaluate = evaluation(), .every_steps = 2}));

  const std::vector<base::Json> record = record_in(folder.path());
  std::string events, reasons;
  for (const base::Json &line : record) {
    events += text_in(line, "event").substr(0, 1);
    if (text_in(line, "event") == "training") reasons += text_in(line, "reason") + " ";
  }
  assert_string_equal(events.c_str(), "tetteet");
  assert_string_equal(reasons.c_str(), "MAX_STEPS ERROR CANCELLED MAX_STEPS ");
  assert_int_equal(record[0].find("first_step")->integer(), 0);
  assert_int_equal(record[0].find("step")->integer(), 5);
  assert_int_equal(record[0].find("examples")->integer(), 5);
  assert_true(record[0].find("metrics")->find("learning_rate")->is_number());
  assert_true(record[0].find("options")->find("seed")->find("origin")->string() == "set");
  assert_int_equal(record[0].find("settings")->find("batch_size")->integer(), 1);
  assert_true(record[0].find("variables")->array()[0].find("name")->string() == "w");
  assert_true(record[0].find("memory")->find("most_resident")->integer() >= 1 << 20);
  assert_true(record[0].find("error") == nullptr && record[2].find("error")->is_string());
  assert_int_equal(record[2].find("first_step")->integer(), 5);
  assert_int_equal(record[1].find("step")->integer(), 5);
  assert_true(record[1].find("loss")->number() == *evaluated.find("loss"));
}

static void test_nothing_fails_where_none_can_be_written(void **) {
  reset_fake_orders();
  fake_orders().takes_samples = true;
  const TemporaryDirectory folder;
  assert_ok(base::write_file_synced(folder / "file", ""));
  const RememberingLogger log;
  RunConfig config = config_in(folder / "model", 1);
  config.summary_dir = folder / "file";
  const auto estimator = make_estimator(config, log.logger());
  assert_int_equal(assert_ok_value(estimator->train(steps_of(20))).step, 20);
  assert_ok(estimator->evaluate(evaluation()));
  const std::string text = log.text();
  const size_t first = text.find("WARNING: summaries for TensorBoard cannot be written: ");
  assert_true(first != std::string::npos && text.find("WARNING", first + 1) == std::string::npos);
  assert_int_equal(estimator->global_step(), 20);
}

static void test_options(void **) {
  RunConfig config;
  config.save_summary_steps = -1;
  assert_error_contains(config.check(), "save_summary_steps is -1, expected at least 0");
  config.save_summary_steps = 100;
  config.summary_flush_secs = -1;
  assert_error_contains(config.check(), "summary_flush_secs is -1, expected at least 0");
  config.summary_flush_secs = 0;
  config.summary_dir = std::string("a\0b", 3);
  assert_error_contains(config.check(), "summary_dir contains a NUL character");
  config.summary_dir.clear();
  assert_true(config.summary_folder().empty());
  config.model_dir = "model";
  assert_string_equal(config.summary_folder().c_str(), "model");
}

static void test_tensors_of_any_type_in_the_record(void **) {
  using impl::tensor::BFloat16;
  EvaluateResult result;
  const auto add = [&](const char *name, const impl::tensor::Tensor &elements) {
    result.values.push_back({name, std::nan(""), elements});
  };
  add("bf16", assert_ok_value(impl::tensor::Tensor::from_values<BFloat16>({2}, {BFloat16(1.5F), BFloat16(-2.0F)})));
  add("i64", assert_ok_value(impl::tensor::Tensor::from_values<int64_t>({2, 1}, {3, 4})));
  const std::string text = result.to_json().dump();
  assert_contains(text.c_str(), "\"bf16\":[1.5,-2");
  assert_contains(text.c_str(), "\"i64\":[[3");
}

static const CMUnitTest tests[] = {
    cmocka_unit_test(test_cadence),
    cmocka_unit_test(test_off_and_elsewhere),
    cmocka_unit_test(test_resumed_run),
    cmocka_unit_test(test_summaries_come_before_checkpoints),
    cmocka_unit_test(test_sessions_and_failures),
    cmocka_unit_test(test_train_and_evaluate),
    cmocka_unit_test(test_description),
    cmocka_unit_test(test_histograms),
    cmocka_unit_test(test_record),
    cmocka_unit_test(test_tensors_of_any_type_in_the_record),
    cmocka_unit_test(test_nothing_fails_where_none_can_be_written),
    cmocka_unit_test(test_options),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::summaries_test
