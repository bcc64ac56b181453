// SPDX-License-Identifier: Apache-2.0
//
// What training is said to take of memory against what it takes, as the memory budget counts it; and the batch that is
// found for a budget against budgets in which it trains and does not.
#include "distribute/train/memory_estimate.h"

#include <cmath>
#include <cstdlib>

#include "backend/reference/reference_backend.h"
#include "base/temporary_directory.h"
#include "data/call/device_graph.h"
#include "data/graph/backend_graph_runner.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::memory_estimate_test {

namespace backend = impl::backend;
using impl::distribute::MemoryEstimate;
using impl::distribute::MemoryEstimator;
using impl::distribute::Strategy;

namespace {

constexpr int64_t kMost = int64_t{1} << 40;
constexpr int64_t kRows = 96;

struct Budgeted {
  std::shared_ptr<backend::MemoryBudget> budget;
  StrategyRef strategy;
};

Budgeted open_with_budget(int32_t devices, int64_t bytes) {
  backend::HostOptions host;
  host.memory = std::make_shared<backend::MemoryBudget>(bytes);
  const auto opened = assert_ok_value(open_test_backend(devices, host));
  return {host.memory,
          assert_ok_value(devices == 1 ? Strategy::one_device({opened, 0}) : Strategy::mirrored_all(opened))};
}

NetworkCase network_of(int64_t hidden) {
  NetworkCase network;
  network.features = 20;
  network.hidden = hidden;
  network.optimizer = Optimizer::adam;
  return network;
}

impl::data::DatasetRef rows_of(const NetworkCase &network, int64_t batch) {
  return make_rows(std::max(kRows, batch), network.features, network.classes, network.dtype, batch);
}

/// Steps on two full batches, or the first error.
Status train_two_steps(const Model &model, const StrategyRef &strategy, const TrainerOptions &options,
                       const NetworkCase &network, int64_t batch, int64_t *in_use,
                       const backend::MemoryBudget &budget) {
  TUTTI_ASSIGN(const auto trainer, Trainer::open(model, strategy, options));
  TUTTI_TRY(trainer->initialize());
  TUTTI_ASSIGN(auto iterator,
               make_endless_batch(batch, network.features, network.classes, network.dtype)->make_iterator({}));
  TUTTI_TRY(trainer->attach_input(std::move(iterator)));
  TUTTI_TRY(trainer->run(2, nullptr));
  *in_use = budget.in_use();
  return Status();
}

void expect_near(const MemoryEstimate &estimate, int64_t in_use, const std::string &what) {
  const auto difference = static_cast<double>(std::llabs(estimate.total() - in_use));
  if (difference <= 0.1 * static_cast<double>(in_use)) return;
  fail_msg("%s: estimated %s, %lld bytes in use", what.c_str(), estimate.to_json().dump().c_str(),
           static_cast<long long>(in_use));
}

std::unique_ptr<MemoryEstimator> open_estimator(const Model &model, const StrategyRef &strategy,
                                                const TrainerOptions &options, const NetworkCase &network) {
  return assert_ok_value(MemoryEstimator::open(model, strategy, options, rows_of(network, kRows)->spec()));
}

void estimates_are_what_is_taken(void **) {
  const NetworkCase network = network_of(is_test_backend_slow() ? 200 : 700);
  const Model model = assert_ok_value(build_network(network));
  for (const int32_t devices : {1, 2, 3}) {
    for (const int32_t accumulation : {1, 2}) {
      for (const int64_t batch : {int64_t{5}, kRows}) {
        TrainerOptions options;
        options.accumulation = accumulation;
        const Budgeted tested = open_with_budget(devices, kMost);
        const MemoryEstimate estimate =
            assert_ok_value(open_estimator(model, tested.strategy, options, network)->estimate(batch));
        assert_int_equal(tested.budget->in_use(), 0);
        assert_int_equal(estimate.devices.size(), devices);
        assert_true(estimate.room().bytes >= 0);
        int64_t in_use = 0;
        assert_ok(train_two_steps(model, tested.strategy, options, network, batch, &in_use, *tested.budget));
        expect_near(estimate, in_use, impl::base::concat(devices, " devices, ", accumulation, " x ", batch, " rows"));
      }
    }
  }
}

/// One more number for each weight that is trained.
void averages_are_counted(void **) {
  NetworkCase network = network_of(300);
  const Budgeted tested = open_with_budget(2, kMost);
  const auto slots = [&] {
    const Model model = assert_ok_value(build_network(network));
    const MemoryEstimate estimate = assert_ok_value(open_estimator(model, tested.strategy, {}, network)->estimate(9));
    int64_t in_use = 0;
    assert_ok(train_two_steps(model, tested.strategy, {}, network, 9, &in_use, *tested.budget));
    expect_near(estimate, in_use, "averages");
    return estimate.devices[0].slots;
  };
  const auto adam = static_cast<double>(slots());
  network.average.decay = 0.99;
  const auto with_averages = static_cast<double>(slots());
  assert_true(std::fabs(with_averages - 1.5 * adam) < 0.02 * with_averages);
}

/// Gradients of several batches lie in f32 beside what is sent of them.
void accumulated_gradients_are_counted(void **) {
  const NetworkCase network = network_of(300);
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options;
  options.gradient_dtype = DType::bf16;
  options.lowering = impl::distribute::Lowering::replicated;
  options.accumulation = 3;
  const Budgeted tested = open_with_budget(2, kMost);
  const MemoryEstimate estimate =
      assert_ok_value(open_estimator(model, tested.strategy, options, network)->estimate(9));
  int64_t in_use = 0;
  assert_ok(train_two_steps(model, tested.strategy, options, network, 9, &in_use, *tested.budget));
  expect_near(estimate, in_use, "gradients that are rounded after three batches");
}

void logical_replicas_are_counted(void **) {
  const NetworkCase network = network_of(300);
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options;
  options.level = backend::Level::invariant;
  options.logical_replicas = 4;
  const Budgeted tested = open_with_budget(2, kMost);
  const MemoryEstimate estimate =
      assert_ok_value(open_estimator(model, tested.strategy, options, network)->estimate(30));
  int64_t in_use = 0;
  assert_ok(train_two_steps(model, tested.strategy, options, network, 30, &in_use, *tested.budget));
  expect_near(estimate, in_use, "two logical replicas on each device");
}

/// Where logits are a good deal of what is taken; those of each micro-batch are kept.
void kept_outputs_are_counted(void **) {
  NetworkCase network = network_of(1);
  network.classes = 64;
  const Model model = assert_ok_value(build_network(network));
  constexpr int64_t kBatch = 300;
  for (const int32_t devices : {1, 2}) {
    for (const int32_t accumulation : {1, 3}) {
      TrainerOptions options;
      options.keep_outputs = true;
      options.accumulation = accumulation;
      const Budgeted tested = open_with_budget(devices, kMost);
      const MemoryEstimate estimate =
          assert_ok_value(open_estimator(model, tested.strategy, options, network)->estimate(kBatch));
      int64_t in_use = 0;
      assert_ok(train_two_steps(model, tested.strategy, options, network, kBatch, &in_use, *tested.budget));
      expect_near(estimate, in_use, impl::base::concat("outputs of ", accumulation, " x ", devices));
      const int64_t outputs = kBatch / devices * accumulation * network.classes * static_cast<int64_t>(sizeof(float));
      for (const auto &device : estimate.devices)
        assert_int_equal(device.outputs, outputs);
      assert_true(outputs * devices > estimate.total() / 5);
      options.keep_outputs = false;
      const MemoryEstimate without =
          assert_ok_value(open_estimator(model, tested.strategy, options, network)->estimate(kBatch));
      assert_int_equal(without.devices[0].outputs, 0);
      // Rows that the model shows are kept as outputs are.
      Model shown = model;
      shown.summaries.push_back({.kind = impl::graph::SummaryKind::histogram,
                                 .name = "shown",
                                 .value = model.outputs.begin()->second,
                                 .has_rows = true});
      options.shows_rows = true;
      const MemoryEstimate with_rows =
          assert_ok_value(open_estimator(shown, tested.strategy, options, network)->estimate(kBatch));
      assert_int_equal(with_rows.devices[0].outputs, outputs);
    }
  }
}

/// Where batches are a good deal of what is taken.
void steps_ahead_are_counted(void **) {
  const NetworkCase network = network_of(1);
  const Model model = assert_ok_value(build_network(network));
  int64_t of_each = 0;
  for (const int32_t depth : {1, 4}) {
    TrainerOptions options;
    options.copies_input = true;
    options.device_prefetch = depth;
    const Budgeted tested = open_with_budget(1, kMost);
    const MemoryEstimate estimate =
        assert_ok_value(open_estimator(model, tested.strategy, options, network)->estimate(500));
    int64_t in_use = 0;
    assert_ok(train_two_steps(model, tested.strategy, options, network, 500, &in_use, *tested.budget));
    expect_near(estimate, in_use, impl::base::concat(depth, " steps ahead"));
    const int64_t in_flight = tested.strategy->backend()->has_host_memory() ? 1 : 2;
    if (depth == 1) of_each = estimate.devices[0].input / (in_flight + 1);
    assert_int_equal(estimate.devices[0].input, of_each * (in_flight + depth));
    assert_true(estimate.devices[0].input > estimate.total() / 4);
  }
}

constexpr int64_t kSide = 12, kPixels = kSide * kSide;

/// Images x of u8, that a map on the device makes numbers of, and what else build_network() takes.
impl::data::DatasetRef images_of(int64_t batch) {
  GraphBuilder b;
  const ValueId x = b.op("random_flip", {b.input("x", DType::u8, {GraphBuilder::batch(), kSide, kSide, 1})});
  const ValueId scaled = b.op("normalize_image", {x}, {{"mean", std::vector<double>{0.4}}, {"scale", 1 / 255.0}});
  b.set_result("x", b.reshape(scaled, {GraphBuilder::batch(), kPixels}));
  impl::data::TransformArguments arguments;
  arguments.graph = std::make_shared<const impl::graph::Graph>(assert_ok_value(b.finish_graph()));
  impl::data::Pipeline pipeline(
      impl::data::from_slices({{"x", assert_ok_value(Tensor::zeros(DType::u8, {batch, kSide, kSide, 1}))},
                               {"y", assert_ok_value(Tensor::zeros(DType::i32, {batch})), impl::data::Role::label},
                               {"w", assert_ok_value(Tensor::zeros(DType::f32, {batch})), impl::data::Role::weight},
                               {"t", assert_ok_value(Tensor::zeros(DType::f32, {batch})), impl::data::Role::label}}));
  pipeline.repeat().batch(batch).apply("map", {{"on_device", true}}, std::move(arguments));
  return assert_ok_value(pipeline.build());
}

/// What goes into a map on devices, what it draws, and what lies between are a good deal of what is taken here.
void maps_on_devices_are_counted(void **) {
  NetworkCase network = network_of(1);
  network.features = kPixels;
  const Model model = assert_ok_value(build_network(network));
  for (const int32_t devices : {1, 2}) {
    TrainerOptions options;
    options.copies_input = true;
    const Budgeted tested = open_with_budget(devices, kMost);
    const auto dataset = images_of(300);
    const auto open = [&](const impl::data::Dataset *map) {
      return assert_ok_value(MemoryEstimator::open(model, tested.strategy, options, dataset->spec(), map));
    };
    const auto *const map = impl::data::trailing_device_map(*dataset);
    assert_non_null(map);
    const MemoryEstimate estimate = assert_ok_value(open(map)->estimate(300));
    // Images of u8, at least.
    const MemoryEstimate without = assert_ok_value(open(nullptr)->estimate(300));
    assert_true(estimate.total() >= without.total() + 300 * kPixels);
    assert_int_equal(tested.budget->in_use(), 0);
    const auto trainer = assert_ok_value(Trainer::open(model, tested.strategy, options));
    assert_ok(trainer->initialize());
    impl::data::IteratorContext context;
    const auto host = assert_ok_value(backend::Backend::create(backend::reference::entry, "{}", {}));
    context.graphs = impl::data::BackendGraphRunner::create(assert_ok_value(host->open_device(0)));
    assert_string_equal(trainer->leave_map(*dataset, context).c_str(), "");
    assert_ok(trainer->attach_input(assert_ok_value(dataset->make_iterator(context))));
    assert_ok(trainer->run(3, nullptr));
    expect_near(estimate, tested.budget->in_use(), impl::base::concat("a map on ", devices, " devices"));
  }
}

/// What a row takes in each of the next cases at least: the values of its hidden units.
constexpr int64_t kHiddenRowBytes = 100 * sizeof(float);

void the_largest_batch_fits_a_budget(void **) {
  const NetworkCase network = network_of(100);
  const Model model = assert_ok_value(build_network(network));
  const TrainerOptions options;
  const auto free = open_with_budget(1, kMost);
  const auto of_all = open_estimator(model, free.strategy, options, network);
  assert_int_equal(assert_ok_value(of_all->largest_batch(77)), 77);
  const int64_t wanted = assert_ok_value(of_all->estimate(300)).total();
  const Budgeted tested = open_with_budget(1, wanted);
  const auto estimator = open_estimator(model, tested.strategy, options, network);
  const int64_t rows = assert_ok_value(estimator->largest_batch(100000));
  assert_true(assert_ok_value(estimator->estimate(rows)).room().bytes >= 0);
  // The algorithms of a library have memory of their own, which other numbers of rows may need more of, or none.
  if (!has_test_backend_libraries()) {
    assert_true(rows >= 290 && rows <= 310);
    assert_true(assert_ok_value(estimator->estimate(rows + rows / 32 + 1)).room().bytes < 0);
  }
  assert_int_equal(assert_ok_value(estimator->largest_batch(17)), 17);
  // What does not fit by far is refused by training, too; what was found trains.
  int64_t in_use = 0;
  const int64_t too_many = has_test_backend_libraries() ? wanted / kHiddenRowBytes : 2 * rows;
  assert_int_equal(train_two_steps(model, tested.strategy, options, network, too_many, &in_use, *tested.budget).code(),
                   impl::base::Code::resource_exhausted);
  const Budgeted roomy = open_with_budget(1, wanted + wanted / 10);
  assert_ok(train_two_steps(model, roomy.strategy, options, network, rows, &in_use, *roomy.budget));
}

/// Attaches endless batches of so many rows, and runs two steps.
Status run_two_steps(Trainer &trainer, const NetworkCase &network, int64_t batch) {
  const auto dataset = make_endless_batch(batch, network.features, network.classes, network.dtype);
  TUTTI_ASSIGN(auto iterator, dataset->make_iterator({}));
  TUTTI_TRY(trainer.attach_input(std::move(iterator)));
  return trainer.run(2, nullptr).status();
}

/// Batches grow to the largest that fits, whatever was there before; what does not fit leaves the others as they were.
void larger_batches_take_the_memory_of_smaller_ones(void **) {
  const NetworkCase network = network_of(100);
  const Model model = assert_ok_value(build_network(network));
  const auto free = open_with_budget(1, kMost);
  const auto of_all = open_estimator(model, free.strategy, {}, network);
  // With a library more rows may need less; so many rows have to need more.
  const int64_t wanted = std::max(assert_ok_value(of_all->estimate(250)).total(),
                                  assert_ok_value(of_all->estimate(300)).total()),
                needed = wanted * 105 / 100;
  const int64_t too_many = has_test_backend_libraries() ? needed / kHiddenRowBytes : 600;
  const Budgeted tested = open_with_budget(1, needed);
  const auto trainer = assert_ok_value(Trainer::open(model, tested.strategy, {}));
  assert_ok(trainer->initialize());
  assert_ok(run_two_steps(*trainer, network, 250));
  const int64_t of_smaller = tested.budget->in_use();
  assert_ok(run_two_steps(*trainer, network, 300));
  if (!has_test_backend_libraries()) assert_true(tested.budget->in_use() > of_smaller);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Status status = run_two_steps(*trainer, network, too_many);
    assert_int_equal(status.code(), impl::base::Code::resource_exhausted);
    assert_error_contains(status, impl::base::concat("memory budget of ", needed, " bytes"));
    assert_error_contains(trainer->run(2, nullptr), "memory budget");  // the batch is given again
    assert_ok(run_two_steps(*trainer, network, attempt == 0 ? 250 : 300));
  }
}

