// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_engine.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "backend/lazy_backend.h"
#include "data/pipeline/pipeline.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::predict_engine_test {

using impl::base::CancelToken;
using impl::base::Ref;
using impl::checkpoint::WeightVersion;
using impl::distribute::EvaluateReport;
using impl::distribute::Evaluator;
using impl::distribute::PredictBatch;
using impl::distribute::PredictEngine;
using impl::distribute::PredictStream;

/// A trained model with what predicts from it.
struct Fixture {
  NetworkCase network;
  Model train_model, predict_model;
  Ref<WeightVersion> version;
  std::unique_ptr<Trainer> trainer;

  Fixture() {
    train_model = assert_ok_value(build_network(network));
    predict_model = assert_ok_value(impl::graph::predict_model(train_model));
    trainer = assert_ok_value(Trainer::open(train_model, assert_ok_value(make_test_strategy(2)), {}));
    assert_ok(trainer->initialize());
    version = assert_ok_value(trainer->publish_weights());
  }

  std::shared_ptr<PredictEngine> engine(int32_t devices) const {
    auto engine = assert_ok_value(PredictEngine::open(predict_model, assert_ok_value(make_test_strategy(devices)), {}));
    assert_ok(engine->set_weights(version));
    return engine;
  }
  std::unique_ptr<impl::data::Iterator> rows(int64_t count, int64_t batch) const {
    return assert_ok_value(
        make_rows(count, network.features, network.classes, network.dtype, batch)->make_iterator({}));
  }
  /// The features of rows [0, count).
  Tensor features(int64_t count) const {
    Tensor x = std::move(*Tensor::zeros(DType::f32, {count, network.features}));
    for (int64_t i = 0; i < x.elements(); ++i) {
      x.mutable_data_as<float>()[i] = static_cast<float>(row_feature(i / network.features, i % network.features));
    }
    return x;
  }
};

static void test_rows_come_back_in_order(void **) {
  const Fixture fixture;
  const auto one = fixture.engine(1);
  const Tensor all = assert_ok_value(one->run(std::vector<Tensor>{fixture.features(70)}, nullptr))[0];
  assert_int_equal(all.rows(), 70);
  for (int32_t devices = 1; devices <= 3; ++devices) {
    const auto engine = fixture.engine(devices);
    for (const int64_t rows : {0, 1, 2, 5, 64, 70}) {
      const auto outputs = assert_ok_value(engine->run(std::vector<Tensor>{fixture.features(rows)}, nullptr));
      assert_int_equal(outputs.size(), 1);
      assert_int_equal(outputs[0].rows(), rows);
      if (rows == 0) continue;
      assert_ok(impl::tensor::compare_close(outputs[0], assert_ok_value(all.slice_rows(0, rows)), 1e-6, 1e-7));
    }
  }
}

static void test_weights_are_packed_once(void **) {
  const Fixture fixture;
  const auto engine = fixture.engine(3);
  for (int call = 0; call < 50; ++call) {
    assert_ok(engine->run(std::vector<Tensor>{fixture.features(7)}, nullptr));
  }
  assert_int_equal(engine->counters().versions_packed, 3);
  assert_int_equal(engine->counters().calls, 50);
}

static void test_streams(void **) {
  const Fixture fixture;
  const Tensor all = assert_ok_value(fixture.engine(1)->run(std::vector<Tensor>{fixture.features(70)}, nullptr))[0];
  for (int32_t devices = 1; devices <= 3; ++devices) {
    const auto engine = fixture.engine(devices);
    for (const int64_t batch : {1, 2, 16, 64, 100}) {
      auto stream = assert_ok_value(engine->stream(fixture.rows(70, batch), nullptr));
      int64_t seen = 0;
      for (PredictBatch result; assert_ok_value(stream->next(result));) {
        assert_int_equal(result.first_row, seen);
        assert_ok(impl::tensor::compare_close(result.outputs[0],
                                              assert_ok_value(all.slice_rows(seen, seen + result.rows)), 1e-6, 1e-7));
        seen += result.rows;
      }
      assert_int_equal(seen, 70);
    }
  }
}

