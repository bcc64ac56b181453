// SPDX-License-Identifier: Apache-2.0
//
// Batches that are copied to devices ahead of the step: the same bits as without, copies that begin while the step
// before runs and that everybody who must waits for (lazy_backend.h does them as late as can be), positions that count
// no batch that was only copied, and goings-on after stops and errors.
#include <atomic>

#include "backend/backend.h"
#include "backend/lazy_backend.h"
#include "backend/reference/reference_backend.h"
#include "data/element/element.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::device_inputs_test {

namespace backend = impl::backend;
namespace data = impl::data;
using impl::distribute::RunReport;
using impl::distribute::StopReason;
using impl::distribute::Strategy;

/// x, y and w: what a batch copies for each contributor.
constexpr int64_t kInputs = 3;
constexpr int64_t kRows = 50, kBatch = 16, kSteps = 4;

static StrategyRef lazy_strategy(int32_t devices) {
  const std::string options = "{\"logical_devices\": " + std::to_string(devices) + "}";
  const auto backend = assert_ok_value(backend::Backend::create(LazyBackend::entry, options, {}));
  return assert_ok_value(devices == 1 ? Strategy::one_device({backend, 0}) : Strategy::mirrored_all(backend));
}

static std::unique_ptr<data::Iterator> batches(const NetworkCase &network) {
  const auto rows = make_rows(kRows, network.features, network.classes, network.dtype, kBatch);
  return assert_ok_value(rows->make_iterator({}));
}

