// SPDX-License-Identifier: Apache-2.0
//
// Predictions of many sizes by few programs: what numbers of rows are rounded up to, and that nobody sees it but in the
// number of programs. The values are those of the reference backend, which has a program for each number.
#include "distribute/plan/row_buckets.h"

#include <array>
#include <atomic>
#include <cmath>

#include "backend/lazy_backend.h"
#include "backend/reference/reference_backend.h"
#include "distribute/predict_case.h"
#include "distribute/program/staged_io.h"
#include "graph/serialize.h"
#include "testing.h"

namespace tutti::testing::row_buckets_test {

namespace backend = impl::backend;
namespace distribute = impl::distribute;
using distribute::PredictBatch;
using distribute::PredictEngine;
using distribute::PredictOptions;
using distribute::Strategy;
using Engine = std::shared_ptr<PredictEngine>;

static StrategyRef reference_strategy() {
  const auto plain = assert_ok_value(backend::Backend::create(backend::reference::entry, "{}", {}));
  return assert_ok_value(Strategy::one_device({plain, 0}));
}

/// The backend under test rounds numbers of rows.
static bool rounds_rows(const StrategyRef &strategy) { return !strategy->backend()->has_host_memory(); }

static Tensor features(int64_t rows, int64_t columns = 5) { return row_features(rows, columns); }

static std::vector<Tensor> run(const Engine &engine, std::vector<Tensor> inputs) {
  return assert_ok_value(engine->run(inputs, nullptr));
}

static void assert_close(const Tensor &got, const Tensor &all, int64_t rows) {
  assert_int_equal(got.rows(), rows);
  assert_ok(impl::tensor::compare_close(got, assert_ok_value(all.slice_rows(0, rows)), 1e-5, 1e-6));
}

static Model network_model(const NetworkCase &network = {}) {
  return assert_ok_value(impl::graph::predict_model(assert_ok_value(build_network(network))));
}

static void test_buckets(void **) {
  std::vector<int64_t> buckets;
  for (int64_t rows = 1; rows <= 100000; ++rows) {
    const int64_t bucket = distribute::bucket_of_rows(rows);
    assert_true(bucket >= rows && 2 * bucket < 3 * rows);
    assert_int_equal(distribute::bucket_of_rows(bucket), bucket);
    if (buckets.empty() || buckets.back() != bucket) buckets.push_back(bucket);
  }
  const std::vector<int64_t> first = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  assert_true(std::equal(first.begin(), first.end(), buckets.begin()));
  assert_int_equal(buckets.size(), 34);  // ..., 98304, 131072
  assert_int_equal(distribute::rows_to_compute(70, 0), 96);
  assert_int_equal(distribute::rows_to_compute(70, 70), 70);
  assert_int_equal(distribute::rows_to_compute(69, 70), 70);
  assert_int_equal(distribute::rows_to_compute(5, 70), 6);
  assert_int_equal(distribute::rows_to_compute(71, 70), 96);
}

static void test_large_calls_are_cut(void **) {
  constexpr int64_t kMiB = 1 << 20;
  assert_int_equal(distribute::rows_of_part(0, 0, 2), 0);
  assert_int_equal(distribute::rows_of_part(1000000, kMiB, 1), 0);     // few bytes
  assert_int_equal(distribute::rows_of_part(100, 1000 * kMiB, 1), 0);  // few rows
  assert_int_equal(distribute::rows_of_part(128, 128 * kMiB, 1), 64);  // as few as are cut
  assert_int_equal(distribute::rows_of_part(255, 256 * kMiB, 2), 64);  // for each of two
  assert_int_equal(distribute::rows_of_part(254, 256 * kMiB, 2), 0);
  assert_int_equal(distribute::rows_of_part(4096, 4096 * kMiB, 2), 512);
  assert_int_equal(distribute::rows_of_part(4096, 4 * kMiB, 1), 1024);
  for (int64_t rows = 1; rows < 5000; rows += 7) {
    for (const int64_t devices : {1, 2, 3, 8}) {
      const int64_t part = distribute::rows_of_part(rows, rows * 32768, devices);
      if (part == 0) continue;
      assert_int_equal(distribute::bucket_of_rows(part), part);
      assert_true(part >= 64 && rows > part * devices && (rows - 1) / part < 5 * devices);
    }
  }
}

static void test_usual_rows(void **) {
  distribute::UsualRows usual;
  for (int turn = 0; turn < 2; ++turn) {
    for (int call = 0; call < 16; ++call)
      assert_int_equal(usual.note(17), 0);
    for (int call = 0; call < 3; ++call)
      assert_int_equal(usual.note(17), 17);
    assert_int_equal(usual.note(18), 0);
  }
}

static void test_a_hundred_sizes(void **) {
  const Model model = network_model();
  const Tensor all = run(open_engine(model, reference_strategy()), {features(101)})[0];
  for (const int32_t devices : {1, 2}) {
    const StrategyRef strategy = assert_ok_value(make_test_strategy(devices));
    const Engine engine = open_engine(model, strategy);
    for (int64_t i = 1; i <= 100; ++i) {
      const int64_t rows = i * 37 % 101;
      assert_close(run(engine, {features(rows)})[0], all, rows);
    }
    assert_int_equal(run(engine, {features(0)})[0].rows(), 0);
    const int64_t built = engine->counters().programs_built;
    if (rounds_rows(strategy)) assert_int_equal(built, devices == 1 ? 14 : 12);
    if (!rounds_rows(strategy)) assert_true(built >= 100 / devices);
  }
}

/// Whole batches are not rounded, and a smaller one needs no more than they.
static void test_batches_of_a_dataset(void **) {
  const Model model = network_model();
  const Tensor all = run(open_engine(model, reference_strategy()), {features(144)})[0];
  const StrategyRef strategy = assert_ok_value(make_test_strategy(2));
  const Engine engine = open_engine(model, strategy);
  auto batches = assert_ok_value(
      engine->stream(assert_ok_value(make_rows(144, 5, 3, DType::f32, 37)->make_iterator({})), nullptr));
  int64_t seen = 0;
  for (PredictBatch batch; assert_ok_value(batches->next(batch)); seen += batch.rows)
    assert_ok(impl::tensor::compare_close(batch.outputs[0], assert_ok_value(all.slice_rows(seen, seen + batch.rows)),
                                          1e-5, 1e-6));
  assert_int_equal(seen, 144);  // the last of 33
  assert_int_equal(engine->counters().programs_built, rounds_rows(strategy) ? 1 : 2);
}

static void test_what_comes_again_and_again(void **) {
  const Model model = network_model();
  const StrategyRef strategy = assert_ok_value(make_test_strategy(1));
  const Tensor all = run(open_engine(model, reference_strategy()), {features(17)})[0];
  for (const backend::Level level : {backend::Level::fast, backend::Level::repeatable}) {
    PredictOptions options;
    options.level = level;
    const Engine engine = open_engine(model, strategy, options);
    for (int call = 0; call < 20; ++call)
      assert_close(run(engine, {features(17)})[0], all, 17);
    const bool has_both = rounds_rows(strategy) && level == backend::Level::fast;
    assert_int_equal(engine->counters().programs_built, has_both ? 2 : 1);
    const std::string plan = assert_ok_value(engine->plan(17, 0, nullptr)).dump();
    assert_contains(plan.c_str(), rounds_rows(strategy) ? "\"computed_rows\":24" : "\"computed_rows\":17");
  }
}

/// At level invariant the bits of a row do not depend on how many are computed (row_bits_test.cc: of other kernels).
static void test_the_same_bits(void **) {
  for (const NetworkCase &network : {NetworkCase{}, NetworkCase{.features = 700, .hidden = 600, .classes = 130}}) {
    PredictOptions options;
    options.level = backend::Level::invariant;
    const Engine engine = open_engine(network_model(network), assert_ok_value(make_test_strategy(1)), options);
    const Tensor all = run(engine, {features(64, network.features)})[0];
    for (const int64_t rows : {1, 5, 7, 9, 13, 17, 33, 47}) {
      const Tensor some = run(engine, {features(rows, network.features)})[0];
      assert_int_equal(some.rows(), rows);
      assert_memory_equal(some.data(), all.data(), some.size_bytes());
    }
  }
}

/// Rows of a table by numbers from 1 on, so that zeros would be out of range; and products of what may be no numbers.
static Model lookup_model() {
  GraphBuilder b;
  const ValueId ids = b.feature("ids", DType::i32, {GraphBuilder::batch()});
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), 5});
  const ValueId table = b.variable("table", DType::f32, {4, 3}, {"zeros", {}});
  const ValueId kernel = b.variable("kernel", DType::f32, {5, 3}, {"zeros", {}});
  b.set_output("looked_up", b.op("gather", {table, b.add_scalar(ids, -1)}));
  b.set_output("product", b.unary("sqrt", b.matmul(x, kernel)));
  return assert_ok_value(b.finish());
}

