// SPDX-License-Identifier: Apache-2.0
//
// Workers in several processes whose devices are of several backends, and not all of the same ones: they predict and
// evaluate as one process with one device does, every row once and in order, and each deals its rows to its devices by
// their speed. They do not train.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "base/text.h"
#include "data/pipeline/pipeline.h"
#include "distribute/paced_backend.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/worker_strategy.h"
#include "testing.h"

namespace tutti::testing {

using distribute::DeviceChoice;
using distribute::PredictBatch;
using distribute::PredictOptions;
using impl::backend::BackendRef;
using impl::backend::Level;

/// Whole and ragged batches, one row at a time, fewer batches and rows than workers and devices, nothing at all.
struct Size {
  int64_t rows, batch;
};
static constexpr Size kSizes[] = {{61, 8}, {48, 8}, {7, 1}, {5, 8}, {1, 1}, {130, 50}, {0, 4}};
static constexpr Size kMany = {4000, 500};

static NetworkCase penalty_network() {
  NetworkCase network;
  network.loss = Loss::mean_with_penalty;
  return network;
}

struct Weights {
  Model train, predict;
  impl::base::Ref<impl::checkpoint::WeightVersion> version;
};

/// Of worker 1 of "other_model" for a network that computes something else with the same weights.
static Result<Weights> make_weights(const WorkerCall &call) {
  Weights weights;
  NetworkCase network = penalty_network();
  network.relu = call.scenario.starts_with("other_model") && call.worker == 1;
  TUTTI_ASSIGN(weights.train, build_network(network));
  TUTTI_ASSIGN(weights.predict, impl::graph::predict_model(weights.train));
  TUTTI_ASSIGN(const BackendRef backend, open_paced(2, 1));
  TUTTI_ASSIGN(const StrategyRef one, distribute::Strategy::one_device({backend, 0}));
  TUTTI_ASSIGN(auto trainer, Trainer::open(weights.train, one, {}));
  TUTTI_TRY(trainer->initialize());
  TUTTI_ASSIGN(weights.version, trainer->publish_weights(false));
  return weights;
}

/// Rows 0, 1, ...; where they are divided those of one of `parts`.
static Result<std::unique_ptr<impl::data::Iterator>> rows_of(const Size &size, int part, int parts) {
  std::vector<int64_t> rows;
  for (int64_t row = part; row < size.rows; row += parts)
    rows.push_back(row);
  const NetworkCase network = penalty_network();
  return make_listed_rows(rows, network.features, network.classes, network.dtype, size.batch)->make_iterator({});
}

// ---- a worker: its scenario is NAME, or NAME:MORE ----

static bool is(const WorkerCall &call, const char *name) {
  return call.scenario.substr(0, call.scenario.find(':')) == name;
}
static std::string more_of(const WorkerCall &call) { return call.scenario.substr(call.scenario.find(':') + 1); }

/// Two of each worker: of the backend under test and of others, not the same of all workers, nor in the same order.
static Result<std::vector<DeviceChoice>> mixed_devices(const WorkerCall &call) {
  TUTTI_ASSIGN(const BackendRef tested, open_test_backend(1));
  TUTTI_ASSIGN(const BackendRef first, open_paced(0, 1));
  TUTTI_ASSIGN(const BackendRef second, open_paced(1, 1));
  if (call.worker == 0) return std::vector<DeviceChoice>{{tested, 0}, {first, 0}};
  const bool is_in_trouble = is(call, "kill") || is(call, "fail");
  if (call.worker == 1) return std::vector<DeviceChoice>{{second, 0}, {is_in_trouble ? first : tested, 0}};
  return std::vector<DeviceChoice>{{first, 0}, {second, 0}};
}

/// Of one backend in each worker, of another in each.
static Result<std::vector<DeviceChoice>> own_devices(const WorkerCall &call) {
  TUTTI_ASSIGN(const BackendRef backend, open_paced(call.worker, 2));
  return std::vector<DeviceChoice>{{backend, 0}, {backend, 1}};
}

/// A fast one and one that needs twenty times as long for each row.
static Result<std::vector<DeviceChoice>> uneven_devices() {
  TUTTI_ASSIGN(const BackendRef fast, open_paced(0, 1));
  TUTTI_ASSIGN(const BackendRef slow, open_paced(1, 1));
  set_pace(0, 0, {.row_us = 20}), set_pace(1, 0, {.row_us = 400});
  return std::vector<DeviceChoice>{{slow, 0}, {fast, 0}};
}

/// "rows" and then of each row its position and what is predicted, to the last bit; a line each.
static Result<std::string> predict(distribute::PredictEngine &engine, const WorkerCall &call, const Size &size,
                                   bool divides) {
  TUTTI_ASSIGN(auto iterator, rows_of(size, divides ? call.worker : 0, divides ? call.workers : 1));
  TUTTI_ASSIGN(const auto stream, engine.stream(std::move(iterator), nullptr));
  std::string text = "rows\n";
  for (PredictBatch batch; true;) {
    TUTTI_ASSIGN(const bool more, stream->next(batch));
    if (!more) return text;
    const Tensor &logits = batch.outputs[0];
    const int64_t width = logits.rows() == 0 ? 0 : logits.elements() / logits.rows();
    for (int64_t row = 0; row < batch.rows; ++row) {
      text += std::to_string(batch.first_row + row);
      for (int64_t i = row * width; i < (row + 1) * width; ++i) {
        char word[32];
        snprintf(word, sizeof word, " %a", static_cast<double>(logits.data_as<float>()[i]));
        text += word;
      }
      text += "\n";
    }
  }
}

static Result<std::string> predict_sizes(const WorkerCall &call, const StrategyRef &strategy,
                                         const PredictOptions &options, std::span<const Size> sizes) {
  TUTTI_ASSIGN(const Weights weights, make_weights(call));
  TUTTI_ASSIGN(const auto engine, distribute::PredictEngine::open(weights.predict, strategy, options));
  TUTTI_TRY(engine->set_weights(weights.version));
  std::string text;
  for (const Size &size : sizes) {
    TUTTI_ASSIGN(const std::string part, predict(*engine, call, size, strategy->input_pipeline().count > 1));
    text += part;
  }
  return text;
}

/// A line for each size: examples and what is reported, or the error.
static Result<std::string> evaluate_sizes(const WorkerCall &call, const StrategyRef &strategy,
                                          const PredictOptions &options, std::span<const Size> sizes) {
  TUTTI_ASSIGN(const Weights weights, make_weights(call));
  TUTTI_ASSIGN(const auto evaluator, distribute::Evaluator::open(weights.train, strategy, options));
  const bool divides = strategy->input_pipeline().count > 1;
  std::string text;
  for (const Size &size : sizes) {
    TUTTI_ASSIGN(auto iterator, rows_of(size, divides ? call.worker : 0, divides ? call.workers : 1));
    const auto report = evaluator->run(*weights.version, *iterator, -1, nullptr);
    if (!report.ok() && size.rows > 0) return report.status();
    text += report.ok() ? std::to_string(report->examples) : report.status().message();
    for (size_t i = 0; report.ok() && i < report->values.size(); ++i) {
      char word[32];
      snprintf(word, sizeof word, " %a", report->values[i]);
      text += word;
    }
    text += "\n";
  }
  return text;
}

static Result<std::string> predict_and_evaluate(const WorkerCall &call, const StrategyRef &strategy) {
  PredictOptions options;
  options.collective_timeout_ms = 60000;
  if (is(call, "own_rows")) options.worker_rows = distribute::WorkerRows::own;
  if (is(call, "repeatable")) options.level = Level::repeatable;
  if (is(call, "other_level") && call.worker == 1) options.level = Level::repeatable;
  if (is(call, "invariant")) options.level = Level::invariant;
  if (more_of(call) == "evaluate") return evaluate_sizes(call, strategy, options, kSizes);
  return predict_sizes(call, strategy, options, kSizes);
}

/// Something happens while a device of worker 1 computes.
static Result<std::string> in_trouble(const WorkerCall &call, const StrategyRef &strategy) {
  if (call.worker == 1) set_pace(1, 0, {.fails = is(call, "fail"), .kills = is(call, "kill")});
  // The other device leaves it something to do, however busy the machine is.
  if (call.worker == 1) set_pace(0, 0, {.run_us = 20000, .row_us = 100});
  PredictOptions options;
  options.collective_timeout_ms = 60000;
  const Size many[] = {kMany};
  const auto outcome = more_of(call) == "evaluate" ? evaluate_sizes(call, strategy, options, many)
                                                   : predict_sizes(call, strategy, options, many);
  return outcome.ok() ? std::string("no error") : outcome.status().to_string();
}

/// How many rows each device has computed once their speeds are known.
static Result<std::string> deal(const WorkerCall &call, const StrategyRef &strategy) {
  TUTTI_ASSIGN(const Weights weights, make_weights(call));
  TUTTI_ASSIGN(const auto engine, distribute::PredictEngine::open(weights.predict, strategy, {}));
  TUTTI_TRY(engine->set_weights(weights.version));
  TUTTI_TRY(predict(*engine, call, kMany, false).status());
  set_pace(0, 0, {.row_us = 20}), set_pace(1, 0, {.row_us = 400});
  TUTTI_TRY(predict(*engine, call, kMany, false).status());
  return base::concat(paced_rows(0, 0), " ", paced_rows(1, 0));
}

/// How many rows come, in order, and the error behind them: of 61 rows by eight, 45 is bad.
static Result<std::string> before_an_error(const WorkerCall &call, const StrategyRef &strategy) {
  const bool own = more_of(call) == "own";
  TUTTI_ASSIGN(const Weights weights, make_weights(call));
  PredictOptions options;
  options.worker_rows = own ? distribute::WorkerRows::own : distribute::WorkerRows::all;
  TUTTI_ASSIGN(const auto engine, distribute::PredictEngine::open(weights.predict, strategy, options));
  TUTTI_TRY(engine->set_weights(weights.version));
  const NetworkCase network = penalty_network();
  impl::data::TransformArguments arguments;
  arguments.map = [read = std::make_shared<int64_t>(0)](const impl::data::Element &input, impl::data::Element &output) {
    output = input;
    return ++*read == 46 ? impl::base::data_loss("row 45 is bad") : Status();
  };
  impl::data::Pipeline pipeline(make_rows(61, network.features, network.classes, network.dtype, 1));
  pipeline.apply("unbatch").apply("map_callback", {}, std::move(arguments)).batch(8);
  TUTTI_ASSIGN(const auto dataset, pipeline.build());
  TUTTI_ASSIGN(auto iterator, dataset->make_iterator({}));
  TUTTI_ASSIGN(const auto stream, engine->stream(std::move(iterator), nullptr));
  int64_t rows = 0;
  for (PredictBatch batch; true; rows += batch.rows) {
    const Result<bool> more = stream->next(batch);
    if (!more.ok()) return base::concat(rows, " rows, then ", more.status());
    if (!*more) return base::concat(rows, " rows and no error");
    if (!own && batch.first_row != rows) return base::concat("row ", batch.first_row, " comes behind ", rows, " rows");
  }
}

static Result<std::string> train(const StrategyRef &strategy) {
  TUTTI_ASSIGN(const Model model, build_network(penalty_network()));
  TUTTI_ASSIGN(const auto trainer, Trainer::open(model, strategy, {}));
  TUTTI_TRY(trainer->initialize());
  TUTTI_TRY(trainer->check_workers({}, nullptr));
  return std::string("trains");
}

static Result<std::string> run_scenario(const WorkerCall &call) {
  const bool one_backend = is(call, "invariant") || more_of(call) == "one_backend";
  TUTTI_ASSIGN(std::vector<DeviceChoice> devices, is(call, "deal") ? uneven_devices()
                                                  : one_backend    ? own_devices(call)
                                                                   : mixed_devices(call));
  if (is(call, "repeatable")) {
    for (int32_t backend = 0; backend < 2; ++backend)
      set_pace(backend, 0, {.row_us = std::atof(more_of(call).c_str()) * (1 + backend)});
  }
  TUTTI_ASSIGN(const StrategyRef strategy, worker_strategy_on(call, std::move(devices), is(call, "shards"), 60000));
  if (is(call, "train")) return train(strategy);
  if (is(call, "deal")) return deal(call, strategy);
  if (is(call, "bad")) return before_an_error(call, strategy);
  if (is(call, "fail") || is(call, "kill")) return in_trouble(call, strategy);
  return predict_and_evaluate(call, strategy);
}

static int run_as_worker(char **arguments) {
  const WorkerCall call = worker_call(arguments);
  const Result<std::string> text = run_scenario(call);
  std::ofstream(call.file) << (text.ok() ? *text : text.status().to_string());
  return text.ok() ? 0 : 1;
}

// ---- the test ----

static StrategyRef alone() {
  return assert_ok_value(distribute::Strategy::one_device({assert_ok_value(open_paced(0, 1)), 0}));
}

/// Two texts with the same words, but for numbers with a fraction, which are nearly the same.
static void assert_nearly_same(const std::string &text, const std::string &expected) {
  std::istringstream words(text), others(expected);
  std::string word, other;
  while (others >> other) {
    if (!(words >> word)) fail_msg("it ends before %s", other.c_str());
    const double x = strtod(word.c_str(), nullptr), y = strtod(other.c_str(), nullptr);
    const bool is_close = other.starts_with("0x") || other.starts_with("-0x")
                              ? std::abs(x - y) <= 1e-5 * (1 + std::abs(y))
                              : word == other;
    if (!is_close) fail_msg("%s where %s was expected in\n%s", word.c_str(), other.c_str(), text.c_str());
  }
  assert_false(static_cast<bool>(words >> word));
}

static void check_against(const std::string &expected, const std::string &scenario, int count) {
  Workers workers(scenario, count);
  workers.wait();
  for (int w = 0; w < count; ++w) {
    if (workers.code(w) != 0) fail_msg("%s, worker %d: %s", scenario.c_str(), w, workers.output(w).c_str());
    assert_nearly_same(workers.output(w), expected);
    assert_string_equal(workers.output(w).c_str(), workers.output(0).c_str());
  }
}

static void test_predictions_are_those_of_one_process(void **) {
  const std::string expected = assert_ok_value(predict_sizes({}, alone(), {}, kSizes));
  for (int count = 2; count <= 3; ++count) {
    check_against(expected, "rows:predict", count);
    check_against(expected, "shards:predict", count);
  }
}

static void test_evaluations_are_those_of_one_process(void **) {
  const std::string expected = assert_ok_value(evaluate_sizes({}, alone(), {}, kSizes));
  assert_contains(expected.c_str(), "there are no rows");
  for (int count = 2; count <= 3; ++count) {
    check_against(expected, "rows:evaluate", count);
    check_against(expected, "shards:evaluate", count);
  }
}

/// Each keeps what it has computed; together it is everything, once.
static void test_own_rows(void **) {
  const std::string all = assert_ok_value(predict_sizes({}, alone(), {}, kSizes));
  Workers workers("own_rows:predict", 3);
  workers.wait();
  std::map<int, std::map<int, std::string>> seen;  // by size and position
  for (int w = 0; w < 3; ++w) {
    assert_int_equal(workers.code(w), 0);
    std::istringstream lines(workers.output(w));
    int size = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line == "rows") {
        ++size;
      } else if (!seen[size].emplace(atoi(line.c_str()), line).second) {
        fail_msg("a row twice: %s", line.c_str());
      }
    }
    assert_int_equal(size, static_cast<int>(std::size(kSizes)));
  }
  std::string together;
  for (int size = 1; size <= static_cast<int>(std::size(kSizes)); ++size) {
    together += "rows\n";
    for (const auto &[position, line] : seen[size])
      together += line + "\n";
  }
  assert_nearly_same(together, all);
}

