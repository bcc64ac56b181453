// SPDX-License-Identifier: Apache-2.0
//
// Estimators over real trainers, on the reference backend.
#include <unistd.h>
#include <atomic>

#include <cmath>

#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/reader.h"
#include "estimator/small_training.h"
#include "testing.h"

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using checkpoint::TemporaryDirectory;

namespace {

RunConfig config_in(const std::string &model_dir) {
  RunConfig config;
  config.model_dir = model_dir;
  config.save_checkpoints_steps = 5;
  config.log_step_count_steps = 0;
  config.level = backend::Level::repeatable;
  config.seed = 11;
  return config;
}

TrainRequest request_for(data::DatasetRef dataset) {
  TrainRequest request;
  request.dataset = std::move(dataset);
  return request;
}

data::DatasetRef endless() {
  data::Pipeline pipeline(small_dataset(50, 7, true));
  pipeline.repeat();
  const auto dataset = pipeline.build();
  return dataset.ok() ? *dataset : nullptr;
}

EvaluateRequest evaluation_on(data::DatasetRef dataset) {
  EvaluateRequest request;
  request.dataset = std::move(dataset);
  return request;
}

void assert_same_files(const std::string &a, const std::string &b) {
  for (const std::string &name : assert_ok_value(base::list_directory(a))) {
    const std::string left = assert_ok_value(base::read_file(a + "/" + name));
    const std::string right = assert_ok_value(base::read_file(b + "/" + name));
    if (left != right) print_error("%s differs\n", name.c_str());
    assert_true(left == right);
  }
}

std::vector<float> all_weights(Estimator &estimator) {
  std::vector<float> all;
  const auto version = estimator.weights("");
  if (!version.ok()) return all;
  for (const char *name : {"hidden/kernel", "hidden/bias", "output/kernel", "output/bias"}) {
    const int64_t at = (*version)->find(checkpoint::StateRole::weight, name);
    if (at < 0) return {};
    const auto tensor = (*version)->read(static_cast<size_t>(at));
    if (!tensor.ok()) return {};
    for (int64_t i = 0; i < tensor->elements(); ++i) {
      all.push_back(tensor->data_as<float>()[i]);
    }
  }
  return all;
}

void test_loss_falls(void **) {
  for (const int32_t replicas : {1, 2, 3}) {
    const auto estimator = assert_ok_value(small_estimator(replicas, {}));
    const auto test_set = small_dataset(33, 7);
    TrainRequest request = request_for(small_dataset(50, 7, true));
    request.steps = 1;
    assert_ok(estimator->train(request));
    const EvaluateResult before = assert_ok_value(estimator->evaluate(evaluation_on(test_set)));
    request.steps.reset();
    request.epochs = 20;
    const TrainResult trained = assert_ok_value(estimator->train(request));
    assert_int_equal(trained.examples, 1000);
    assert_int_equal(trained.step, 161);
    const EvaluateResult after = assert_ok_value(estimator->evaluate(evaluation_on(test_set)));
    assert_int_equal(after.examples, 33);
    assert_true(*after.find("loss") < *before.find("loss") / 4);
    assert_non_null(after.find("absolute_error"));
  }
}

// The loss of an evaluation weighs examples, not batches.
void test_evaluation_does_not_depend_on_batches(void **) {
  const auto estimator = assert_ok_value(small_estimator(2, {}));
  TrainRequest request = request_for(small_dataset(50, 7));
  request.steps = 3;
  assert_ok(estimator->train(request));
  const double whole = *assert_ok_value(estimator->evaluate(evaluation_on(small_dataset(33, 33)))).find("loss");
  for (const int64_t batch : {1, 4, 32}) {
    const auto result = assert_ok_value(estimator->evaluate(evaluation_on(small_dataset(33, batch))));
    assert_true(std::fabs(*result.find("loss") - whole) <= 1e-5 * whole);
  }
}

void test_equal_runs_give_equal_bytes(void **) {
  TemporaryDirectory one, two;
  for (const std::string &path : {one.path(), two.path()}) {
    TrainRequest request = request_for(small_dataset(50, 7, true));
    request.epochs = 2;
    assert_ok(assert_ok_value(small_estimator(2, config_in(path)))->train(request));
  }
  for (const char *name : {"/checkpoint-0", "/checkpoint-5", "/checkpoint-10", "/checkpoint-15", "/checkpoint-16"}) {
    assert_same_files(one.path() + name, two.path() + name);
  }
}

void test_a_stopped_run_goes_on_exactly(void **) {
  TemporaryDirectory whole, split;
  TrainRequest request = request_for(small_dataset(50, 7, true));
  request.epochs = 3;
  assert_ok(assert_ok_value(small_estimator(2, config_in(whole.path())))->train(request));
  Hook hook;
  hook.name = "stopper";
  hook.every_steps = 7;
  hook.function = [](const Event &event) -> base::Result<Answer> {
    return event.kind == EventKind::step ? Answer::stop : Answer::go_on;
  };
  for (int call = 0; call < 4; ++call) {
    request.hooks = {hook};
    assert_ok(assert_ok_value(small_estimator(2, config_in(split.path())))->train(request));
  }
  assert_same_files(whole.path() + "/checkpoint-24", split.path() + "/checkpoint-24");
}

void test_going_on_with_another_number_of_replicas(void **) {
  TemporaryDirectory whole, split;
  TrainRequest request = request_for(endless());
  request.max_steps = 20;
  const auto one = assert_ok_value(small_estimator(1, config_in(whole.path())));
  assert_ok(one->train(request));
  request.max_steps = 9;
  assert_ok(assert_ok_value(small_estimator(3, config_in(split.path())))->train(request));
  request.max_steps = 20;
  const auto two = assert_ok_value(small_estimator(2, config_in(split.path())));
  assert_int_equal(assert_ok_value(two->train(request)).steps, 11);
  const std::vector<float> expected = all_weights(*one), got = all_weights(*two);
  assert_int_equal(expected.size(), 37);
  assert_int_equal(got.size(), 37);
  for (size_t i = 0; i < got.size(); ++i) {
    assert_true(std::fabs(got[i] - expected[i]) <= 1e-3 * (std::fabs(expected[i]) + 1e-3));
  }
}

void test_invariant_level_gives_the_same_weights_for_every_n(void **) {
  std::string bytes;
  for (const int32_t replicas : {1, 2, 4}) {
    TemporaryDirectory directory;
    RunConfig config = config_in(directory.path());
    config.level = backend::Level::invariant;
    TrainRequest request = request_for(endless());
    request.steps = 10;
    assert_ok(assert_ok_value(small_estimator(replicas, config))->train(request));
    const std::string weights =
        assert_ok_value(base::read_file(directory.path() + "/checkpoint-10/weights.safetensors"));
    if (bytes.empty()) bytes = weights;
    assert_true(bytes == weights);
  }
}

void test_a_loss_that_is_not_finite_names_the_step(void **) {
  TemporaryDirectory directory;
  SmallModel model;
  model.learning_rate = 1e30;
  TrainRequest request = request_for(small_dataset(50, 7));
  request.epochs = 3;
  const auto trained = assert_ok_value(small_estimator(1, config_in(directory.path()), model))->train(request);
  assert_false(trained.ok());
  assert_error_contains(trained, "step");
  // What was kept is from before it.
  const auto newest = assert_ok_value(checkpoint::read_newest_checkpoint(directory.path(), {}, base::Logger()));
  for (size_t i = 0; i < newest.state->entries().size(); ++i) {
    const tensor::Tensor tensor = assert_ok_value(newest.state->read(i));
    for (int64_t e = 0; e < tensor.elements(); ++e)
      assert_true(std::isfinite(tensor.data_as<float>()[e]));
  }
}

void test_cancel_from_another_thread(void **) {
  const auto estimator = assert_ok_value(small_estimator(2, {}));
  TrainRequest request = request_for(endless());
  request.cancel = base::CancelToken::create();
  base::Thread canceller = assert_ok_value(base::Thread::start("canceller", [token = request.cancel] {
    while (token->level() == base::CancelLevel::none) {
      usleep(30000);
      token->cancel();
    }
  }));
  assert_int_equal(estimator->train(request).code(), base::Code::cancelled);
  canceller.join();
  const int64_t step = estimator->global_step();
  request.cancel = base::CancelToken::create(base::Deadline::after_ms(50));
  assert_int_equal(estimator->train(request).code(), base::Code::deadline_exceeded);
  assert_true(estimator->global_step() >= step);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_loss_falls),
      cmocka_unit_test(test_evaluation_does_not_depend_on_batches),
      cmocka_unit_test(test_equal_runs_give_equal_bytes),
      cmocka_unit_test(test_a_stopped_run_goes_on_exactly),
      cmocka_unit_test(test_going_on_with_another_number_of_replicas),
      cmocka_unit_test(test_invariant_level_gives_the_same_weights_for_every_n),
      cmocka_unit_test(test_a_loss_that_is_not_finite_names_the_step),
      cmocka_unit_test(test_cancel_from_another_thread),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