static Tensor numbers(const std::vector<int32_t> &values) {
  Tensor ids = assert_ok_value(Tensor::zeros(DType::i32, {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), ids.mutable_data_as<int32_t>());
  return ids;
}

/// x, some of whose rows are NaN.
static Tensor bad_features(int64_t rows) {
  Tensor x = features(rows);
  for (int64_t row = 0; row < rows; row += 2)
    x.mutable_data_as<float>()[row * 5 + row % 5] = NAN;
  return x;
}

static void test_rows_that_are_not_there(void **) {
  const Model model = lookup_model();
  const Engine engine = open_engine(model, assert_ok_value(make_test_strategy(1)));
  const Engine oracle = open_engine(model, reference_strategy());
  const std::vector<int32_t> good = {4, 1, 2, 3, 4, 2, 1, 3};
  for (int turn = 0; turn < 2; ++turn) {
    // What lies behind rows: bad numbers at first, then, where the device has found them, again.
    const std::vector<Tensor> bad{numbers({1, 2, 3, 4, 9, -7, 9, 0}), bad_features(8)};
    const auto failed = engine->run(bad, nullptr), expected = oracle->run(bad, nullptr);
    assert_int_equal(static_cast<int>(failed.code()), static_cast<int>(expected.code()));
    assert_false(failed.ok());
    for (const int64_t rows : {5, 7}) {
      const std::vector<Tensor> inputs{numbers({good.begin(), good.begin() + rows}),
                                       turn == 0 ? features(rows) : bad_features(rows)};
      const auto got = run(engine, inputs), wanted = run(oracle, inputs);
      for (size_t output = 0; output < 2; ++output) {
        assert_int_equal(got[output].rows(), rows);
        for (int64_t i = 0; i < got[output].elements(); ++i) {
          const float value = got[output].data_as<float>()[i], known = wanted[output].data_as<float>()[i];
          assert_true(std::isnan(known) ? std::isnan(value) : std::fabs(value - known) <= 1e-5f);
        }
      }
    }
  }
}

/// Rows know how many they are, and which.
static void test_programs_that_read_rows(void **) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch()});
  const ValueId place = b.op("iota", {}, {{"dims", impl::graph::Dims{GraphBuilder::batch()}}, {"axis", int64_t{0}}});
  b.set_output("y", b.add(b.mul(x, b.run_scalar("step_rows", DType::f32)), b.cast(place, DType::f32)));
  const Model model = assert_ok_value(b.finish());
  for (const int32_t devices : {1, 2}) {
    const Engine engine = open_engine(model, assert_ok_value(make_test_strategy(devices)));
    for (const int64_t rows : {1, 5, 6, 7, 13, 17, 13}) {
      Tensor ones = assert_ok_value(Tensor::zeros(DType::f32, {rows}));
      std::fill_n(ones.mutable_data_as<float>(), rows, 1.0f);
      const Tensor got = run(engine, {ones})[0];
      for (int64_t row = 0; row < rows; ++row)
        assert_true(got.data_as<float>()[row] == static_cast<float>(rows + row));
    }
  }
}

