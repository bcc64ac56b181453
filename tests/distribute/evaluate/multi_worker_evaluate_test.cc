// SPDX-License-Identifier: Apache-2.0
//
// Evaluation over several processes against that of one: sums over rows, and what is no sum and must count once.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "base/text.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/worker_strategy.h"
#include "testing.h"

namespace tutti::testing {

static NetworkCase penalty_network() {
  NetworkCase network;
  network.dtype = DType::f64;
  network.optimizer = Optimizer::sgd;
  network.loss = Loss::weighted_mean_with_penalty;
  network.batch_norm = network.dropout = false;
  return network;
}

/// Loss and metrics of a model that was not trained, with a part of the loss that is no sum over rows.
static Result<std::string> evaluate_on(const StrategyRef &strategy, const impl::data::DatasetRef &rows) {
  TUTTI_ASSIGN(const Model model, build_network(penalty_network()));
  TrainerOptions options;
  options.seed = 7;
  TUTTI_ASSIGN(auto trainer, Trainer::open(model, assert_ok_value(make_test_strategy(1)), options));
  TUTTI_TRY(trainer->initialize());
  TUTTI_ASSIGN(const auto version, trainer->publish_weights(false));
  TUTTI_ASSIGN(auto evaluator, distribute::Evaluator::open(model, strategy, {}));
  TUTTI_ASSIGN(auto iterator, rows->make_iterator({}));
  TUTTI_ASSIGN(const distribute::EvaluateReport report, evaluator->run(*version, *iterator, -1, nullptr));
  std::string text = base::concat("step ", report.batches, " examples ", report.examples, "\n");
  for (size_t i = 0; i < report.names.size(); ++i) {
    char word[32];
    snprintf(word, sizeof word, " %a", report.values[i]);
    text += base::concat(report.names[i], word, "\n");
  }
  return text;
}

static impl::data::DatasetRef evaluated_rows(const std::vector<int64_t> &rows, int64_t batch) {
  const NetworkCase network = penalty_network();
  return make_listed_rows(rows, network.features, network.classes, network.dtype, batch);
}

static std::vector<int64_t> first_rows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Where workers have their own rows the first one has none.
static Result<std::string> evaluate_case(const WorkerCall &call) {
  const bool own_input = call.scenario == "evaluate_own";
  TUTTI_ASSIGN(const StrategyRef strategy, worker_strategy(call, 2, own_input, 60000));
  return evaluate_on(strategy, evaluated_rows(own_input ? own_rows(2 - call.worker) : first_rows(37), 5));
}

static int run_as_worker(char **arguments) {
  const WorkerCall call = worker_call(arguments);
  const Result<std::string> text = evaluate_case(call);
  std::ofstream(call.file) << (text.ok() ? *text : text.status().to_string());
  return text.ok() ? 0 : 1;
}

/// The numbers of two texts of evaluate_on().
static void assert_same_numbers(const std::string &text, const std::string &expected) {
  std::istringstream words(text), others(expected);
  std::string word, other;
  int numbers = 0;
  while (words >> word && others >> other) {
    char *end = nullptr;
    const double x = strtod(word.c_str(), &end), y = strtod(other.c_str(), nullptr);
    if (*end != 0) {
      assert_string_equal(word.c_str(), other.c_str());
      continue;
    }
    ++numbers;
    if (!(std::abs(x - y) <= 1e-12 * std::abs(y))) fail_msg("%s where %s was expected", text.c_str(), expected.c_str());
  }
  assert_true(numbers > 2);
}

static void test_workers_evaluate_as_one_process(void **) {
  for (const char *scenario : {"evaluate", "evaluate_own"}) {
    Workers workers(scenario, 3);
    workers.wait();
    const int64_t rows = strcmp(scenario, "evaluate") == 0 ? 37 : 32;
    const auto alone =
        assert_ok_value(evaluate_on(assert_ok_value(make_test_strategy(1)), evaluated_rows(first_rows(rows), 5)));
    const std::string examples = base::concat(" examples ", rows, "\n");
    for (int w = 0; w < 3; ++w) {
      const std::string text = workers.output(w);
      assert_int_equal(workers.code(w), 0);
      assert_string_equal(text.c_str(), workers.output(0).c_str());
      assert_contains(text.c_str(), examples.c_str());
      assert_same_numbers(text.substr(text.find("examples")), alone.substr(alone.find("examples")));
    }
  }
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_workers_evaluate_as_one_process),
};

int main(int count, char **arguments) {
  if (tutti::testing::is_worker(count)) return tutti::testing::run_as_worker(arguments);
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
