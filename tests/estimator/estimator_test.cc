// SPDX-License-Identifier: Apache-2.0
#include "estimator/estimator.h"

#include <cmath>

#include "data/pipeline/sources.h"
#include "estimator/fake_distribute.h"
#include "testing.h"

namespace estimator_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;

namespace {

base::Ref<Estimator> make_estimator(ModelFunction function) {
  reset_fake_orders();
  return *Estimator::create(std::move(function), {}, fake_strategy(), {}, {});
}

TrainRequest request_for(data::DatasetRef dataset, int64_t steps) {
  TrainRequest request;
  request.dataset = std::move(dataset);
  request.steps = steps;
  return request;
}

EvaluateRequest evaluation_on(data::DatasetRef dataset) {
  EvaluateRequest request;
  request.dataset = std::move(dataset);
  return request;
}

void test_the_model_function_is_called_once_per_mode(void **) {
  std::atomic<int64_t> calls[3] = {};
  const auto estimator = make_estimator(fake_model_function(calls));
  for (int i = 0; i < 3; ++i) {
    assert_ok(estimator->train(request_for(fake_dataset(10, 1), 2)));
    assert_ok(estimator->evaluate(evaluation_on(fake_dataset(7, 2))));
  }
  assert_int_equal(calls[0], 1);
  assert_int_equal(calls[1], 1);
  assert_int_equal(calls[2], 0);
}

void test_what_a_mode_must_have(void **) {
  const auto with = [](bool loss, bool train, bool metric) {
    return [=](graph::GraphBuilder &b, Mode) -> base::Status {
      const graph::ValueId x = b.model().find_feature("x")->value;
      const graph::ValueId mean = b.reduce_mean(x);
      if (loss) b.set_loss(mean);
      if (metric) b.add_metric("global_step", mean);
      if (train) {
        graph::TrainSpec spec;
        spec.optimizer.op = "sgd_update";
        spec.optimizer.learning_rate = b.constant(0.1, tensor::DType::f32);
        b.set_train(spec);
      }
      return base::Status();
    };
  };
  const data::ElementSpec spec = fake_dataset(4, 2)->spec();
  assert_error_contains(build_model(with(false, false, false), Mode::train, spec), "it set no loss");
  assert_error_contains(build_model(with(true, false, false), Mode::train, spec), "it set no optimizer");
  assert_error_contains(build_model(with(true, true, false), Mode::predict, spec), "it set no output");
  assert_error_contains(build_model(with(false, false, false), Mode::evaluate, spec), "neither a loss nor a metric");
  assert_error_contains(build_model(with(true, true, true), Mode::evaluate, spec), "'global_step' is reserved");
  assert_error_contains(build_model(with(true, true, false), Mode::predict, spec), "in mode PREDICT");
  const ModelFunction failing = [](graph::GraphBuilder &, Mode) -> base::Status {
    return base::unavailable("the user is out");
  };
  assert_int_equal(build_model(failing, Mode::train, spec).code(), base::Code::unavailable);
  assert_error_contains(build_model(failing, Mode::train, spec), "the user is out");
  const ModelFunction wrong = [](graph::GraphBuilder &b, Mode) -> base::Status {
    b.set_loss(b.add(b.model().find_feature("x")->value, b.constant(tensor::Tensor())));
    return base::Status();
  };
  assert_error_contains(build_model(wrong, Mode::train, spec), "mode TRAIN");
}

void test_unbatched_datasets_are_refused(void **) {
  const auto estimator = make_estimator(fake_model_function());
  const auto source = assert_ok_value(
      data::from_slices({{"x", *tensor::Tensor::from_values<float>({2, 1}, {1, 2}), data::Role::feature}}));
  assert_error_contains(estimator->train(request_for(source, 1)), "add batch()");
}

void test_variables_of_modes_must_agree(void **) {
  const auto differing = [](const std::string &name, int64_t size, const std::string &scope) {
    return [=](graph::GraphBuilder &b, Mode mode) -> base::Status {
      const bool train = mode == Mode::train;
      b.push_scope(train ? "layer" : scope);
      const graph::ValueId w = b.variable(train ? "w" : name, tensor::DType::f32, {train ? 1 : size}, {"zeros", {}});
      b.pop_scope();
      const graph::ValueId y = b.add(b.model().find_feature("x")->value, b.reduce_mean(w));
      b.set_output("y", y);
      b.set_loss(b.reduce_mean(y));
      graph::TrainSpec spec;
      spec.optimizer.op = "sgd_update";
      spec.optimizer.learning_rate = b.constant(0.1, tensor::DType::f32);
      b.set_train(spec);
      return base::Status();
    };
  };
  const data::ElementSpec spec = fake_dataset(4, 2)->spec();
  for (const Mode mode : {Mode::evaluate, Mode::predict}) {
    ModelSource renamed(differing("v", 1, "layer"));
    assert_ok(renamed.get(Mode::train, spec));
    assert_error_contains(renamed.get(mode, spec), "variable 'layer/v' of mode");
    assert_error_contains(renamed.get(mode, spec), "did you mean 'layer/w'");
    ModelSource reshaped(differing("w", 2, "layer"));
    assert_ok(reshaped.get(mode, spec));
    assert_error_contains(reshaped.get(Mode::train, spec), "variable 'layer/w' is f32 [2]");
    ModelSource same(differing("w", 1, "layer"));
    assert_ok(same.get(Mode::train, spec));
    assert_ok(same.get(mode, spec));
  }
}

void test_the_model_function_cannot_use_its_estimator(void **) {
  base::Ref<Estimator> estimator;
  base::Status inner;
  const ModelFunction plain = fake_model_function();
  estimator = make_estimator([&, plain](graph::GraphBuilder &b, Mode mode) {
    inner = estimator->state().models.get(Mode::evaluate, fake_dataset(4, 2)->spec()).status();
    return plain(b, mode);
  });
  assert_ok(estimator->train(request_for(fake_dataset(4, 2), 1)));
  assert_int_equal(inner.code(), base::Code::failed_precondition);
}

void test_evaluating_without_weights_is_an_error(void **) {
  const auto estimator = make_estimator(fake_model_function());
  const auto evaluated = estimator->evaluate(evaluation_on(fake_dataset(4, 2)));
  assert_int_equal(evaluated.code(), base::Code::failed_precondition);
  assert_error_contains(evaluated, "there are no weights");
  EvaluateRequest request = evaluation_on(fake_dataset(4, 2));
  request.checkpoint_path = "/nowhere/checkpoint-3";
  assert_int_equal(estimator->evaluate(request).code(), base::Code::not_found);
  assert_int_equal(estimator->global_step(), 0);
}

void test_evaluate(void **) {
  const auto estimator = make_estimator(fake_model_function());
  assert_ok(estimator->train(request_for(fake_dataset(10, 1), 3)));
  const EvaluateResult all = assert_ok_value(estimator->evaluate(evaluation_on(fake_dataset(7, 3))));
  assert_int_equal(all.examples, 7);
  assert_int_equal(all.batches, 3);
  assert_int_equal(all.global_step, 3);
  assert_non_null(all.find("loss"));
  assert_non_null(all.find("spread"));
  assert_null(all.find("accuracy"));
  EvaluateRequest request = evaluation_on(fake_dataset(7, 3));
  request.steps = 2;
  assert_int_equal(assert_ok_value(estimator->evaluate(request)).examples, 6);
  request.steps = 0;
  assert_error_contains(estimator->evaluate(request), "steps is 0");
  assert_error_contains(estimator->evaluate(evaluation_on(nullptr)), "no dataset");
  assert_error_contains(estimator->evaluate(evaluation_on(fake_dataset(0, 3))), "no rows to evaluate");
  request = evaluation_on(fake_dataset(7, 3));
  request.cancel = base::CancelToken::create();
  request.cancel->cancel();
  assert_int_equal(estimator->evaluate(request).code(), base::Code::cancelled);
}

void test_evaluating_within_a_hook(void **) {
  const auto estimator = make_estimator(fake_model_function());
  std::vector<int64_t> steps;
  Hook hook;
  hook.name = "evaluator";
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind != EventKind::begin && event.kind != EventKind::end) return Answer::go_on;
    TUTTI_ASSIGN(const EvaluateResult result, estimator->evaluate(evaluation_on(fake_dataset(4, 2))));
    steps.push_back(result.global_step);
    return Answer::go_on;
  };
  TrainRequest request = request_for(fake_dataset(10, 1), 4);
  request.hooks = {hook};
  assert_ok(estimator->train(request));
  assert_true(steps == std::vector<int64_t>({0, 4}));
}