static void test_rows_that_depend_on_others(void **) {
  NetworkCase network;
  network.batch_norm = network.own_statistics = true;
  const Model model = network_model(network);
  const Engine engine = open_engine(model, assert_ok_value(make_test_strategy(1)));
  const Engine oracle = open_engine(model, reference_strategy());
  for (const int64_t rows : {5, 7, 6, 5}) {
    const Tensor wanted = run(oracle, {features(rows)})[0];
    assert_close(run(engine, {features(rows)})[0], wanted, rows);
  }
  assert_int_equal(engine->counters().programs_built, 3);
  assert_int_equal(oracle->counters().programs_built, 3);
}

static void test_what_comes_back(void **) {
  GraphBuilder b;
  b.set_result("y", b.scale(b.input("x", DType::f32, {GraphBuilder::batch(), 2}), 2));
  const std::string text = impl::graph::to_json_text(assert_ok_value(b.finish_graph()));
  const auto tested = assert_ok_value(open_test_backend(1));
  if (tested->has_host_memory()) return;
  const backend::DeviceRef device = assert_ok_value(tested->open_device(0));
  backend::CompileRequest request;
  request.graph_text = &text;
  request.bindings = {{std::string(impl::graph::kBatchSymbol), 6}};
  const auto executable = assert_ok_value(backend::Executable::compile(*device, request));
  const auto workspace = assert_ok_value(device->allocate(executable->description().workspace_bytes));
  backend::Program program = assert_ok_value(executable->bind(*device, {}, workspace.device_pointer()));
  backend::Stream stream = assert_ok_value(device->create_stream());
  distribute::StagedIo ports(device);
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 12> y;
  y.fill(-1);
  assert_ok(ports.run(program, {x.data()}, {y.data()}, {}, stream, distribute::StagedIo::Inputs::in_host_memory,
                      {.computed = 6, .given = 4}));
  for (size_t i = 0; i < y.size(); ++i)
    assert_true(y[i] == (i < x.size() ? 2 * x[i] : -1));
}

