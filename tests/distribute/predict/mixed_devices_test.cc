// SPDX-License-Identifier: Apache-2.0
//
// Predictions and evaluations by devices of several backends together, however much their speeds differ: every row
// once and in order, and none of them waits for the slowest.
#include <chrono>
#include <thread>

#include "distribute/paced_backend.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::mixed_devices_test {

using impl::backend::Level;
using impl::base::CancelToken;
using impl::base::Ref;
using impl::checkpoint::WeightVersion;
using impl::distribute::DeviceChoice;
using impl::distribute::EvaluateReport;
using impl::distribute::Evaluator;
using impl::distribute::PredictBatch;
using impl::distribute::PredictEngine;
using impl::distribute::PredictOptions;
using impl::distribute::PredictStream;
using impl::distribute::Strategy;

/// Devices of the backend under test and of two paced ones, and a trained model.
struct Mix {
  NetworkCase network;
  Model train_model, predict_model;
  Ref<WeightVersion> version;
  std::unique_ptr<Trainer> trainer;
  impl::backend::BackendRef tested, paced[2];

  explicit Mix(double first_row_us = 0, double second_row_us = 0) {
    network.limits = {};
    train_model = assert_ok_value(build_network(network));
    predict_model = assert_ok_value(impl::graph::predict_model(train_model));
    tested = assert_ok_value(open_test_backend(2));
    for (int32_t i = 0; i < 2; ++i) {
      paced[i] = assert_ok_value(open_paced(i, 2));
      for (int32_t device = 0; device < 2; ++device)
        set_pace(i, device, {.row_us = i == 0 ? first_row_us : second_row_us});
    }
    trainer = assert_ok_value(Trainer::open(train_model, assert_ok_value(Strategy::one_device({paced[0], 0})), {}));
    assert_ok(trainer->initialize());
    version = assert_ok_value(trainer->publish_weights());
  }

  std::shared_ptr<PredictEngine> engine(std::vector<DeviceChoice> devices, const PredictOptions &options = {}) const {
    auto engine =
        assert_ok_value(PredictEngine::open(predict_model, assert_ok_value(Strategy::mirrored(devices)), options));
    assert_ok(engine->set_weights(version));
    return engine;
  }
  std::vector<DeviceChoice> all() const { return {{tested, 0}, {paced[0], 0}, {tested, 1}, {paced[1], 1}}; }
  std::unique_ptr<impl::data::Iterator> rows(int64_t count, int64_t batch) const {
    return assert_ok_value(
        make_rows(count, network.features, network.classes, network.dtype, batch)->make_iterator({}));
  }
  std::vector<Tensor> features(int64_t count) const {
    Tensor x = std::move(*Tensor::zeros(DType::f32, {count, network.features}));
    for (int64_t i = 0; i < x.elements(); ++i)
      x.mutable_data_as<float>()[i] = static_cast<float>(row_feature(i / network.features, i % network.features));
    return {x};
  }
  Tensor expected(int64_t count) const {
    return assert_ok_value(engine({{paced[0], 0}})->run(features(count), nullptr))[0];
  }
};

static void assert_rows(const Tensor &got, const Tensor &all, int64_t first) {
  if (got.rows() == 0) return;
  const Tensor expected = assert_ok_value(all.slice_rows(first, first + got.rows()));
  assert_ok(impl::tensor::compare_close(got, expected, 1e-5, 1e-6));
}

static int64_t read_stream(PredictStream &stream, const Tensor &all) {
  int64_t seen = 0;
  for (PredictBatch batch; assert_ok_value(stream.next(batch)); seen += batch.rows) {
    assert_int_equal(batch.first_row, seen);
    assert_rows(batch.outputs[0], all, seen);
  }
  return seen;
}

static void test_calls_of_any_size(void **) {
  const Mix mix;
  const Tensor all = mix.expected(301);
  const auto engine = mix.engine(mix.all());
  assert_int_equal(engine->counters().versions_packed, 4);
  for (int turn = 0; turn < 3; ++turn) {
    for (const int64_t rows : {0, 1, 2, 3, 5, 64, 70, 301}) {
      const auto outputs = assert_ok_value(engine->run(mix.features(rows), nullptr));
      assert_int_equal(outputs[0].rows(), rows);
      assert_rows(outputs[0], all, 0);
    }
  }
  assert_int_equal(engine->counters().versions_packed, 4);
}

