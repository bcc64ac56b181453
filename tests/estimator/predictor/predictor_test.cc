// SPDX-License-Identifier: Apache-2.0
#include "estimator/predictor/predictor.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <thread>

#include "checkpoint/checkpoint_testing.h"
#include "estimator/small_training.h"
#include "testing.h"

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using namespace tutti::impl::estimator::predictor;
using checkpoint::TemporaryDirectory;
using tensor::Tensor;

namespace {

// An estimator with three steps behind it.
base::Ref<Estimator> trained(int32_t replicas, const std::string &model_dir = "") {
  RunConfig config;
  config.model_dir = model_dir;
  config.save_checkpoints_steps = 1;
  config.log_step_count_steps = 0;
  auto estimator = small_estimator(replicas, config);
  if (!estimator.ok()) return nullptr;
  TrainRequest request;
  request.dataset = small_dataset(50, 7);
  request.steps = 3;
  return (*estimator)->train(request).ok() ? *estimator : nullptr;
}

void train_more(Estimator &estimator, int64_t steps) {
  TrainRequest request;
  request.dataset = small_dataset(50, 7);
  request.steps = steps;
  assert_ok(estimator.train(request));
}

data::NamedTensor feature_rows(int64_t rows, int64_t first = 0) {
  std::vector<float> x;
  for (int64_t row = first; row < first + rows; ++row) {
    for (int64_t i = 0; i < 4; ++i) {
      x.push_back(std::sin(0.7f * static_cast<float>(row) + static_cast<float>(i)));
    }
  }
  return {"x", *Tensor::from_values<float>(tensor::Shape{rows, 4}, std::span<const float>(x)), data::Role::feature};
}

std::vector<float> values_of(const ResultBatch &batch) {
  const auto y = batch.get("y");
  if (!y.ok()) return {};
  return {y->data_as<float>(), y->data_as<float>() + y->elements()};
}

// Whether these are the expected values from `first` on, whatever the batch they were computed in: the same bits, but
// where a library chooses how to add up the products of so many rows.
bool are_rows(const std::vector<float> &values, const std::vector<float> &expected, int64_t first = 0) {
  const char *const plugin = std::getenv("TUTTI_TEST_BACKEND");
  const float tolerance = plugin != nullptr && std::string_view(plugin).ends_with("tutti-cuda.so") ? 1e-5f : 0;
  if (first + static_cast<int64_t>(values.size()) > static_cast<int64_t>(expected.size())) return false;
  return std::equal(values.begin(), values.end(), expected.begin() + first,
                    [=](float a, float b) { return std::fabs(a - b) <= tolerance; });
}

void test_every_row_once_and_in_order(void **) {
  std::vector<float> expected;
  for (const int32_t replicas : {1, 2, 3}) {
    const auto estimator = trained(1);
    assert_non_null(estimator.get());
    TemporaryDirectory directory;
    const auto strategy = assert_ok_value(replicas_under_test(replicas));
    const auto saving = trained(1, directory.path());
    const auto predictor = assert_ok_value(Predictor::open(directory.path(), strategy, {}, {}));
    assert_int_equal(predictor->step(), 3);
    const ResultBatch all = assert_ok_value(predictor->run({feature_rows(100)}, nullptr));
    assert_int_equal(all.row_count, 100);
    const std::vector<float> values = values_of(all);
    if (expected.empty()) expected = values;
    assert_int_equal(values.size(), 100);
    assert_true(are_rows(values, expected));
    // Whatever the cut: one row, fewer rows than devices, a ragged tail, none.
    for (const int64_t rows : {0, 1, 2, 7, 64}) {
      const ResultBatch some = assert_ok_value(predictor->run({feature_rows(rows)}, nullptr));
      assert_int_equal(some.row_count, rows);
      assert_int_equal(values_of(some).size(), rows);
      assert_true(are_rows(values_of(some), expected));
    }
    for (const int64_t batch_size : {1, 2, 7, 33, 100, 1000}) {
      const ResultBatch streamed = assert_ok_value(predictor->run_all(small_dataset(100, batch_size), nullptr));
      assert_int_equal(streamed.row_count, 100);
      assert_int_equal(values_of(streamed).size(), 100);
      assert_true(are_rows(values_of(streamed), expected));
    }
    const ResultBatch none = assert_ok_value(predictor->run_all(small_dataset(0, 4), nullptr));
    assert_int_equal(none.row_count, 0);
    assert_int_equal(assert_ok_value(none.get("y")).rows(), 0);
  }
}

void test_streams_are_ordered_and_closable(void **) {
  const auto estimator = trained(2);
  const auto dataset = small_dataset(100, 7);
  const auto predictor = assert_ok_value(Predictor::from_estimator(*estimator, dataset->spec(), {}));
  const std::vector<float> expected = values_of(assert_ok_value(predictor->run({feature_rows(100)}, nullptr)));
  auto stream = assert_ok_value(predictor->stream(dataset, nullptr));
  int64_t rows = 0;
  for (ResultBatch batch; assert_ok_value(stream->next(batch)); rows += batch.row_count) {
    assert_int_equal(batch.first_row, rows);
    assert_int_equal(batch.step, 3);
    const std::vector<float> values = values_of(batch);
    assert_true(are_rows(values, expected, rows));
  }
  assert_int_equal(rows, 100);
  // Early ends, with results waiting and with nothing taken; an endless dataset too.
  data::Pipeline endless(dataset);
  endless.repeat();
  const auto forever = assert_ok_value(endless.build());
  for (const int taken : {0, 1, 5}) {
    stream = assert_ok_value(predictor->stream(forever, nullptr));
    ResultBatch batch;
    for (int i = 0; i < taken; ++i)
      assert_true(assert_ok_value(stream->next(batch)));
  }
  assert_error_contains(predictor->run_all(forever, nullptr), "never ends");
  const auto token = base::CancelToken::create();
  stream = assert_ok_value(predictor->stream(forever, token));
  token->cancel();
  ResultBatch batch;
  base::Result<bool> more = true;
  for (int i = 0; i < 1000 && more.ok(); ++i)
    more = stream->next(batch);
  assert_int_equal(more.code(), base::Code::cancelled);
}

void test_weights_are_packed_once(void **) {
  const auto estimator = trained(1);
  const auto predictor = assert_ok_value(Predictor::from_estimator(*estimator, small_dataset(4, 2)->spec(), {}));
  const data::NamedTensor rows = feature_rows(3);
  for (int i = 0; i < 1000; ++i)
    assert_ok(predictor->run({rows}, nullptr));
  assert_int_equal(predictor->counters().calls, 1000);
  assert_int_equal(predictor->counters().versions_packed, 1);
}

void test_bad_input_is_named(void **) {
  const auto estimator = trained(1);
  const auto dataset = small_dataset(4, 2);
  const auto predictor = assert_ok_value(Predictor::from_estimator(*estimator, dataset->spec(), {}));
  assert_error_contains(predictor->run({}, nullptr), "feature 'x' is missing, expected f32 [batch, 4]");
  data::NamedTensor wrong = feature_rows(2);
  wrong.name = "X";
  assert_error_contains(predictor->run({wrong}, nullptr), "did you mean 'x'");
  wrong = feature_rows(2);
  assert_error_contains(predictor->run({wrong, wrong}, nullptr), "given twice");
  wrong.tensor = assert_ok_value(Tensor::zeros(tensor::DType::f64, {2, 4}));
  assert_error_contains(predictor->run({wrong}, nullptr), "feature 'x' is f64 [2, 4]");
  wrong.tensor = assert_ok_value(Tensor::zeros(tensor::DType::f32, {2, 5}));
  assert_error_contains(predictor->run({wrong}, nullptr), "feature 'x' is f32 [2, 5]");
  wrong.tensor = assert_ok_value(Tensor::zeros(tensor::DType::f32, {4}));
  assert_error_contains(predictor->run({wrong}, nullptr), "feature 'x' is f32 [4]");
  const ResultBatch batch = assert_ok_value(predictor->run({feature_rows(2)}, nullptr));
  assert_error_contains(batch.get("z"), "there is no output 'z'");
  PredictorOptions options;
  options.outputs = {"yy"};
  assert_error_contains(Predictor::from_estimator(*estimator, dataset->spec(), options),
                        "no output 'yy', did you mean 'y'?; known: ");
  options.outputs = {"y"};
  const auto selected = assert_ok_value(Predictor::from_estimator(*estimator, dataset->spec(), options));
  assert_true(selected->output_names() == std::vector<std::string>{"y"});
  options.threads_per_device = 0;
  assert_error_contains(Predictor::from_estimator(*estimator, dataset->spec(), options), "threads_per_device");
  TemporaryDirectory empty;
  const auto strategy = assert_ok_value(replicas_under_test(1));
  assert_int_equal(Predictor::open(empty.path(), strategy, {}, {}).code(), base::Code::not_found);
  const auto untrained = assert_ok_value(small_estimator(1, {}));
  const auto failed = Predictor::from_estimator(*untrained, dataset->spec(), {});
  assert_int_equal(failed.code(), base::Code::failed_precondition);
  assert_error_contains(failed, "there are no weights");
}

void test_reload(void **) {
  TemporaryDirectory directory;
  const auto estimator = trained(1, directory.path());
  const auto strategy = assert_ok_value(replicas_under_test(2));
  const auto predictor = assert_ok_value(Predictor::open(directory.path(), strategy, {}, {}));
  const auto dataset = small_dataset(30, 4);
  auto old_stream = assert_ok_value(predictor->stream(dataset, nullptr));
  const std::vector<float> old_values = values_of(assert_ok_value(predictor->run_all(dataset, nullptr)));
  assert_false(assert_ok_value(predictor->reload()));
  train_more(*estimator, 5);
  assert_true(assert_ok_value(predictor->reload()));
  assert_int_equal(predictor->step(), 8);
  const std::vector<float> new_values = values_of(assert_ok_value(predictor->run_all(dataset, nullptr)));
  assert_false(old_values == new_values);
  // The stream of before keeps its weights to the end.
  int64_t rows = 0;
  for (ResultBatch batch; assert_ok_value(old_stream->next(batch)); rows += batch.row_count) {
    assert_int_equal(batch.step, 3);
    const std::vector<float> values = values_of(batch);
    assert_true(are_rows(values, old_values, rows));
  }
  assert_int_equal(rows, 30);
  // A damaged newest one changes nothing but the log.
  train_more(*estimator, 1);
  checkpoint::flip_bit(directory.path() + "/checkpoint-9/weights.safetensors", 200);
  assert_false(assert_ok_value(predictor->reload()));
  assert_int_equal(predictor->step(), 8);
  assert_ok(predictor->reload_from(directory.path() + "/checkpoint-7"));
  assert_int_equal(predictor->step(), 7);
  assert_int_equal(predictor->reload_from(directory.path() + "/checkpoint-9").code(), base::Code::data_loss);
  assert_int_equal(predictor->step(), 7);
}

// What callers give and get stays as it is.
void test_reload_of_another_model(void **) {
  TemporaryDirectory ours, linear, theirs;
  assert_non_null(trained(1, ours.path()).get());
  const auto predictor = assert_ok_value(Predictor::open(ours.path(), assert_ok_value(replicas_under_test(1)), {}, {}));
  RunConfig config;
  config.log_step_count_steps = 0;
  TrainRequest request;
  request.dataset = small_dataset(50, 7);
  request.steps = 5;
  for (const bool same : {true, false}) {
    config.model_dir = same ? linear.path() : theirs.path();
    const auto strategy = assert_ok_value(replicas_under_test(1));
    const ModelFunction model = [same](graph::GraphBuilder &b, Mode mode) -> base::Status {
      const graph::ValueId kernel = b.variable("kernel", tensor::DType::f32, {4, 1}, {"glorot_uniform", {}});
      const graph::ValueId y = b.matmul(b.model().find_feature("x")->value, kernel);
      b.set_output(same ? "y" : "z", y);
      if (mode == Mode::predict) return base::Status();
      b.set_loss(b.reduce_mean(b.unary("abs", b.sub(y, b.model().labels[0].value))));
      if (mode == Mode::evaluate) return base::Status();
      graph::TrainSpec train;
      train.optimizer.op = "momentum_update";
      train.optimizer.attributes = {{"momentum", 0.9}};
      train.optimizer.learning_rate = b.constant(0.05, tensor::DType::f32);
      train.optimizer.slots = {{"velocity", 0}};
      b.set_train(train);
      return base::Status();
    };
    assert_ok(assert_ok_value(Estimator::create(model, config, strategy, {}, {}))->train(request));
  }
  const base::Status refused = predictor->reload_from(theirs.path());
  assert_int_equal(refused.code(), base::Code::failed_precondition);
  assert_error_contains(refused, "takes 'x' f32 [batch, 4], gives 'z'; this predictor takes");
  assert_int_equal(predictor->step(), 3);
  assert_ok(predictor->run({feature_rows(3)}, nullptr));
  assert_ok(predictor->reload_from(linear.path()));
  assert_int_equal(predictor->step(), 5);
  assert_int_equal(values_of(assert_ok_value(predictor->run({feature_rows(3)}, nullptr))).size(), 3);
}

// Callers on several threads, reloads beside them: each answer is that of one version.
void test_concurrent_callers_see_one_version_each(void **) {
  TemporaryDirectory directory;
  const auto estimator = trained(1, directory.path());
  train_more(*estimator, 2);
  const auto strategy = assert_ok_value(replicas_under_test(2));
  const auto predictor = assert_ok_value(Predictor::open(directory.path(), strategy, {}, {}));
  std::map<int64_t, std::vector<float>> expected;
  for (const int64_t step : {3, 4, 5}) {
    assert_ok(predictor->reload_from(base::concat(directory.path(), "/checkpoint-", step)));
    expected[step] = values_of(assert_ok_value(predictor->run({feature_rows(9)}, nullptr)));
  }
  std::atomic<int64_t> wrong{0}, failed{0}, calls{0};
  std::atomic<bool> ending{false};
  std::vector<base::Thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.push_back(assert_ok_value(base::Thread::start("caller", [&] {
      while (!ending) {
        const auto batch = predictor->run({feature_rows(9)}, nullptr);
        ++calls;
        if (!batch.ok()) {
          ++failed;
          continue;
        }
        const auto right = expected.find(batch->step);
        if (right == expected.end() || !are_rows(values_of(*batch), right->second)) ++wrong;
      }
    })));
  }
  for (int i = 0; i < 30; ++i) {
    const base::Status status = predictor->reload_from(base::concat(directory.path(), "/checkpoint-", 3 + i % 3));
    if (!status.ok()) ++failed;
  }
  // On a busy machine the reloads may be over before the first call has begun.
  while (calls < 3 && failed == 0)
    std::this_thread::yield();
  ending = true;
  threads.clear();
  assert_int_equal(failed, 0);
  assert_int_equal(wrong, 0);
}

