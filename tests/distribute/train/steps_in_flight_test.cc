// SPDX-License-Identifier: Apache-2.0
//
// Steps that begin on devices before those before them are judged: a step that goes wrong leaves the weights, slots,
// random numbers, losses and positions that it leaves where every step is judged before the next one begins.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/lazy_backend.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/fault_case.h"
#include "distribute/training_case.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::steps_in_flight_test {

namespace base = impl::base;
namespace data = impl::data;
using impl::distribute::RunReport;
using impl::distribute::Strategy;

constexpr int64_t kBatch = 7;

/// What training over one pass of batches leaves, bad ones passed over.
struct Course {
  State state;
  std::vector<double> losses;
  std::vector<std::string> errors;
  std::string position;
  int64_t step = 0, batches = 0;

  bool operator==(const Course &) const = default;
};

static NetworkCase random_network() {
  NetworkCase network = clipped_network();
  network.dropout = true;  // random numbers by the batch counter
  network.batch_norm = false;
  return network;
}

/// `steps` in each run.
static Course course_of(int32_t replicas, const data::DatasetRef &batches, int64_t steps,
                        const TrainerOptions &options) {
  const NetworkCase network = random_network();
  const Model model = assert_ok_value(build_network(network));
  const auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(assert_ok_value(batches->make_iterator({}))));
  Course course;
  for (bool at_end = false; !at_end;) {
    const Result<RunReport> report = trainer->run(steps, nullptr);
    for (const double loss : trainer->loss_history()) {
      if (std::isfinite(loss)) course.losses.push_back(loss);
    }
    if (!report.ok()) {
      assert_true(course.errors.size() < 10);
      course.errors.push_back(report.status().to_string());
      continue;
    }
    at_end = report->reason == impl::distribute::StopReason::end_of_input;
  }
  assert_true(assert_ok_value(trainer->replicas_are_identical()));
  course.state = state_of(*trainer);
  course.position = assert_ok_value(trainer->input_state()).dump();
  course.step = trainer->step();
  course.batches = trainer->batch_counter();
  return course;
}

static void check_same_course(int32_t replicas, const BadBatches &bad, const TrainerOptions &options,
                              size_t expected_errors) {
  const data::DatasetRef batches = assert_ok_value(batches_with(random_network(), 12, bad));
  const Course alone = course_of(replicas, batches, 1, options);
  assert_int_equal(alone.errors.size(), expected_errors);
  for (const int64_t steps : {int64_t{-1}, int64_t{3}}) {
    const Course together = course_of(replicas, batches, steps, options);
    for (size_t i = 0; i < std::min(alone.errors.size(), together.errors.size()); ++i)
      assert_string_equal(together.errors[i].c_str(), alone.errors[i].c_str());
    assert_int_equal(together.errors.size(), alone.errors.size());
    assert_int_equal(together.step, alone.step);
    assert_int_equal(together.batches, alone.batches);
    assert_string_equal(together.position.c_str(), alone.position.c_str());
    assert_true(together.losses == alone.losses);
    assert_true(together.state == alone.state);
  }
}

static bool has_connected_devices() { return std::getenv("TUTTI_EMULATED_GPUS") != nullptr; }

static std::vector<int32_t> replica_counts() {
  if (has_connected_devices()) return {2, 4};
  return is_test_backend_slow() ? std::vector{1, 2} : std::vector{1, 3};
}

static void test_losses_that_are_not_finite(void **) {
  for (const int32_t replicas : replica_counts()) {
    for (const std::set<int64_t> &numbers : std::vector<std::set<int64_t>>{{0}, {4}, {11}, {4, 5}, {3, 5, 6, 7}})
      check_same_course(replicas, {.not_numbers = numbers}, {}, numbers.size());
  }
}

static void test_data_that_the_device_finds_bad(void **) {
  for (const int32_t replicas : replica_counts()) {
    for (const std::set<int64_t> &numbers : std::vector<std::set<int64_t>>{{0}, {5}, {11}, {5, 6}})
      check_same_course(replicas, {.wrong_labels = numbers}, {}, numbers.size());
  }
}

/// The first replica's, the last one's, and of several in one step and in one behind the other.
static void test_bad_data_of_any_replica(void **) {
  for (const int64_t row : {int64_t{0}, int64_t{3}, kBatch - 1}) {
    check_same_course(replica_counts().back(), {.wrong_labels = {0, 6, 7, 11}, .row = row}, {}, 4);
    check_same_course(replica_counts().back(), {.not_numbers = {2}, .wrong_labels = {1, 3}, .row = row}, {}, 3);
  }
}