static void test_streams(void **) {
  const Mix mix;
  const Tensor all = mix.expected(150);
  const auto engine = mix.engine(mix.all());
  for (const int64_t batch : {1, 7, 64, 200}) {
    const auto stream = assert_ok_value(engine->stream(mix.rows(150, batch), nullptr));
    assert_int_equal(read_stream(*stream, all), 150);
  }
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto stream = assert_ok_value(engine->stream(mix.rows(150, 11 + 20 * t), nullptr));
      assert_int_equal(read_stream(*stream, all), 150);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  // One that ends early, its rows on their way.
  PredictBatch batch;
  auto early = assert_ok_value(engine->stream(mix.rows(150, 3), nullptr));
  assert_true(assert_ok_value(early->next(batch)));
}

static void test_weights_are_replaced_everywhere(void **) {
  Mix mix;
  const auto engine = mix.engine(mix.all());
  const Tensor before = mix.expected(60);
  auto stream = assert_ok_value(engine->stream(mix.rows(60, 10), nullptr));
  NetworkCase network;
  assert_ok(mix.trainer->attach_input(mix.rows(64, 8)));
  assert_ok(mix.trainer->run(5, nullptr));
  mix.version = assert_ok_value(mix.trainer->publish_weights());
  assert_ok(engine->set_weights(mix.version));
  assert_int_equal(read_stream(*stream, before), 60);
  const Tensor after = mix.expected(60);
  assert_false(impl::tensor::compare_close(before, after, 1e-5, 1e-6).ok());
  int64_t step = 0;
  assert_rows(assert_ok_value(engine->run(mix.features(60), nullptr, &step))[0], after, 0);
  assert_int_equal(step, 5);
  assert_int_equal(engine->counters().versions_packed, 8);
}

static void test_evaluations(void **) {
  Mix mix;
  const auto one =
      assert_ok_value(Evaluator::open(mix.train_model, assert_ok_value(Strategy::one_device({mix.paced[0], 0})), {}));
  const EvaluateReport expected = assert_ok_value(one->run(*mix.version, *mix.rows(230, 50), -1, nullptr));
  // With a penalty, too, which is not any row's.
  const auto mixed =
      assert_ok_value(Evaluator::open(mix.train_model, assert_ok_value(Strategy::mirrored(mix.all())), {}));
  for (const int64_t batch : {1, 3, 50, 230}) {
    const EvaluateReport report = assert_ok_value(mixed->run(*mix.version, *mix.rows(230, batch), -1, nullptr));
    assert_int_equal(report.examples, 230);
    assert_true(relative_difference(report.values, expected.values) < 1e-5);
  }
}

static void test_a_penalty_counts_once(void **) {
  Mix mix;
  mix.network.loss = Loss::mean_with_penalty;
  const Model model = assert_ok_value(build_network(mix.network));
  const auto open = [&](const StrategyRef &strategy) { return assert_ok_value(Evaluator::open(model, strategy, {})); };
  const auto one = open(assert_ok_value(Strategy::one_device({mix.paced[0], 0})));
  const auto mixed = open(assert_ok_value(Strategy::mirrored(mix.all())));
  const EvaluateReport expected = assert_ok_value(one->run(*mix.version, *mix.rows(100, 30), -1, nullptr));
  for (int turn = 0; turn < 3; ++turn) {
    const EvaluateReport report = assert_ok_value(mixed->run(*mix.version, *mix.rows(100, 30), -1, nullptr));
    assert_true(relative_difference(report.values, expected.values) < 1e-5);
  }
}

static void test_training_is_refused(void **) {
  const Mix mix;
  const auto trainer = Trainer::open(mix.train_model, assert_ok_value(Strategy::mirrored(mix.all())), {});
  assert_int_equal(static_cast<int>(trainer.code()), static_cast<int>(impl::base::Code::failed_precondition));
  assert_error_contains(trainer, "paced0:0 cannot train together");
  assert_error_contains(trainer, "predicts and evaluates");
  assert_error_contains(Strategy::mirrored({{mix.paced[0], 1}, {mix.tested, 0}, {mix.paced[0], 1}}), "listed twice");
}