void what_cannot_be_told_is_said(void **) {
  const NetworkCase network = network_of(100);
  const Model model = assert_ok_value(build_network(network));
  const Budgeted tested = open_with_budget(1, 2000);
  const auto estimator = open_estimator(model, tested.strategy, {}, network);
  const auto least = estimator->largest_batch(10);
  assert_int_equal(least.code(), impl::base::Code::resource_exhausted);
  assert_error_contains(least, "batches of 1 row needs");
  assert_error_contains(least, "more than the memory budget has");
  assert_error_contains(estimator->estimate(0), "expected at least 1");
  assert_error_contains(estimator->largest_batch(0), "expected 1 to 1073741824");
  impl::data::ElementSpec spec = rows_of(network, kRows)->spec();
  spec.components[0].dims[1] = impl::graph::Dim::symbol("length");
  const auto unknown = assert_ok_value(MemoryEstimator::open(model, tested.strategy, {}, spec));
  assert_error_contains(unknown->estimate(3), "dimension 1 is known only from the data");
  spec.batch_size = 0;
  assert_error_contains(MemoryEstimator::open(model, tested.strategy, {}, spec), "single elements");
}

}  // namespace
static int run_all(int, char **) {
  // What a library's algorithms take depends on which were fastest: the training is to find those of the estimate.
  const TemporaryDirectory plans;
  setenv("TUTTI_CACHE_DIR", plans.path().c_str(), 1);
  const CMUnitTest tests[] = {
      cmocka_unit_test(estimates_are_what_is_taken),
      cmocka_unit_test(accumulated_gradients_are_counted),
      cmocka_unit_test(logical_replicas_are_counted),
      cmocka_unit_test(kept_outputs_are_counted),
      cmocka_unit_test(steps_ahead_are_counted),
      cmocka_unit_test(maps_on_devices_are_counted),
      cmocka_unit_test(the_largest_batch_fits_a_budget),
      cmocka_unit_test(what_cannot_be_told_is_said),
      cmocka_unit_test(averages_are_counted),
      cmocka_unit_test(larger_batches_take_the_memory_of_smaller_ones),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::memory_estimate_test
