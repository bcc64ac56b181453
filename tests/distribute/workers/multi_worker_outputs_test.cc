// SPDX-License-Identifier: Apache-2.0
//
// Outputs of the last step's rows where several processes train together: each has those of its own rows, in the order
// of one process's, and one without rows says so.
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "distribute/training_case.h"
#include "distribute/worker_strategy.h"
#include "testing.h"

namespace tutti::testing {

constexpr int kDevices = 2;
constexpr int64_t kRows = 13, kBatch = 6;  // the last batch has one row

static Result<std::unique_ptr<Trainer>> open_trainer(const StrategyRef &strategy) {
  NetworkCase network;
  network.dtype = DType::f64;
  TUTTI_ASSIGN(const Model model, build_network(network));
  TrainerOptions options;
  options.seed = 7;
  options.keep_outputs = true;
  options.collective_timeout_ms = 60000;
  TUTTI_ASSIGN(auto trainer, Trainer::open(model, strategy, options));
  TUTTI_TRY(trainer->initialize());
  TUTTI_ASSIGN(auto iterator,
               make_rows(kRows, network.features, network.classes, network.dtype, kBatch)->make_iterator({}));
  TUTTI_TRY(trainer->attach_input(std::move(iterator)));
  return trainer;
}

/// A line for each step: the numbers of this process's rows, or why there are none.
static Result<std::string> outputs_of(Trainer &trainer) {
  std::string text;
  for (int64_t row = 0; row < kRows; row += kBatch) {
    TUTTI_TRY(trainer.run(1, nullptr).status());
    const Result<Tensor> logits = trainer.output("logits");
    if (!logits.ok()) {
      text += logits.status().to_string() + "\n";
      continue;
    }
    for (const double number : to_doubles(*logits)) {
      char word[32];
      snprintf(word, sizeof word, "%a ", number);
      text += word;
    }
    text += "\n";
  }
  return text;
}

static Result<std::string> train_on(const WorkerCall &call) {
  TUTTI_ASSIGN(const StrategyRef strategy, worker_strategy(call, kDevices, false, 60000));
  TUTTI_ASSIGN(auto trainer, open_trainer(strategy));
  return outputs_of(*trainer);
}

static int run_as_worker(char **arguments) {
  const WorkerCall call = worker_call(arguments);
  const Result<std::string> text = train_on(call);
  std::ofstream(call.file) << (text.ok() ? *text : text.status().to_string());
  return text.ok() ? 0 : 1;
}

static std::vector<double> numbers_in(const std::string &line) {
  std::istringstream words(line);
  std::vector<double> numbers;
  for (std::string word; words >> word;)
    numbers.push_back(strtod(word.c_str(), nullptr));
  return numbers;
}

static void check_workers(int count) {
  Workers workers("outputs", count);
  workers.wait();
  auto alone = assert_ok_value(open_trainer(assert_ok_value(make_test_strategy(1))));
  std::istringstream expected(assert_ok_value(outputs_of(*alone)));
  std::vector<std::istringstream> got;
  for (int w = 0; w < count; ++w) {
    assert_int_equal(workers.code(w), 0);
    got.emplace_back(workers.output(w));
  }
  int without_rows = 0;
  for (std::string line; std::getline(expected, line);) {
    std::vector<double> gathered;
    for (std::istringstream &output : got) {
      std::string part;
      assert_true(static_cast<bool>(std::getline(output, part)));
      if (part.starts_with("FAILED_PRECONDITION: this process had no rows in the last step")) {
        ++without_rows;
        continue;
      }
      const std::vector<double> numbers = numbers_in(part);
      gathered.insert(gathered.end(), numbers.begin(), numbers.end());
    }
    assert_true(relative_difference(gathered, numbers_in(line)) <= 1e-8);
  }
  assert_int_equal(without_rows, count - 1);  // in the last step
}

static void test_each_worker_has_those_of_its_rows(void **) {
  check_workers(2);
  check_workers(3);
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_each_worker_has_those_of_its_rows),
};

int main(int count, char **arguments) {
  if (tutti::testing::is_worker(count)) return tutti::testing::run_as_worker(arguments);
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