/// Who computes what does not depend on who is free.
static void test_level_repeatable(void **) {
  std::string first;
  for (const char *scenario : {"repeatable:1", "repeatable:200"}) {
    Workers workers(scenario, 2);
    workers.wait();
    assert_int_equal(workers.code(0), 0);
    if (first.empty()) first = workers.output(0);
    for (int w = 0; w < 2; ++w)
      assert_string_equal(workers.output(w).c_str(), first.c_str());
  }
  assert_contains(first.c_str(), "rows\n0 ");
}

static void test_each_worker_deals_by_speed(void **) {
  Workers workers("deal", 2);
  workers.wait();
  for (int w = 0; w < 2; ++w) {
    long fast = 0, slow = 0;
    assert_int_equal(workers.code(w), 0);
    assert_int_equal(sscanf(workers.output(w).c_str(), "%ld %ld", &fast, &slow), 2);
    std::printf("worker %d: %ld rows on the fast device, %ld on the slow one\n", w, fast, slow);
    assert_int_equal(fast + slow, kMany.rows / 2);
    assert_in_range(slow, 0, kMany.rows / 8);
  }
}

static void test_a_worker_killed_while_a_device_computes_is_named(void **) {
  for (const char *scenario : {"kill:predict", "kill:evaluate"}) {
    const auto begin = std::chrono::steady_clock::now();
    Workers workers(scenario, 3);
    workers.wait();
    assert_int_equal(workers.code(1), 128 + SIGKILL);
    for (const int w : {0, 2}) {
      assert_int_equal(workers.code(w), 0);
      assert_contains(workers.output(w).c_str(), "worker 1 (127.0.0.1)");
      assert_contains(workers.output(w).c_str(), "disconnected");
    }
    assert_true(std::chrono::steady_clock::now() - begin < std::chrono::seconds(45));  // the wait's own limit is 60
  }
}