/// Rows of which one is bad: what comes before its batch is predicted, then comes the error, and comes again.
static void test_what_is_before_an_error_comes(void **) {
  const Fixture fixture;
  const NetworkCase &network = fixture.network;
  for (int32_t devices = 1; devices <= 3; ++devices) {
    const auto engine = fixture.engine(devices);
    for (const int64_t bad : {0, 9, 45, 69}) {
      auto rows = std::make_shared<std::atomic<int64_t>>(0);
      impl::data::TransformArguments arguments;
      arguments.map = [rows, bad](const impl::data::Element &input, impl::data::Element &output) -> Status {
        if (rows->fetch_add(1) == bad) return impl::base::data_loss("row ", bad, " is bad");
        output = input;
        return Status();
      };
      impl::data::Pipeline pipeline(make_rows(70, network.features, network.classes, network.dtype, 1));
      pipeline.apply("unbatch").apply("map_callback", {}, std::move(arguments)).batch(10);
      auto iterator = assert_ok_value(assert_ok_value(pipeline.build())->make_iterator({}));
      auto stream = assert_ok_value(engine->stream(std::move(iterator), nullptr));
      PredictBatch result;
      for (int64_t seen = 0; seen < bad / 10 * 10; seen += result.rows) {
        assert_true(assert_ok_value(stream->next(result)));
        assert_int_equal(result.first_row, seen);
      }
      for (int again = 0; again < 2; ++again)
        assert_error_contains(stream->next(result), "is bad");
    }
  }
}

