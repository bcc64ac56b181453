// SPDX-License-Identifier: Apache-2.0
//
// Devices that reduce within their programs: a step is one program of all of them where they share the batch evenly,
// and otherwise runs in pieces, over the same weights.
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "base/cancel.h"
#include "distribute/fault_case.h"
#include "distribute/lowering_backend.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::spmd_step_test {

namespace base = impl::base;
namespace data = impl::data;

constexpr int64_t kBatch = 8;

/// Does this backend tell how many programs of all devices have run?
static bool counts_runs() { return std::string_view(std::getenv("TUTTI_TEST_BACKEND")).starts_with("lowering:"); }

static bool is_one_program(const Trainer &trainer) {
  return trainer.describe().find("steps")->string().starts_with("one program");
}

static std::unique_ptr<Trainer> open(const Model &model, int32_t replicas, const data::DatasetRef &batches,
                                     const TrainerOptions &options = {}) {
  std::unique_ptr<Trainer> trainer =
      assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(assert_ok_value(batches->make_iterator({}))));
  return trainer;
}

/// Five batches that two or four devices share evenly, and one that they do not.
static void check_like_one_device(const NetworkCase &network, int32_t replicas) {
  const Model model = assert_ok_value(build_network(network));
  RunCase run{.replicas = 1, .rows = 5 * kBatch + 5, .batch = kBatch, .passes = 2, .options = {}};
  const Trained expected = assert_ok_value(train(model, run, network));
  run.replicas = replicas;
  const int64_t before = lowered_runs();
  const Trained trained = assert_ok_value(train(model, run, network));
  if (counts_runs()) assert_int_equal(lowered_runs() - before, 10);
  assert_true(trained.replicas_identical);
  assert_int_equal(trained.examples, expected.examples);
  assert_true(relative_difference(trained.losses, expected.losses) < 1e-5);
  assert_true(relative_difference(trained, expected) < 1e-4);
}

static void test_as_one_device(void **) {
  NetworkCase plain;
  plain.optimizer = Optimizer::momentum;
  plain.dropout = true;
  // Adam makes full steps of gradients that are nothing but rounding: those of a bias before a batch norm.
  NetworkCase clipped = clipped_network(), averaged = clipped_network();
  clipped.optimizer = Optimizer::momentum;
  averaged.batch_norm = false;
  averaged.average.decay = 0.9;
  for (const int32_t replicas : {2, 4}) {
    check_like_one_device(plain, replicas);
    check_like_one_device(clipped, replicas);
    check_like_one_device(averaged, replicas);
  }
}

/// A step goes wrong for all devices, whoever's data are bad; the others count.
static void check_bad_batch(const BadBatches &bad, base::Code code) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  const auto trainer = open(model, 2, assert_ok_value(batches_with(network, 6, bad)));
  assert_true(is_one_program(*trainer));
  assert_ok(trainer->run(2, nullptr));
  const State before = state_of(*trainer);
  const auto failed = trainer->run(-1, nullptr);
  assert_int_equal(static_cast<int>(failed.status().code()), static_cast<int>(code));
  assert_string_equal(failed.status().error()->find_detail("step")->c_str(), "3");
  if (code == base::Code::invalid_argument)
    assert_string_equal(failed.status().error()->find_detail("rank")->c_str(), bad.row < kBatch / 2 ? "0" : "1");
  assert_int_equal(trainer->step(), 2);
  assert_true(assert_ok_value(trainer->replicas_are_identical()));
  assert_true(state_of(*trainer) == before);
  assert_ok(trainer->run(-1, nullptr));
  assert_int_equal(trainer->step(), 5);
  assert_true(assert_ok_value(trainer->replicas_are_identical()));
}

static void test_bad_batches(void **) {
  for (const int64_t row : {0, 6}) {
    check_bad_batch({.wrong_labels = {2}, .row = row, .batch = kBatch}, base::Code::invalid_argument);
    check_bad_batch({.not_numbers = {2}, .row = row, .batch = kBatch}, base::Code::out_of_range);
  }
}

/// Whenever a run is cancelled, all devices have done the same steps.
static void test_cancelled_runs(void **) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  const data::DatasetRef batches = make_endless_batch(kBatch, network.features, network.classes, network.dtype);
  constexpr int64_t kSteps = 60;
  const auto undisturbed = open(model, 2, batches), disturbed = open(model, 2, batches);
  assert_ok(undisturbed->run(kSteps, nullptr));
  assert_ok(disturbed->run(1, nullptr));
  for (int pause_us = 0; disturbed->step() < kSteps; pause_us += 700) {
    const auto token = base::CancelToken::create();
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
      token->cancel();
    });
    const auto ran = disturbed->run(kSteps - disturbed->step(), token.get());
    canceller.join();
    assert_true(ran.ok() || ran.status().code() == base::Code::cancelled);
    assert_true(assert_ok_value(disturbed->replicas_are_identical()));
  }
  assert_true(state_of(*disturbed) == state_of(*undisturbed));
}

/// What somebody wants to have of the middle of a step.
static void test_steps_in_pieces(void **) {
  const NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  const data::DatasetRef batches = make_endless_batch(kBatch, network.features, network.classes, network.dtype);
  TrainerOptions keeping, accumulating;
  keeping.keep_gradients = true;
  accumulating.accumulation = 2;
  for (const TrainerOptions &options : {keeping, accumulating}) {
    const auto trainer = open(model, 2, batches, options);
    assert_false(is_one_program(*trainer));
    assert_ok(trainer->run(3, nullptr));
  }
  assert_false(is_one_program(*open(model, 1, batches)));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_as_one_device),
    cmocka_unit_test(test_bad_batches),
    cmocka_unit_test(test_cancelled_runs),
    cmocka_unit_test(test_steps_in_pieces),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::spmd_step_test