static void test_bad_steps_before_unreadable_ones(void **) {
  for (const int32_t replicas : replica_counts()) {
    check_same_course(replicas, {.not_numbers = {4}, .unreadable = {5}}, {}, 2);
    check_same_course(replicas, {.not_numbers = {4}, .unreadable = {6}}, {}, 2);
    check_same_course(replicas, {.wrong_labels = {3, 4}, .unreadable = {2, 5}}, {}, 4);
  }
}

static void test_with_accumulation_and_more_ahead(void **) {
  TrainerOptions options;
  options.accumulation = 2;
  options.device_prefetch = 3;
  for (const int32_t replicas : replica_counts()) {
    check_same_course(replicas, {.not_numbers = {5, 9}}, options, 2);
    check_same_course(replicas, {.wrong_labels = {0, 7, 11}, .row = 5}, options, 3);
  }
}

/// A label is looked up for a metric alone: the loss does not show that it is wrong.
static Model watched_model() {
  GraphBuilder b;
  const NetworkCase network = random_network();
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), network.features});
  const ValueId y = b.label("y", DType::i32, {GraphBuilder::batch()});
  const ValueId target = b.label("t", DType::f32, {GraphBuilder::batch()});
  const ValueId kernel = b.variable("kernel", DType::f32, {network.features, 1});
  const ValueId made = b.reshape(b.matmul(x, kernel), {GraphBuilder::batch()});
  b.set_loss(b.reduce_mean(b.unary("square", b.sub(made, target))));
  const ValueId table = b.constant(std::move(*Tensor::zeros(DType::f32, impl::tensor::Shape({network.classes}))));
  b.add_metric("looked_up", b.reduce_mean(b.op("gather", {table, y})));
  impl::graph::TrainSpec train;
  train.optimizer.learning_rate = b.constant(0.1, DType::f32);
  train.optimizer.op = "sgd_update";
  b.set_train(std::move(train));
  return assert_ok_value(b.finish());
}