static std::unique_ptr<Trainer> open_lazy(const Model &model, int32_t devices, TrainerOptions options,
                                          const NetworkCase &network) {
  options.copies_input = true;
  auto trainer = assert_ok_value(Trainer::open(model, lazy_strategy(devices), options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(batches(network)));
  return trainer;
}

static void assert_same(const std::vector<double> &wanted, const std::vector<double> &got) {
  assert_int_equal(wanted.size(), got.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    assert_true(wanted[i] == got[i]);
}

/// The losses of a run on the reference backend that reads the host's memory.
static std::vector<double> plain_losses(const Model &model, int32_t devices, const TrainerOptions &options,
                                        const NetworkCase &network) {
  const std::string devices_wanted = "{\"logical_devices\": " + std::to_string(devices) + "}";
  const auto plain = assert_ok_value(backend::Backend::create(backend::reference::entry, devices_wanted, {}));
  const auto strategy =
      assert_ok_value(devices == 1 ? Strategy::one_device({plain, 0}) : Strategy::mirrored_all(plain));
  const auto trainer = assert_ok_value(Trainer::open(model, strategy, options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(batches(network)));
  assert_ok(trainer->run(-1, nullptr));
  return trainer->loss_history();
}

static void test_copies_change_no_bit(void **) {
  for (const int32_t replicas : {1, 2, 3}) {
    for (const int32_t accumulation : {1, 3}) {
      NetworkCase network;
      network.batch_norm = true;
      network.dropout = true;
      RunCase run;
      run.replicas = replicas;
      run.rows = kRows;
      run.batch = kBatch;
      run.passes = 3;
      run.options.accumulation = accumulation;
      run.options.level = backend::Level::repeatable;
      const Model model = assert_ok_value(build_network(network));
      const Trained plain = assert_ok_value(train(model, run, network));
      run.options.copies_input = true;
      const Trained copied = assert_ok_value(train(model, run, network));
      assert_same(plain.losses, copied.losses);
      for (const auto &[name, values] : plain.variables)
        assert_same(values, copied.variables.at(name));
    }
  }
}

static void test_late_copies_are_waited_for(void **) {
  for (const int32_t replicas : {1, 3}) {
    for (const int32_t accumulation : {1, 3}) {
      NetworkCase network;
      TrainerOptions options;
      options.accumulation = accumulation;
      LazyBackend::begin({});
      const Model model = assert_ok_value(build_network(network));
      const auto trainer = open_lazy(model, replicas, options, network);
      const RunReport report = assert_ok_value(trainer->run(-1, nullptr));
      assert_true(report.reason == StopReason::end_of_input);
      assert_same(plain_losses(model, replicas, options, network), trainer->loss_history());
      const auto counters = trainer->counters().device_inputs;
      assert_int_equal(counters.batches, kSteps * replicas);
      assert_int_equal(counters.bytes, kRows * (network.features * 4 + 4 + 4));
      assert_int_equal(counters.in_time, 0);  // they are never done before somebody waits
      assert_int_equal(LazyBackend::issued(), kInputs * kSteps * replicas);
      assert_int_equal(LazyBackend::done(), LazyBackend::issued());
    }
  }
}

/// The level invariant computes a batch in four parts, here on one device.
static void test_each_contributor_has_its_rows(void **) {
  NetworkCase network;
  TrainerOptions options;
  options.level = backend::Level::invariant;
  LazyBackend::begin({});
  const Model model = assert_ok_value(build_network(network));
  const auto trainer = open_lazy(model, 1, options, network);
  assert_ok(trainer->run(-1, nullptr));
  assert_int_equal(LazyBackend::issued(), kInputs * kSteps * options.logical_replicas);
  assert_int_equal(trainer->counters().device_inputs.bytes, kRows * (network.features * 4 + 4 + 4));
}

static void test_devices_without_host_memory(void **) {
  NetworkCase network;
  network.optimizer = Optimizer::adam;
  LazySettings settings;
  settings.has_host_memory = false;
  LazyBackend::begin(std::move(settings));
  const Model model = assert_ok_value(build_network(network));
  auto trainer = assert_ok_value(Trainer::open(model, lazy_strategy(1), {}));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(batches(network)));
  assert_ok(trainer->run(-1, nullptr));
  assert_int_equal(trainer->counters().device_inputs.batches, kSteps);
  assert_same(plain_losses(model, 1, {}, network), trainer->loss_history());
}

/// Batches go by way of the backend's memory of the host while there is any, and without it where there is none.
static void test_copies_are_staged(void **) {
  const NetworkCase network;
  const int64_t bytes = kRows * (network.features * 4 + 4 + 4);
  for (const int32_t replicas : {1, 3}) {
    for (const int64_t most : {int64_t{1} << 30, int64_t{100}, int64_t{0}}) {
      TrainerOptions options;
      options.accumulation = 2;
      std::atomic<int64_t> asked{0};
      LazySettings settings;
      settings.has_host_memory = false;
      settings.has_transfer_memory = [&](uint64_t wanted) {
        asked.fetch_add(1);
        return static_cast<int64_t>(wanted) <= most;
      };
      LazyBackend::begin(std::move(settings));
      const Model model = assert_ok_value(build_network(network));
      if (replicas > 1 && most < 1000) continue;  // replicas combine in such memory
      auto trainer = assert_ok_value(Trainer::open(model, lazy_strategy(replicas), options));
      assert_ok(trainer->initialize());
      assert_ok(trainer->attach_input(batches(network)));
      assert_ok(trainer->run(-1, nullptr));
      const auto counters = trainer->counters().device_inputs;
      assert_int_equal(counters.bytes, bytes);
      assert_int_equal(counters.staged_bytes, most > 1000 ? bytes : 0);
      assert_true(asked.load() > 0);
      assert_same(plain_losses(model, replicas, options, network), trainer->loss_history());
    }
  }
}

/// No step ends before the copies of the next ones have begun, as many as shall be ahead and are left.
static void test_copies_begin_while_a_step_runs(void **) {
  NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  for (int32_t depth = 1; depth <= 4; ++depth) {
    LazyBackend::begin({});
    TrainerOptions options;
    options.device_prefetch = depth;
    const auto trainer = open_lazy(model, 1, options, network);
    std::atomic<int64_t> step{0}, overlapped{0};
    LazySettings settings;
    settings.on_run = [&] {
      const int64_t wanted = std::min(step.fetch_add(1) + 1 + depth, kSteps);
      if (LazyBackend::wait_issued(kInputs * wanted)) ++overlapped;
    };
    LazyBackend::begin(std::move(settings));
    assert_ok(trainer->run(kSteps, nullptr));
    assert_same(plain_losses(model, 1, options, network), trainer->loss_history());
    LazyBackend::begin({});
    assert_int_equal(step.load(), kSteps);  // a step is one run of a program here
    assert_int_equal(overlapped.load(), kSteps);
  }
}

/// All batches ahead get their memory with the first one: the first step that runs finds it there.
static void test_memory_for_all_steps_ahead_comes_first(void **) {
  NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  for (const int32_t depth : {1, 3}) {
    for (const bool has_host_memory : {true, false}) {
      std::atomic<bool> runs{false};
      std::atomic<int64_t> before{0}, late{0};
      LazySettings settings;
      settings.has_host_memory = has_host_memory;
      settings.on_run = [&] { runs.store(true); };
      const auto count = [&](uint64_t) {
        (runs.load() ? late : before).fetch_add(1);
        return true;
      };
      settings.has_memory = count;
      settings.has_transfer_memory = count;
      LazyBackend::begin(std::move(settings));
      TrainerOptions options;
      options.device_prefetch = depth;
      options.accumulation = 2;
      options.copies_input = true;
      const auto trainer = assert_ok_value(Trainer::open(model, lazy_strategy(1), options));
      assert_ok(trainer->initialize());
      const auto batch = make_endless_batch(kBatch, network.features, network.classes, network.dtype);
      assert_ok(trainer->attach_input(assert_ok_value(batch->make_iterator({}))));
      runs.store(false);
      before.store(0);
      late.store(0);
      assert_ok(trainer->run(1, nullptr));
      runs.store(false);
      assert_true(before.load() >= kInputs * 2 * (depth + 1));
      const int64_t first = before.load() + late.load();
      assert_ok(trainer->run(3 * depth, nullptr));
      assert_int_equal(before.load() + late.load(), first);
    }
  }
  LazyBackend::begin({});
}

static void test_a_stopped_run_loses_no_batch(void **) {
  NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  LazyBackend::begin({});
  const auto trainer = open_lazy(model, 1, {}, network);
  std::atomic<int64_t> step{0};
  LazySettings settings;
  settings.on_run = [&] {
    if (step.fetch_add(1) != 1) return;
    // The next batch is on its way to the device when the run ends.
    (void)LazyBackend::wait_issued(kInputs * 3);
    trainer->request_stop();
  };
  LazyBackend::begin(std::move(settings));
  const RunReport first = assert_ok_value(trainer->run(-1, nullptr));
  LazyBackend::begin({});
  assert_true(first.reason == StopReason::stopped);
  assert_int_equal(first.steps, 2);
  std::vector<double> losses = trainer->loss_history();

  // Its position is behind the second batch, and so goes on another walk.
  const auto again = batches(network);
  assert_ok(again->restore(assert_ok_value(trainer->input_state())));
  data::Element element;
  assert_true(assert_ok_value(again->next(element)));
  const auto value = static_cast<double>(element.components[0].data_as<float>()[0]);
  assert_true(value == static_cast<double>(static_cast<float>(row_feature(2 * kBatch, 0))));

  // The trainer itself goes on with what it has, then with a new input.
  assert_ok(trainer->run(-1, nullptr));
  const std::vector<double> rest = trainer->loss_history();
  losses.insert(losses.end(), rest.begin(), rest.end());
  const auto whole = open_lazy(model, 1, {}, network);
  assert_ok(whole->run(-1, nullptr));
  assert_same(whole->loss_history(), losses);
}

static void test_inputs_are_replaced_while_they_are_copied(void **) {
  NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  LazyBackend::begin({});
  auto trainer = open_lazy(model, 2, {}, network);
  std::atomic<int64_t> runs{0};
  LazySettings settings;
  settings.on_run = [&] {
    if (runs.fetch_add(1) == 0) (void)LazyBackend::wait_issued(kInputs * 2 * 2);
    trainer->request_stop();
  };
  LazyBackend::begin(std::move(settings));
  assert_ok(trainer->run(-1, nullptr));
  assert_true(LazyBackend::issued() > LazyBackend::done());
  assert_ok(trainer->attach_input(batches(network)));
  assert_int_equal(LazyBackend::issued(), LazyBackend::done());
  (void)trainer->run(-1, nullptr);
  trainer.reset();  // waits for what is under way
  assert_int_equal(LazyBackend::issued(), LazyBackend::done());
  LazyBackend::begin({});
}

static void test_a_batch_without_memory_is_tried_again(void **) {
  NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  LazyBackend::begin({});
  const auto trainer = open_lazy(model, 2, {}, network);
  LazySettings settings;
  settings.has_memory = [](uint64_t) { return false; };
  LazyBackend::begin(std::move(settings));
  const auto failed = trainer->run(-1, nullptr);
  assert_true(failed.status().code() == impl::base::Code::resource_exhausted);
  assert_error_contains(failed, "copying the batch to device");
  LazyBackend::begin({});
  const RunReport report = assert_ok_value(trainer->run(-1, nullptr));
  assert_int_equal(report.steps, kSteps);
  const auto whole = open_lazy(model, 2, {}, network);
  assert_ok(whole->run(-1, nullptr));
  assert_same(whole->loss_history(), trainer->loss_history());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_copies_change_no_bit),
    cmocka_unit_test(test_late_copies_are_waited_for),
    cmocka_unit_test(test_each_contributor_has_its_rows),
    cmocka_unit_test(test_devices_without_host_memory),
    cmocka_unit_test(test_copies_are_staged),
    cmocka_unit_test(test_copies_begin_while_a_step_runs),
    cmocka_unit_test(test_memory_for_all_steps_ahead_comes_first),
    cmocka_unit_test(test_a_stopped_run_loses_no_batch),
    cmocka_unit_test(test_inputs_are_replaced_while_they_are_copied),
    cmocka_unit_test(test_a_batch_without_memory_is_tried_again),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::device_inputs_test
