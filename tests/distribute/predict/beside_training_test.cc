// SPDX-License-Identifier: Apache-2.0
//
// Training on connected GPUs of one process while others of the process open, predict, train and close on the same
// ones: nobody waits for ever, and the numbers are those of each alone. On emulated GPUs whose driver waits for a GPU
// where memory is taken, and keeps launches away meanwhile; one rank launches late, so that most of the time an
// operation is half launched.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#include "distribute/fault_case.h"
#include "distribute/predict_case.h"
#include "testing.h"

namespace tutti::testing::beside_training_test {

using impl::distribute::PredictEngine;
using impl::distribute::RunReport;

constexpr int kSteps = 12;

static TrainerOptions small_buckets() {
  TrainerOptions options;
  options.bucket_bytes = 64;
  options.collective_timeout_ms = 60000;
  return options;
}

/// Two GPUs; rank 1 launches this late.
static std::unique_ptr<Trainer> open_lagging(const Model &model, const NetworkCase &network, int lag_ms) {
  const std::string order = "lag 1 " + std::to_string(lag_ms);
  setenv("TUTTI_EMULATED_NCCL", order.c_str(), 1);
  auto trainer = open_trainer(model, assert_ok_value(make_test_strategy(2)), network, small_buckets());
  unsetenv("TUTTI_EMULATED_NCCL");
  assert_string_equal(trainer->describe().find("group")->string().c_str(), "connected devices");
  return trainer;
}

/// A trainer at work in a thread of its own.
class Training {
 public:
  explicit Training(std::unique_ptr<Trainer> trainer)
      : trainer_(std::move(trainer)), thread_([this] {
          ran_ = trainer_->run(kSteps, nullptr).status();
          is_done_.store(true);
        }) {}
  ~Training() { (void)join(); }
  bool is_done() const { return is_done_.load(); }
  Status join() {
    if (thread_.joinable()) thread_.join();
    return ran_;
  }
  Trainer &trainer() { return *trainer_; }

 private:
  const std::unique_ptr<Trainer> trainer_;
  std::atomic<bool> is_done_{false};
  Status ran_;
  std::thread thread_;
};

static std::string bytes_of(const Tensor &tensor) {
  const auto bytes = static_cast<size_t>(tensor.elements()) * impl::tensor::size_bytes(tensor.dtype());
  return {static_cast<const char *>(tensor.data()), bytes};
}

static std::string predict(PredictEngine &engine, const NetworkCase &network, int64_t rows) {
  return bytes_of(
      assert_ok_value(engine.run(std::vector<Tensor>{row_features(rows, network.features)}, nullptr)).front());
}

/// Numbers of rows for which programs are built, most of them twice the one before.
constexpr int64_t kRows[] = {1, 2, 5, 9, 24, 33};

static void predictors_come_and_go(void **) {
  NetworkCase network = clipped_network();
  network.batch_norm = false;  // rows stand alone
  const Model model = assert_ok_value(build_network(network));
  const Model predicting = assert_ok_value(impl::graph::predict_model(model));
  std::map<int64_t, std::string> expected;
  {
    const auto engine = open_engine(predicting, assert_ok_value(make_test_strategy(2)));
    for (const int64_t rows : kRows)
      expected[rows] = predict(*engine, network, rows);
  }
  const State alone = clean_states(model, 2, network, small_buckets(), kSteps).back();

  Training training(open_lagging(model, network, 3));
  int opened = 0;
  for (; !training.is_done(); ++opened) {
    const auto engine = open_engine(predicting, assert_ok_value(make_test_strategy(2)));
    for (const int64_t rows : kRows)
      assert_true(predict(*engine, network, rows) == expected[rows]);
  }
  assert_ok(training.join());
  assert_true(opened >= 2);
  assert_true(state_of(training.trainer()) == alone);
}

static void trainers_come_and_go(void **) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  const std::vector<State> alone = clean_states(model, 2, network, small_buckets(), kSteps);

  Training training(open_lagging(model, network, 3));
  int opened = 0;
  for (; !training.is_done(); ++opened) {
    const auto other = open_lagging(model, network, 1);
    assert_ok(other->run(2, nullptr));
    assert_true(state_of(*other) == alone[2]);
  }
  assert_ok(training.join());
  assert_true(opened >= 1);
  assert_true(state_of(training.trainer()) == alone.back());
}

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(predictors_come_and_go),
      cmocka_unit_test(trainers_come_and_go),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::beside_training_test
