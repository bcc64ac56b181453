// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict_engine.h"

#include <cmath>
#include <cstring>
#include <thread>

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing {

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
    assert_error_contains(evaluator->run(*fixture.version, *nothing, 0, nullptr), "not one row");
  }
  assert_true(first[0] > 0.5 && first[0] < 3);
  assert_true(first[1] > 0 && first[1] < 1);
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_rows_come_back_in_order),
    cmocka_unit_test(tutti::testing::test_weights_are_packed_once),
    cmocka_unit_test(tutti::testing::test_streams),
    cmocka_unit_test(tutti::testing::test_streams_end_early_and_run_together),
    cmocka_unit_test(tutti::testing::test_a_stream_keeps_its_version),
    cmocka_unit_test(tutti::testing::test_predict_errors),
    cmocka_unit_test(tutti::testing::test_evaluation_weighs_examples),
};
TEST_MAIN(tests)