static void test_a_device_that_fails_ends_the_call_of_all(void **) {
  for (const char *scenario : {"fail:predict", "fail:evaluate"}) {
    Workers workers(scenario, 3);
    workers.wait();
    for (int w = 0; w < 3; ++w) {
      assert_int_equal(workers.code(w), 0);
      assert_contains(workers.output(w).c_str(), "on fire");
      if (w != 1) assert_contains(workers.output(w).c_str(), "worker 1 (127.0.0.1)");
    }
  }
}

static void test_what_is_before_an_error_comes(void **) {
  for (int count = 2; count <= 3; ++count) {
    Workers workers("bad:all", count), own("bad:own", count);
    workers.wait(), own.wait();
    for (int w = 0; w < count; ++w) {
      assert_contains(workers.output(w).c_str(), "40 rows, then ");
      assert_contains(workers.output(w).c_str(), "row 45 is bad");
      // Batches 0 to 4, in turn.
      const int batches = 5 / count + (w < 5 % count ? 1 : 0);
      assert_contains(own.output(w).c_str(), base::concat(8 * batches, " rows, then ").c_str());
    }
  }
}

static void check_refused(const char *scenario, const char *expected) {
  Workers workers(scenario, 2);
  workers.wait();
  for (int w = 0; w < 2; ++w) {
    assert_int_equal(workers.code(w), 1);
    assert_contains(workers.output(w).c_str(), "FAILED_PRECONDITION");
    assert_contains(workers.output(w).c_str(), expected);
  }
}