static std::string bytes_of(const Tensor &tensor) {
  return std::string(static_cast<const char *>(tensor.data()), static_cast<size_t>(tensor.size_bytes()));
}

static void test_levels(void **) {
  const Mix mix(0, 50);
  PredictOptions options;
  options.level = Level::invariant;
  const StrategyRef strategy = assert_ok_value(Strategy::mirrored(mix.all()));
  assert_error_contains(PredictEngine::open(mix.predict_model, strategy, options), "round differently");
  assert_error_contains(Evaluator::open(mix.train_model, strategy, options), "determinism is invariant");
  // One backend has devices of one kind here, whatever their pace.
  assert_ok(PredictEngine::open(mix.predict_model,
                                assert_ok_value(Strategy::mirrored({{mix.paced[1], 0}, {mix.paced[1], 1}})), options));
  options.level = Level::repeatable;
  const auto engine = mix.engine(mix.all(), options);
  const auto evaluator = assert_ok_value(Evaluator::open(mix.train_model, strategy, options));
  std::string called, streamed;
  std::vector<double> evaluated;
  for (int turn = 0; turn < 5; ++turn) {
    // Who computes what does not depend on who is free.
    for (int32_t device = 0; device < 2; ++device)
      set_pace(1, device, {.row_us = turn % 2 == 0 ? 1.0 : 300.0});
    const std::string call = bytes_of(assert_ok_value(engine->run(mix.features(37), nullptr))[0]);
    std::string stream;
    const auto results = assert_ok_value(engine->stream(mix.rows(70, 9), nullptr));
    for (PredictBatch batch; assert_ok_value(results->next(batch));)
      stream += bytes_of(batch.outputs[0]);
    const auto report = assert_ok_value(evaluator->run(*mix.version, *mix.rows(70, 9), -1, nullptr));
    if (turn > 0) assert_true(call == called && stream == streamed && report.values == evaluated);
    called = call, streamed = stream, evaluated = report.values;
    assert_int_equal(paced_rows(1, 1), 9 + 16 + 15);
  }
}

static void test_a_failure_of_one_device_reaches_the_caller(void **) {
  const Mix mix;
  const auto engine = mix.engine(mix.all());
  const Tensor all = mix.expected(64);
  set_pace(1, 1, {.fails = true});
  // The others take all of some calls, so that it may take a few until it is asked.
  Status failure;
  for (int call = 0; call < 200 && failure.ok(); ++call)
    failure = engine->run(mix.features(64), nullptr).status();
  assert_error_contains(failure, "on fire");
  auto stream = assert_ok_value(engine->stream(mix.rows(6400, 64), nullptr));
  PredictBatch batch;
  Result<bool> more = true;
  while (more.ok() && *more)
    more = stream->next(batch);
  assert_error_contains(more, "on fire");
  set_pace(1, 1, {});
  for (int call = 0; call < 3; ++call)
    assert_rows(assert_ok_value(engine->run(mix.features(64), nullptr))[0], all, 0);
}

static void test_cancel(void **) {
  const Mix mix(100000, 100000);
  const auto engine = mix.engine({{mix.paced[0], 0}, {mix.paced[1], 0}});
  const auto token = CancelToken::create();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    token->cancel();
  });
  const auto ran = engine->run(mix.features(16), token.get());
  canceller.join();
  assert_error_contains(ran, "CANCELLED");
}