void test_predict_while_training(void **) {
  const auto estimator = trained(2);
  const auto dataset = small_dataset(30, 4);
  std::atomic<int64_t> failed{0}, calls{0};
  std::atomic<bool> ending{false};
  base::Thread thread = assert_ok_value(base::Thread::start("caller", [&] {
    while (!ending) {
      const auto predictor = Predictor::from_estimator(*estimator, dataset->spec(), {});
      if (!predictor.ok()) {
        ++failed;
        continue;
      }
      const auto batch = (*predictor)->run_all(dataset, nullptr);
      if (!batch.ok() || batch->row_count != 30) ++failed;
      ++calls;
    }
  }));
  for (int i = 0; i < 5; ++i)
    train_more(*estimator, 20);
  while (calls == 0 && failed == 0)
    usleep(1000);
  ending = true;
  thread.join();
  assert_int_equal(failed, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_every_row_once_and_in_order),
      cmocka_unit_test(test_streams_are_ordered_and_closable),
      cmocka_unit_test(test_weights_are_packed_once),
      cmocka_unit_test(test_bad_input_is_named),
      cmocka_unit_test(test_reload),
      cmocka_unit_test(test_reload_of_another_model),
      cmocka_unit_test(test_concurrent_callers_see_one_version_each),
      cmocka_unit_test(test_predict_while_training),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