static void test_training_is_refused(void **) {
  check_refused("train", "cannot train together");
  check_refused("train:one_backend", "worker 1 begins on devices that round differently from those of worker 0");
}

static void test_another_model_with_the_same_weights_is_refused(void **) {
  check_refused("other_model:predict", "worker 1 predicts with a different model");
  check_refused("other_model:predict", "(relu); on worker 0: node");
  check_refused("other_model:evaluate", "worker 1 evaluates with a different model");
  for (const char *const scenario : {"other_level:predict", "other_level:evaluate"})
    check_refused(scenario, "the first difference is determinism: repeatable; on worker 0: determinism: fast");
}

static void test_level_invariant_is_for_devices_of_one_kind(void **) {
  check_refused("invariant:predict", "worker 1 predicts on devices that round differently");
  check_refused("invariant:evaluate", "worker 1 evaluates on devices that round differently");
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_predictions_are_those_of_one_process),
    cmocka_unit_test(tutti::testing::test_evaluations_are_those_of_one_process),
    cmocka_unit_test(tutti::testing::test_own_rows),
    cmocka_unit_test(tutti::testing::test_level_repeatable),
    cmocka_unit_test(tutti::testing::test_each_worker_deals_by_speed),
    cmocka_unit_test(tutti::testing::test_a_worker_killed_while_a_device_computes_is_named),
    cmocka_unit_test(tutti::testing::test_a_device_that_fails_ends_the_call_of_all),
    cmocka_unit_test(tutti::testing::test_what_is_before_an_error_comes),
    cmocka_unit_test(tutti::testing::test_training_is_refused),
    cmocka_unit_test(tutti::testing::test_another_model_with_the_same_weights_is_refused),
    cmocka_unit_test(tutti::testing::test_level_invariant_is_for_devices_of_one_kind),
};

int main(int count, char **arguments) {
  if (tutti::testing::is_worker(count)) return tutti::testing::run_as_worker(arguments);
  assert_ok(tutti::testing::open_test_backend(1));  // where there is none this is skipped, not only in workers
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