static double seconds_of(const std::function<void()> &work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A device that needs twenty times as long for each row: half of the rows would take it twenty times as long as what
/// all need together.
static void test_a_slow_device_holds_nothing_back(void **) {
  const Mix mix(20, 400);
  const auto engine = mix.engine({{mix.paced[1], 0}, {mix.paced[0], 0}});
  const Tensor all = mix.expected(4000);
  // On a busy machine a device may come too late for a call.
  for (int call = 0; call < 4 || (paced_runs(1, 0) < 4 && call < 100); ++call)
    assert_ok(engine->run(mix.features(4000), nullptr));
  double seconds = 0;
  for (int call = 0; call < 20 && (call == 0 || paced_rows(1, 0) == 0); ++call) {
    set_pace(0, 0, {.row_us = 20}), set_pace(1, 0, {.row_us = 400});
    seconds = seconds_of([&] { assert_rows(assert_ok_value(engine->run(mix.features(4000), nullptr))[0], all, 0); });
  }
  std::printf("a call: %.0f ms, 76 of both; rows %d\n", seconds * 1e3, static_cast<int>(paced_rows(1, 0)));
  // It does its part, and no more.
  assert_in_range(paced_rows(1, 0), 1, 1000);
  assert_true(seconds < 0.8);
  set_pace(0, 0, {.row_us = 20}), set_pace(1, 0, {.row_us = 400});
  seconds = seconds_of([&] {
    const auto stream = assert_ok_value(engine->stream(mix.rows(4000, 1000), nullptr));
    assert_int_equal(read_stream(*stream, all), 4000);
  });
  std::printf("a stream of four batches: %.0f ms, 76 of both; rows %d\n", seconds * 1e3,
              static_cast<int>(paced_rows(1, 0)));
  assert_in_range(paced_rows(1, 0), 1, 1000);
  assert_true(seconds < 0.8);
}

static void test_a_device_that_adds_nothing_is_named(void **) {
  const Mix mix(20, 4000);
  const auto engine = mix.engine({{mix.paced[0], 0}, {mix.paced[1], 0}});
  assert_string_equal(engine->advice().c_str(), "");
  // It is tried again only after a while.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (engine->advice().empty() && std::chrono::steady_clock::now() < end)
    assert_ok(engine->run(mix.features(64), nullptr));
  assert_contains(engine->advice().c_str(), "device paced1:0 computes less than 2 %");
  const Mix even(20, 40);
  const auto both = even.engine({{even.paced[0], 0}, {even.paced[1], 0}});
  for (int call = 0; call < 6; ++call)
    assert_ok(both->run(even.features(64), nullptr));
  assert_string_equal(both->advice().c_str(), "");
}

/// The same within one backend, as soon as it is known: until then devices share equally.
static void test_unequal_devices_of_one_backend(void **) {
  const Mix mix(20, 0);
  set_pace(0, 1, {.row_us = 400});
  const auto engine = mix.engine({{mix.paced[0], 0}, {mix.paced[0], 1}});
  const Tensor all = mix.expected(4000);
  for (int call = 0; call < 40 || (paced_runs(0, 1) < 40 && call < 400); ++call)
    assert_ok(engine->run(mix.features(40), nullptr));
  set_pace(0, 0, {.row_us = 20}), set_pace(0, 1, {.row_us = 400});
  const double seconds = seconds_of([&] {
    for (int call = 0; call < 2; ++call)
      assert_rows(assert_ok_value(engine->run(mix.features(2000), nullptr))[0], all, 0);
  });
  std::printf("two calls: %.0f ms, 76 of both; rows %d\n", seconds * 1e3, static_cast<int>(paced_rows(0, 1)));
  assert_in_range(paced_rows(0, 1), 1, 1000);
  assert_true(seconds < 0.8);
}

static void test_plans_of_each_kind(void **) {
  const Mix mix;
  const auto engine = mix.engine(mix.all());
  const auto plan = assert_ok_value(engine->plan(8, 0, nullptr));
  assert_int_equal(plan.find("rows")->integer(), 8);
  assert_true(plan.find("device")->string() == assert_ok_value(mix.tested->describe_device(0)).name);
  const auto &others = plan.find("others")->array();
  assert_int_equal(others.size(), 2);
  assert_string_equal(others[0].find("device")->string().c_str(), "paced0:0");
  assert_string_equal(others[1].find("device")->string().c_str(), "paced1:1");
  assert_true(!others[1].find("kernels")->array().empty());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_calls_of_any_size),
    cmocka_unit_test(test_streams),
    cmocka_unit_test(test_weights_are_replaced_everywhere),
    cmocka_unit_test(test_evaluations),
    cmocka_unit_test(test_a_penalty_counts_once),
    cmocka_unit_test(test_training_is_refused),
    cmocka_unit_test(test_levels),
    cmocka_unit_test(test_a_failure_of_one_device_reaches_the_caller),
    cmocka_unit_test(test_cancel),
    cmocka_unit_test(test_a_slow_device_holds_nothing_back),
    cmocka_unit_test(test_a_device_that_adds_nothing_is_named),
    cmocka_unit_test(test_unequal_devices_of_one_backend),
    cmocka_unit_test(test_plans_of_each_kind),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::mixed_devices_test
