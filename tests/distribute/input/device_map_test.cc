// SPDX-License-Identifier: Apache-2.0
//
// Maps that devices run (on_device): the same bits as on the host in training, evaluation and prediction, whichever
// part of a batch a device gets; positions that either way goes on from; and the host where devices cannot.
#include "distribute/input/device_map.h"

#include <atomic>

#include "backend/lazy_backend.h"
#include "backend/reference/reference_backend.h"
#include "data/graph/backend_graph_runner.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/predict_case.h"
#include "testing.h"

namespace tutti::testing::device_map_test {

namespace backend = impl::backend;
namespace data = impl::data;
using impl::distribute::Evaluator;
using impl::distribute::PredictBatch;
using impl::distribute::PredictEngine;

constexpr int64_t kRows = 43, kBatch = 16, kSteps = 3;  // the last batch has 11 rows, no multiple of 2 or 3
constexpr int64_t kHeight = 5, kWidth = 4, kChannels = 3, kFeatures = 18;

static NetworkCase small_network() {
  NetworkCase network;
  network.features = kFeatures;
  return network;
}

enum class Chain { augmented, mixed, multiplied, refused };

/// Products with long sums of x.
static ValueId multiply(GraphBuilder &b, ValueId x) {
  constexpr int64_t kPixels = kHeight * kWidth * kChannels, kCopies = 40;
  const ValueId some = b.scale(b.reshape(b.cast(x, DType::f32), {GraphBuilder::batch(), kPixels}), 1 / 255.0);
  Tensor kernel = assert_ok_value(Tensor::zeros(DType::f32, {kPixels * kCopies, kFeatures}));
  for (int64_t i = 0; i < kernel.elements(); ++i)
    kernel.mutable_data_as<float>()[i] = static_cast<float>(row_feature(i, 1) / kCopies);
  return b.matmul(b.concat(GraphBuilder::Values(kCopies, some), 1), b.constant(kernel));
}

static impl::graph::SealedGraph graph_of(Chain chain) {
  GraphBuilder b;
  ValueId x = b.input("x", DType::u8, {GraphBuilder::batch(), kHeight, kWidth, kChannels});
  if (chain == Chain::multiplied) {
    b.set_result("x", multiply(b, x));
    return std::make_shared<const impl::graph::Graph>(assert_ok_value(b.finish_graph()));
  }
  if (chain == Chain::refused) x = b.op("random_rotate", {x}, {{"degrees", 20.0}});
  x = b.op("random_crop", {x}, {{"size", std::vector<int64_t>{4, 4}}, {"padding", int64_t{1}}});
  x = b.op("random_flip", {x});
  x = b.op("resize", {x}, {{"size", std::vector<int64_t>{2, 3}}});
  x = b.op("normalize_image", {x}, {{"mean", std::vector<double>{0.4, 0.5, 0.6}}, {"scale", 1 / 255.0}});
  if (chain == Chain::mixed) {
    const ValueId w = b.input("w", DType::f32, {GraphBuilder::batch()});
    const auto mixed = b.op_n("mixup", {x, w}, {{"alpha", 0.4}}, 2);
    x = mixed[0];
    b.set_result("w", mixed[1]);
  }
  b.set_result("x", b.reshape(x, {GraphBuilder::batch(), kFeatures}));
  return std::make_shared<const impl::graph::Graph>(assert_ok_value(b.finish_graph()));
}

/// Images x, labels y, weights w and targets t, as build_network() takes them once the map has run.
static data::DatasetRef images(Chain chain, bool on_device = true, int64_t batch = kBatch) {
  Tensor x = assert_ok_value(Tensor::zeros(DType::u8, {kRows, kHeight, kWidth, kChannels}));
  for (int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data_as<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + i / 60 * 11);
  Tensor y = assert_ok_value(Tensor::zeros(DType::i32, {kRows})),
         w = assert_ok_value(Tensor::zeros(DType::f32, {kRows}));
  Tensor t = assert_ok_value(Tensor::zeros(DType::f32, {kRows}));
  for (int64_t row = 0; row < kRows; ++row) {
    y.mutable_data_as<int32_t>()[row] = static_cast<int32_t>(row_label(row, 3));
    w.mutable_data_as<float>()[row] = static_cast<float>(row_weight(row));
    t.mutable_data_as<float>()[row] = static_cast<float>(row_target(row));
  }
  data::TransformArguments arguments;
  arguments.graph = graph_of(chain);
  data::Pipeline pipeline(data::from_slices(
      {{"x", x}, {"y", y, data::Role::label}, {"w", w, data::Role::weight}, {"t", t, data::Role::label}}));
  pipeline.shuffle(20).batch(batch).apply("map", {{"on_device", on_device}}, std::move(arguments)).prefetch(2);
  return assert_ok_value(pipeline.build());
}

static data::IteratorContext host_context() {
  data::IteratorContext context;
  const auto plain = assert_ok_value(backend::Backend::create(backend::reference::entry, "{}", {}));
  context.graphs = data::BackendGraphRunner::create(assert_ok_value(plain->open_device(0)));
  context.seed = 11;
  context.epoch = 1;
  return context;
}

static std::unique_ptr<data::Iterator> walk(Trainer &trainer, const data::DatasetRef &dataset, bool leaves) {
  data::IteratorContext context = host_context();
  if (leaves) assert_string_equal(trainer.leave_map(*dataset, context).c_str(), "");
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  assert_true((iterator->left_map() != nullptr) == leaves);
  return iterator;
}

static std::unique_ptr<Trainer> open_trainer(const Model &model, const StrategyRef &strategy, TrainerOptions options) {
  options.copies_input = true;
  if (options.level == backend::Level::fast) options.level = backend::Level::repeatable;
  auto trainer = assert_ok_value(Trainer::open(model, strategy, options));
  assert_ok(trainer->initialize());
  return trainer;
}

/// Losses of two passes.
static std::vector<double> losses_of(Trainer &trainer, const data::DatasetRef &dataset, bool leaves) {
  std::vector<double> losses;
  for (int pass = 0; pass < 2; ++pass) {
    assert_ok(trainer.attach_input(walk(trainer, dataset, leaves)));
    assert_ok(trainer.run(-1, nullptr));
    const std::vector<double> some = trainer.loss_history();
    losses.insert(losses.end(), some.begin(), some.end());
  }
  return losses;
}

static void assert_same(const std::vector<double> &wanted, const std::vector<double> &got) {
  assert_int_equal(wanted.size(), got.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    assert_true(wanted[i] == got[i]);
}

static void test_devices_change_no_bit(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  for (const Chain chain : {Chain::augmented, Chain::mixed}) {
    for (const int32_t replicas : {1, 2, 3}) {
      for (const int32_t accumulation : {1, 2}) {
        TrainerOptions options;
        options.accumulation = accumulation;
        const StrategyRef strategy = assert_ok_value(make_test_strategy(replicas));
        const auto on_host = open_trainer(model, strategy, options);
        const auto on_devices = open_trainer(model, strategy, options);
        const std::vector<double> wanted = losses_of(*on_host, images(chain, false), false);
        assert_same(wanted, losses_of(*on_devices, images(chain), true));
        const auto counters = on_devices->counters().device_inputs;
        assert_int_equal(counters.mapped, 2 * kSteps * replicas);
        assert_int_equal(counters.batches, counters.mapped);
        assert_int_equal(on_host->counters().device_inputs.mapped, 0);
        // Bytes of images in place of floats.
        if (chain == Chain::augmented)
          assert_true(counters.bytes < on_host->counters().device_inputs.bytes + 2 * kRows * 8);
      }
    }
  }
}

/// Everything on the device is as late as can be, and memory of the host cannot be reached.
static void test_late_devices_are_waited_for(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  for (const int32_t replicas : {1, 3}) {
    for (const bool has_transfers : {true, false}) {
      if (replicas > 1 && !has_transfers) continue;
      LazySettings settings;
      settings.has_host_memory = false;
      settings.late = Late::everything;
      settings.has_transfers = has_transfers;
      LazyBackend::begin(std::move(settings));
      const std::string devices = "{\"logical_devices\": " + std::to_string(replicas) + "}";
      const auto late = assert_ok_value(backend::Backend::create(LazyBackend::entry, devices, {}));
      const StrategyRef strategy = assert_ok_value(replicas == 1 ? impl::distribute::Strategy::one_device({late, 0})
                                                                 : impl::distribute::Strategy::mirrored_all(late));
      const auto on_host = open_trainer(model, strategy, {});
      const auto on_devices = open_trainer(model, strategy, {});
      const std::vector<double> wanted = losses_of(*on_host, images(Chain::mixed, false), false);
      assert_same(wanted, losses_of(*on_devices, images(Chain::mixed), true));
      assert_int_equal(on_devices->counters().device_inputs.mapped, 2 * kSteps * replicas);
      LazyBackend::begin({});
    }
  }
}

/// The level invariant computes a batch in four parts, here on one and on two devices.
static void test_each_part_has_its_rows(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  TrainerOptions options;
  options.level = backend::Level::invariant;
  std::vector<double> wanted;
  for (const int32_t replicas : {1, 2}) {
    const StrategyRef strategy = assert_ok_value(make_test_strategy(replicas));
    const auto on_host = open_trainer(model, strategy, options);
    const auto on_devices = open_trainer(model, strategy, options);
    if (wanted.empty()) wanted = losses_of(*on_host, images(Chain::mixed, false), false);
    assert_same(wanted, losses_of(*on_devices, images(Chain::mixed), true));
    assert_int_equal(on_devices->counters().device_inputs.mapped, 2 * kSteps * replicas);
  }
}

/// A map that there is no memory for is an error of the input, and the trainer goes on with another one.
static void test_a_map_without_memory(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  std::atomic<bool> has_memory{true};
  LazySettings settings;
  settings.has_host_memory = false;
  settings.has_memory = [&](uint64_t) { return has_memory.load(); };
  LazyBackend::begin(std::move(settings));
  const auto separate = assert_ok_value(backend::Backend::create(LazyBackend::entry, "{\"logical_devices\": 2}", {}));
  const auto trainer = open_trainer(model, assert_ok_value(impl::distribute::Strategy::mirrored_all(separate)), {});
  const data::DatasetRef dataset = images(Chain::augmented);
  auto iterator = walk(*trainer, dataset, true);
  has_memory.store(false);
  assert_error_contains(trainer->attach_input(std::move(iterator)), "preparing the map on device");
  has_memory.store(true);
  assert_error_contains(trainer->run(-1, nullptr), "has no input");
  assert_ok(trainer->attach_input(walk(*trainer, dataset, false)));
  assert_ok(trainer->run(-1, nullptr));
  const std::vector<double> wanted = trainer->loss_history();
  const auto again = open_trainer(model, assert_ok_value(impl::distribute::Strategy::mirrored_all(separate)), {});
  assert_ok(again->attach_input(walk(*again, dataset, true)));
  assert_ok(again->run(-1, nullptr));
  assert_same(wanted, again->loss_history());
  LazyBackend::begin({});
}

/// From the position of a trainer that maps on devices one that does not goes on, and the other way round.
static void test_positions_fit_both(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  const StrategyRef strategy = assert_ok_value(make_test_strategy(2));
  const data::DatasetRef dataset = images(Chain::augmented);
  const auto whole = open_trainer(model, strategy, {});
  assert_ok(whole->attach_input(walk(*whole, dataset, false)));
  assert_ok(whole->run(-1, nullptr));
  for (const bool first_leaves : {false, true}) {
    const auto trainer = open_trainer(model, strategy, {});
    assert_ok(trainer->attach_input(walk(*trainer, dataset, first_leaves)));
    assert_ok(trainer->run(1, nullptr));
    std::vector<double> losses = trainer->loss_history();
    const auto state = assert_ok_value(trainer->input_state());
    auto rest = walk(*trainer, dataset, !first_leaves);
    assert_ok(rest->restore(state));
    assert_ok(trainer->attach_input(std::move(rest)));
    assert_ok(trainer->run(-1, nullptr));
    const std::vector<double> more = trainer->loss_history();
    losses.insert(losses.end(), more.begin(), more.end());
    assert_same(whole->loss_history(), losses);
  }
}

/// Batches that devices of two backends share are mapped by the host, whatever the devices are.
static void test_devices_of_several_kinds_leave_maps_to_the_host(void **) {
  using impl::distribute::Strategy;
  const Model model = assert_ok_value(build_network(small_network()));
  const Model predicting = assert_ok_value(impl::graph::predict_model(model));
  const auto tested = assert_ok_value(open_test_backend(1));
  const auto other = assert_ok_value(backend::Backend::create(backend::reference::entry, "{}", {}));
  const StrategyRef both = assert_ok_value(Strategy::mirrored({{tested, 0}, {other, 0}}));
  const auto engine = assert_ok_value(PredictEngine::open(predicting, both, {}));
  const auto evaluator = assert_ok_value(Evaluator::open(model, both, {}));
  for (const bool on_device : {false, true}) {
    const data::DatasetRef dataset = images(Chain::mixed, on_device);
    data::IteratorContext context = host_context();
    for (const std::string &why : {engine->leave_map(*dataset, context), evaluator->leave_map(*dataset, context)})
      assert_true(on_device ? why.find("of several kinds") != std::string::npos : why.empty());
    assert_null(context.left_map);
  }
}

static void test_what_devices_cannot_do_is_done_by_the_host(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  const StrategyRef strategy = assert_ok_value(make_test_strategy(1));
  const auto trainer = open_trainer(model, strategy, {});
  const data::DatasetRef dataset = images(Chain::refused);
  data::IteratorContext context = host_context();
  const std::string why = trainer->leave_map(*dataset, context);
  assert_true(why.find("op 'random_rotate' is not supported on devices") != std::string::npos);
  assert_null(context.left_map);
  assert_ok(trainer->attach_input(assert_ok_value(dataset->make_iterator(context))));
  assert_int_equal(assert_ok_value(trainer->run(-1, nullptr)).steps, kSteps);
  assert_int_equal(trainer->counters().device_inputs.mapped, 0);
  // A walk that was left to somebody else.
  const data::DatasetRef other = images(Chain::augmented);
  context.left_map = data::trailing_device_map(*other);
  assert_error_contains(trainer->attach_input(assert_ok_value(other->make_iterator(context))), "to other devices");
}

static void test_predictions_and_evaluations(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  const Model predicting = assert_ok_value(impl::graph::predict_model(model));
  const auto trainer = open_trainer(model, assert_ok_value(make_test_strategy(1)), {});
  const auto version = assert_ok_value(trainer->publish_weights());
  impl::distribute::PredictOptions options;
  options.level = backend::Level::repeatable;
  for (const int32_t devices : {1, 2, 3}) {
    const StrategyRef strategy = assert_ok_value(make_test_strategy(devices));
    const bool reads_host = strategy->backend()->has_host_memory();
    const auto engine = assert_ok_value(PredictEngine::open(predicting, strategy, options));
    assert_ok(engine->set_weights(version));
    const auto evaluator = assert_ok_value(Evaluator::open(model, strategy, options));
    std::vector<Tensor> outputs[2];
    std::vector<double> values[2];
    for (const bool on_device : {false, true}) {
      const data::DatasetRef dataset = images(Chain::mixed, on_device);
      data::IteratorContext context = host_context();
      assert_string_equal(engine->leave_map(*dataset, context).c_str(), "");
      assert_true((context.left_map != nullptr) == (on_device && !reads_host));
      const auto stream = assert_ok_value(engine->stream(assert_ok_value(dataset->make_iterator(context)), nullptr));
      for (PredictBatch batch; assert_ok_value(stream->next(batch));)
        outputs[on_device ? 1 : 0].push_back(batch.outputs[0]);
      data::IteratorContext again = host_context();
      assert_string_equal(evaluator->leave_map(*dataset, again).c_str(), "");
      assert_true((again.left_map != nullptr) == (on_device && !reads_host));
      const auto rows = assert_ok_value(dataset->make_iterator(again));
      values[on_device ? 1 : 0] = assert_ok_value(evaluator->run(*version, *rows, -1, nullptr)).values;
    }
    assert_same(values[0], values[1]);
    assert_int_equal(outputs[0].size(), kSteps);
    for (size_t i = 0; i < outputs[0].size(); ++i)
      assert_true(identical(outputs[0][i], outputs[1][i]));
  }
}

/// At level invariant the bits of a row do not depend on how many a batch has.
static void test_batches_of_any_size(void **) {
  const Model model = assert_ok_value(impl::graph::predict_model(assert_ok_value(build_network(small_network()))));
  impl::distribute::PredictOptions options;
  options.level = backend::Level::invariant;
  const auto engine = open_engine(model, assert_ok_value(make_test_strategy(1)), options);
  std::vector<double> wanted;
  for (const int64_t size : {43, 16, 5}) {
    const data::DatasetRef dataset = images(Chain::multiplied, true, size);
    data::IteratorContext context = host_context();
    assert_string_equal(engine->leave_map(*dataset, context).c_str(), "");
    const auto stream = assert_ok_value(engine->stream(assert_ok_value(dataset->make_iterator(context)), nullptr));
    std::vector<double> rows;
    for (PredictBatch batch; assert_ok_value(stream->next(batch));) {
      const std::vector<double> some = to_doubles(batch.outputs[0]);
      rows.insert(rows.end(), some.begin(), some.end());
    }
    if (wanted.empty()) wanted = rows;
    assert_same(wanted, rows);
  }
}

/// After the first batches nothing is asked of the device.
static void test_memory_is_kept(void **) {
  const Model model = assert_ok_value(build_network(small_network()));
  std::atomic<int64_t> asked{0};
  LazySettings settings;
  settings.has_host_memory = false;
  settings.has_memory = [&](uint64_t) { return ++asked, true; };
  LazyBackend::begin(std::move(settings));
  const auto separate = assert_ok_value(backend::Backend::create(LazyBackend::entry, "{\"logical_devices\": 1}", {}));
  const auto trainer = open_trainer(model, assert_ok_value(impl::distribute::Strategy::one_device({separate, 0})), {});
  const data::DatasetRef dataset = images(Chain::augmented);
  assert_ok(trainer->attach_input(walk(*trainer, dataset, true)));
  assert_ok(trainer->run(1, nullptr));
  const int64_t before = asked.load();
  assert_ok(trainer->run(1, nullptr));
  assert_int_equal(asked.load(), before);
  LazyBackend::begin({});
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_devices_change_no_bit),
    cmocka_unit_test(test_late_devices_are_waited_for),
    cmocka_unit_test(test_each_part_has_its_rows),
    cmocka_unit_test(test_a_map_without_memory),
    cmocka_unit_test(test_positions_fit_both),
    cmocka_unit_test(test_devices_of_several_kinds_leave_maps_to_the_host),
    cmocka_unit_test(test_what_devices_cannot_do_is_done_by_the_host),
    cmocka_unit_test(test_predictions_and_evaluations),
    cmocka_unit_test(test_batches_of_any_size),
    cmocka_unit_test(test_memory_is_kept),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::device_map_test