static void check_bad_data_that_no_loss_shows(int32_t replicas, int32_t accumulation) {
  const int64_t batches = 8, bad = 3;
  const data::DatasetRef dataset =
      assert_ok_value(batches_with(random_network(), batches, {.wrong_labels = {bad}, .row = kBatch - 1}));
  TrainerOptions options;
  options.accumulation = accumulation;
  const auto trainer =
      assert_ok_value(Trainer::open(watched_model(), assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(assert_ok_value(dataset->make_iterator({}))));
  const int64_t good = bad / accumulation;
  assert_ok(trainer->run(good, nullptr));
  const State before = state_of(*trainer);
  const Result<RunReport> report = trainer->run(-1, nullptr);
  assert_false(report.ok());
  assert_int_equal(static_cast<int>(report.status().code()), static_cast<int>(base::Code::invalid_argument));
  assert_string_equal(report.status().error()->find_detail("step")->c_str(), std::to_string(good + 1).c_str());
  assert_string_equal(report.status().error()->find_detail("rank")->c_str(), std::to_string(replicas - 1).c_str());
  assert_int_equal(trainer->step(), good);
  assert_true(state_of(*trainer) == before);
  assert_true(assert_ok_value(trainer->replicas_are_identical()));
  assert_ok(trainer->run(-1, nullptr));
  assert_int_equal(trainer->step(), batches / accumulation - 1);
  assert_false(state_of(*trainer) == before);
}

static void test_bad_data_that_no_loss_shows(void **) {
  for (const int32_t replicas : replica_counts()) {
    check_bad_data_that_no_loss_shows(replicas, 1);
    check_bad_data_that_no_loss_shows(replicas, 2);
  }
}

/// What the emulated devices were asked for in a run.
struct Asked {
  int64_t operations = 0, stream_waits = 0, event_waits = 0;
  std::vector<int64_t> operations_when_done;  // of each that was done by all ranks
};

static Asked asked_for(Trainer &trainer, int64_t steps) {
  const TemporaryDirectory directory;
  const std::string path = directory / "journal";
  setenv("TUTTI_EMULATED_NCCL_JOURNAL", path.c_str(), 1);
  assert_ok(trainer.run(steps, nullptr));
  unsetenv("TUTTI_EMULATED_NCCL_JOURNAL");
  std::istringstream lines(assert_ok_value(base::read_file(path)));
  Asked asked;
  std::string what;
  for (int64_t number = 0; lines >> what >> number;) {
    if (what == "all_reduce") ++asked.operations;
    if (what == "stream_synchronize") ++asked.stream_waits;
    if (what == "event_synchronize") ++asked.event_waits;
    if (what == "done") asked.operations_when_done.push_back(asked.operations);
  }
  return asked;
}

/// No replica waits until its device has added up the gradients of a step: it has given it the next one before.
static void test_connected_devices_are_not_waited_for(void **) {
  if (!has_connected_devices()) test_skip();
  for (const int32_t replicas : replica_counts()) {
    const NetworkCase network;
    const Model model = assert_ok_value(build_network(network));
    TrainerOptions options;
    options.bucket_bytes = 64;
    options.device_prefetch = 4;
    const auto trainer = open_trainer(model, assert_ok_value(make_test_strategy(replicas)), network, options);
    assert_string_equal(trainer->describe().find("group")->string().c_str(), "connected devices");
    assert_ok(trainer->run(2, nullptr));  // programs are built
    const int64_t steps = 20;
    const Asked few = asked_for(*trainer, steps), many = asked_for(*trainer, 2 * steps);
    assert_int_equal(many.stream_waits, few.stream_waits);
    // For its report, and for its batch before another takes the place; for neither if it is done when asked.
    assert_true(many.event_waits <= 2 * 2 * steps * replicas);
    const int64_t each = static_cast<int64_t>(few.operations_when_done.size()) / steps;
    assert_true(each > 2);
    assert_int_equal(few.operations, each * steps * replicas);
    // Where the next batch is not there yet, a replica looks at its steps first.
    int64_t ahead = 0;
    for (int64_t n = 1; n < steps; ++n)
      ahead += few.operations_when_done[static_cast<size_t>(n * each - 1)] > n * each * replicas ? 1 : 0;
    assert_true(ahead > steps / 4);
  }
}

/// When a step is issued the device has not done the one before it, but the one before that: it always has something to
/// do, and never two steps to come.
static void test_the_next_step_is_issued_while_one_runs(void **) {
  std::vector<int64_t> done;  // steps, when one was issued
  LazySettings settings;
  settings.has_host_memory = false;
  settings.late = Late::everything;
  settings.on_run = [&] {
    done.push_back(LazyBackend::runs());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the next batch is read
  };
  LazyBackend::begin(settings);
  const auto backend = assert_ok_value(impl::backend::Backend::create(LazyBackend::entry, "{}", {}));
  const NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  const auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(Strategy::one_device({backend, 0})), {}));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(
      assert_ok_value(make_endless_batch(8, network.features, network.classes, network.dtype)->make_iterator({}))));
  assert_ok(trainer->run(2, nullptr));
  done.clear();
  const int64_t before = LazyBackend::runs();
  const int64_t steps = 40;
  assert_ok(trainer->run(steps, nullptr));
  assert_int_equal(LazyBackend::runs() - before, steps);
  assert_int_equal(done.size(), steps);
  // A step is done when somebody waits for it. Nobody waits for the last that was issued, but where the next has no
  // batch yet.
  int64_t ahead = 0;
  for (int64_t n = 1; n < steps; ++n) {
    const int64_t missing = n - (done[static_cast<size_t>(n)] - before);
    assert_true(missing == 0 || missing == 1);
    ahead += missing;
  }
  assert_true(ahead > steps / 2);
  assert_int_equal(trainer->describe()["steps_in_flight"].integer(), 2);
}

/// Whether a step counts is one launch behind the loss, however many things that depends on.
static void test_ok_is_one_launch(void **) {
  if (std::strstr(std::getenv("TUTTI_TEST_BACKEND"), "emulated") == nullptr) test_skip();
  for (const int32_t replicas : replica_counts()) {
    const NetworkCase network;
    const Model model = assert_ok_value(build_network(network));
    const auto trainer = open_trainer(model, assert_ok_value(make_test_strategy(replicas)), network, {});
    assert_ok(trainer->run(2, nullptr));
    int64_t launches = 0;
    const base::Json description = trainer->describe();
    for (const base::Json &executable : description.find("executables")->array()) {
      for (const base::Json &kernel : executable.find("report")->find("kernels")->array()) {
        const std::string &op = kernel.find("op")->string();
        assert_string_not_equal(op.c_str(), "all_finite");
        if (op == "logical_and" || op == "equal") ++launches;
      }
    }
    assert_int_equal(launches, 1);
  }
}

static int run_all(int, char **) {
  using namespace tutti::testing;  // NOLINT(google-build-using-namespace)
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_losses_that_are_not_finite),
      cmocka_unit_test(test_data_that_the_device_finds_bad),
      cmocka_unit_test(test_bad_data_of_any_replica),
      cmocka_unit_test(test_bad_data_that_no_loss_shows),
      cmocka_unit_test(test_bad_steps_before_unreadable_ones),
      cmocka_unit_test(test_with_accumulation_and_more_ahead),
      cmocka_unit_test(test_the_next_step_is_issued_while_one_runs),
      cmocka_unit_test(test_connected_devices_are_not_waited_for),
      cmocka_unit_test(test_ok_is_one_launch),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::steps_in_flight_test