/// Where there is no memory for a bucket there may be for what was asked for.
static void test_little_memory(void **) {
  constexpr int64_t kFeatures = 1000;
  static std::atomic<uint64_t> limit;
  limit = UINT64_MAX;
  LazySettings settings;
  settings.has_host_memory = false;
  settings.late = Late::nothing;
  settings.has_memory = [](uint64_t bytes) { return bytes <= limit.load(); };
  LazyBackend::begin(std::move(settings));
  const auto small = assert_ok_value(backend::Backend::create(LazyBackend::entry, "{}", {}));
  NetworkCase network;
  network.features = kFeatures;
  const Model model = network_model(network);
  const Engine engine = open_engine(model, assert_ok_value(Strategy::one_device({small, 0})));
  const Tensor all = run(open_engine(model, reference_strategy()), {features(5, kFeatures)})[0];
  limit = 5 * kFeatures * sizeof(float);
  assert_close(run(engine, {features(5, kFeatures)})[0], all, 5);
  assert_error_contains(engine->run(std::vector<Tensor>{features(6, kFeatures)}, nullptr), "RESOURCE_EXHAUSTED");
  limit = 6 * kFeatures * sizeof(float);
  assert_close(run(engine, {features(5, kFeatures)})[0], all, 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_buckets),
    cmocka_unit_test(test_large_calls_are_cut),
    cmocka_unit_test(test_usual_rows),
    cmocka_unit_test(test_a_hundred_sizes),
    cmocka_unit_test(test_batches_of_a_dataset),
    cmocka_unit_test(test_what_comes_again_and_again),
    cmocka_unit_test(test_the_same_bits),
    cmocka_unit_test(test_rows_that_are_not_there),
    cmocka_unit_test(test_programs_that_read_rows),
    cmocka_unit_test(test_rows_that_depend_on_others),
    cmocka_unit_test(test_what_comes_back),
    cmocka_unit_test(test_little_memory),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::row_buckets_test