static void test_streams_end_early_and_run_together(void **) {
  const Fixture fixture;
  const auto engine = fixture.engine(2);
  {
    auto stream = assert_ok_value(engine->stream(fixture.rows(70, 1), nullptr));
    PredictBatch batch;
    assert_true(assert_ok_value(stream->next(batch)));
  }
  std::vector<int64_t> rows(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < rows.size(); ++t) {
    threads.emplace_back([&, t] {
      auto stream = engine->stream(fixture.rows(70, 3 + static_cast<int64_t>(t)), nullptr);
      PredictBatch batch;
      while (stream.ok()) {
        const Result<bool> more = (*stream)->next(batch);
        if (!more.ok() || !*more) break;
        rows[t] += batch.rows;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  for (const int64_t count : rows)
    assert_int_equal(count, 70);
}

static void test_a_stream_keeps_its_version(void **) {
  Fixture fixture;
  const auto engine = fixture.engine(2);
  auto stream = assert_ok_value(engine->stream(fixture.rows(70, 10), nullptr));
  fixture.trainer->set_step(9);
  assert_ok(engine->set_weights(assert_ok_value(fixture.trainer->publish_weights())));
  int64_t batches = 0;
  for (PredictBatch batch; assert_ok_value(stream->next(batch)); ++batches)
    assert_int_equal(batch.step, 0);
  assert_int_equal(batches, 7);
  auto later = assert_ok_value(engine->stream(fixture.rows(10, 10), nullptr));
  PredictBatch batch;
  assert_true(assert_ok_value(later->next(batch)));
  assert_int_equal(batch.step, 9);
}

/// A residual network with normalisations as layers have them ("folded"), and the same by their formula ("formula").
static Model build_normalised() {
  using impl::graph::GraphBuilder;
  using impl::graph::ValueId;
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), 6, 5, 3});
  const auto variable = [&](const std::string &name, std::vector<int64_t> dims) {
    const ValueId known = b.find_variable(name);
    return known != impl::graph::kNoValue ? known : b.variable(name, DType::f32, dims, {"zeros", {}});
  };
  const auto statistics = [&](const std::string &name, int64_t channels) {
    std::vector<ValueId> values;
    for (const char *part : {"/scale", "/offset", "/mean", "/variance"})
      values.push_back(variable(name + part, {channels}));
    return values;
  };
  const auto by_op = [&](const std::string &name, ValueId y, int64_t channels) {
    const auto s = statistics(name, channels);
    return b.op("batch_norm_inference", {y, s[0], s[1], s[2], s[3]}, {{"epsilon", 0.01}});
  };
  const auto by_formula = [&](const std::string &name, ValueId y, int64_t channels) {
    const auto s = statistics(name, channels);
    const ValueId deviation = b.unary("sqrt", b.add_scalar(s[3], 0.01));
    return b.add(b.mul(b.div(b.sub(y, s[2]), deviation), s[0]), s[1]);
  };
  const auto network = [&](const auto &norm, ValueId image) {
    const auto convolution = [&](const std::string &name, ValueId y, int64_t inputs, int64_t outputs) {
      return b.op("conv2d", {y, variable(name + "/kernel", {3, 3, inputs, outputs})},
                  {{"padding", std::string("same")}});
    };
    const ValueId stem = b.unary("relu", norm("stem", convolution("stem", image, 3, 32), 32));
    const ValueId inner = b.unary("relu", norm("one", convolution("one", stem, 32, 32), 32));
    const ValueId biased = b.add(convolution("two", inner, 32, 32), variable("two/bias", {32}));
    const ValueId sum = b.unary("relu", b.add(norm("two", biased, 32), stem));
    const ValueId flat = b.reshape(sum, {GraphBuilder::batch(), 960});
    return norm("head", b.matmul(flat, variable("head/kernel", {960, 4})), 4);
  };
  b.set_output("folded", network(by_op, x));
  // The image by another way, so that the convolutions are not one.
  b.set_output("formula", network(by_formula, b.scale(b.scale(x, 0.5), 2)));
  return assert_ok_value(b.finish());
}

/// Values between -1 and 1 that differ from variable to variable; variances are positive.
static Ref<WeightVersion> version_of(const Model &model) {
  std::vector<impl::checkpoint::StateEntry> entries;
  std::vector<Tensor> tensors;
  for (const auto &variable : model.variables) {
    const auto shape = assert_ok_value(impl::tensor::Shape::make(variable.dims));
    Tensor value = assert_ok_value(Tensor::allocate(variable.dtype, shape));
    const bool is_variance = variable.name.find("variance") != std::string::npos;
    for (int64_t i = 0; i < value.elements(); ++i) {
      const double number = std::sin(static_cast<double>(i * 7 + static_cast<int64_t>(tensors.size()) * 131) * 0.37);
      value.mutable_data_as<float>()[i] = static_cast<float>(is_variance ? number * number + 0.5 : number * 0.3);
    }
    entries.push_back({variable.name, impl::checkpoint::StateRole::weight, variable.dtype, shape});
    tensors.push_back(std::move(value));
  }
  return impl::base::make_ref<impl::checkpoint::TensorVersion>(5, std::move(entries), std::move(tensors));
}

static void test_normalisations_are_folded_into_weights(void **) {
  const Model model = build_normalised();
  const Ref<WeightVersion> version = version_of(model);
  for (int32_t devices = 1; devices <= 2; ++devices) {
    auto engine = assert_ok_value(PredictEngine::open(model, assert_ok_value(make_test_strategy(devices)), {}));
    assert_ok(engine->set_weights(version));
    for (const int64_t rows : {1, 2, 7}) {
      Tensor x = assert_ok_value(Tensor::zeros(DType::f32, {rows, 6, 5, 3}));
      for (int64_t i = 0; i < x.elements(); ++i)
        x.mutable_data_as<float>()[i] = static_cast<float>(row_feature(i / 90, i % 90));
      const auto outputs = assert_ok_value(engine->run(std::vector<Tensor>{x}, nullptr));
      assert_int_equal(outputs.size(), 2);
      assert_ok(impl::tensor::compare_close(outputs[0], outputs[1], 1e-4, 1e-4));
      double largest = 0;
      for (int64_t i = 0; i < outputs[0].elements(); ++i)
        largest = std::fmax(largest, std::fabs(static_cast<double>(outputs[0].data_as<float>()[i])));
      assert_true(largest > 0.1);
    }
    // On the fast backend nothing is left of the normalisations, and the residual sum is the convolution's.
    const std::string report = engine->describe().dump();
    if (report.find("simd:") != std::string::npos) assert_true(report.find("+bias+add+relu") != std::string::npos);
  }
}

static void test_predict_errors(void **) {
  const Fixture fixture;
  auto bare = assert_ok_value(PredictEngine::open(fixture.predict_model, assert_ok_value(make_test_strategy(1)), {}));
  assert_error_contains(bare->run(std::vector<Tensor>{fixture.features(3)}, nullptr), "set_weights");
  const auto engine = fixture.engine(2);
  assert_error_contains(engine->run(std::vector<Tensor>{}, nullptr), "features");
  assert_error_contains(engine->run(std::vector<Tensor>{assert_ok_value(Tensor::zeros(DType::f32, {2, 4}))}, nullptr),
                        "x");
  assert_error_contains(engine->set_weights(impl::base::make_ref<impl::checkpoint::TensorVersion>(
                            3, std::vector<impl::checkpoint::StateEntry>{}, std::vector<Tensor>{})),
                        "lack variable");
  auto token = CancelToken::create();
  token->cancel();
  assert_error_contains(engine->run(std::vector<Tensor>{fixture.features(3)}, token.get()), "CANCELLED");
}

static void test_evaluation_weighs_examples(void **) {
  Fixture fixture;
  std::vector<double> first;
  for (int32_t devices = 1; devices <= 3; ++devices) {
    auto evaluator =
        assert_ok_value(Evaluator::open(fixture.train_model, assert_ok_value(make_test_strategy(devices)), {}));
    for (const int64_t batch : {1, 16, 64, 70}) {
      auto rows = fixture.rows(70, batch);
      const EvaluateReport report = assert_ok_value(evaluator->run(*fixture.version, *rows, -1, nullptr));
      assert_int_equal(report.examples, 70);
      assert_true(report.names == (std::vector<std::string>{"loss", "accuracy"}));
      if (first.empty()) first = report.values;
      assert_true(relative_difference(report.values, first) < 1e-5);
    }
    auto nothing = fixture.rows(70, 70);
    assert_error_contains(evaluator->run(*fixture.version, *nothing, 0, nullptr), "no rows to evaluate");
  }
  assert_true(first[0] > 0.5 && first[0] < 3);
  assert_true(first[1] > 0 && first[1] < 1);
}

/// Devices with memory of their own copy from page-locked memory and back to it while there is any, and without it
/// where there is none, with the same results.
static void test_copies_are_staged(void **) {
  constexpr int64_t kRows = 70, kBatch = 16, kBatches = 5;
  const Fixture fixture;
  const Tensor expected = assert_ok_value(fixture.engine(1)->run({{fixture.features(kRows)}}, nullptr))[0];
  std::vector<double> metrics;
  for (const Late late : {Late::copies, Late::everything}) {
    for (const bool has_transfer_memory : {true, false}) {
      LazySettings settings;
      settings.has_host_memory = false;
      settings.late = late;
      settings.has_transfer_memory = [=](uint64_t) { return has_transfer_memory; };
      LazyBackend::begin(settings);
      const auto backend = assert_ok_value(impl::backend::Backend::create(LazyBackend::entry, "{}", {}));
      const auto strategy = assert_ok_value(impl::distribute::Strategy::one_device({backend, 0}));
      const auto engine = assert_ok_value(PredictEngine::open(fixture.predict_model, strategy, {}));
      assert_ok(engine->set_weights(fixture.version));
      LazyBackend::begin(settings);
      const auto stream = assert_ok_value(engine->stream(fixture.rows(kRows, kBatch), nullptr));
      for (PredictBatch batch; assert_ok_value(stream->next(batch));) {
        const Tensor rows = assert_ok_value(expected.slice_rows(batch.first_row, batch.first_row + batch.rows));
        assert_ok(impl::tensor::compare_close(batch.outputs[0], rows, 1e-6, 1e-7));
      }
      assert_int_equal(LazyBackend::issued(), kBatches);
      assert_int_equal(LazyBackend::staged(), has_transfer_memory ? 2 * kBatches : 0);

      const auto evaluator = assert_ok_value(Evaluator::open(fixture.train_model, strategy, {}));
      LazyBackend::begin(settings);
      const auto rows = fixture.rows(kRows, kBatch);
      const EvaluateReport report = assert_ok_value(evaluator->run(*fixture.version, *rows, -1, nullptr));
      assert_true(LazyBackend::issued() >= 2 * kBatches);
      assert_int_equal(LazyBackend::staged(), has_transfer_memory ? LazyBackend::issued() : 0);
      if (metrics.empty()) metrics = report.values;
      assert_true(report.values == metrics);
    }
  }
  LazyBackend::begin({});
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows_come_back_in_order),
    cmocka_unit_test(test_weights_are_packed_once),
    cmocka_unit_test(test_streams),
    cmocka_unit_test(test_what_is_before_an_error_comes),
    cmocka_unit_test(test_streams_end_early_and_run_together),
    cmocka_unit_test(test_a_stream_keeps_its_version),
    cmocka_unit_test(test_normalisations_are_folded_into_weights),
    cmocka_unit_test(test_predict_errors),
    cmocka_unit_test(test_evaluation_weighs_examples),
    cmocka_unit_test(test_copies_are_staged),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::predict_engine_test