void test_train_and_evaluate(void **) {
  const auto estimator = make_estimator(fake_model_function());
  std::vector<std::string> seen;
  Hook hook;
  hook.name = "recorder";
  hook.function = [&](const Event &event) -> base::Result<Answer> {
    if (event.kind == EventKind::evaluated)
      seen.push_back(base::concat(event.step, " ", event.find("loss") != nullptr));
    return Answer::go_on;
  };
  TrainAndEvaluateRequest request;
  request.train = request_for(fake_dataset(100, 1), 10);
  request.train.hooks = {hook};
  request.evaluate = evaluation_on(fake_dataset(4, 2));
  request.every_steps = 4;
  const TrainAndEvaluateResult result = assert_ok_value(estimator->train_and_evaluate(request));
  assert_int_equal(result.train.step, 10);
  assert_int_equal(result.evaluate.global_step, 10);
  assert_true(seen == std::vector<std::string>({"4 true", "8 true", "10 true"}));
  seen.clear();
  request.train.steps.reset();
  request.train.dataset = fake_dataset(6, 2);
  request.train.epochs = 2;
  request.every_steps = 0;
  assert_ok(estimator->train_and_evaluate(request));
  assert_true(seen == std::vector<std::string>({"13 true", "16 true"}));
  request.train.hooks[0].function = [](const Event &event) -> base::Result<Answer> {
    return event.kind == EventKind::evaluated ? Answer::stop : Answer::go_on;
  };
  const TrainAndEvaluateResult stopped = assert_ok_value(estimator->train_and_evaluate(request));
  assert_int_equal(stopped.train.reason, EndReason::stopped);
  assert_int_equal(stopped.train.steps, 3);
  request.evaluate.checkpoint_path = "x";
  assert_error_contains(estimator->train_and_evaluate(request), "checkpoint_path");
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_the_model_function_is_called_once_per_mode),
      cmocka_unit_test(test_what_a_mode_must_have),
      cmocka_unit_test(test_unbatched_datasets_are_refused),
      cmocka_unit_test(test_variables_of_modes_must_agree),
      cmocka_unit_test(test_the_model_function_cannot_use_its_estimator),
      cmocka_unit_test(test_evaluating_without_weights_is_an_error),
      cmocka_unit_test(test_evaluate),
      cmocka_unit_test(test_evaluating_within_a_hook),
      cmocka_unit_test(test_train_and_evaluate),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace estimator_test
