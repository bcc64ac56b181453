// SPDX-License-Identifier: Apache-2.0
// The C++17 face: owning handles, builders, and exceptions through callbacks.
#include <tutti/tutti.hpp>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Not tests/testing.h, whose C++ part is C++20.
extern "C" {
#include <cmocka.h>
}
#undef fail

namespace {

void assert_contains(const std::string &text, const char *needle) {
  if (text.find(needle) == std::string::npos)
    print_error("expected a text with \"%s\", got \"%s\"\n", needle, text.c_str());
  assert_true(text.find(needle) != std::string::npos);
}

tutti::Dataset make_dataset(int64_t rows, int64_t batch, tutti_context *context = nullptr) {
  std::vector<float> x(static_cast<size_t>(rows) * 4);
  std::vector<int32_t> y(static_cast<size_t>(rows));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 7 % 11);
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = x[i * 4] > 5 ? 1 : 0;
  const tutti::Tensor features(TUTTI_DTYPE_F32, {rows, 4}, x.data(), rows * 16);
  const tutti::Tensor labels(TUTTI_DTYPE_I32, {rows}, y.data(), rows * 4);
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE, features).slices("y", TUTTI_ROLE_LABEL, labels).batch(batch).prefetch();
  return pipeline.build();
}

void model(tutti::Graph g, int32_t mode) {
  tutti_layer_dense_attrs relu = {};
  relu.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU;
  const tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, g.feature("x"), 8, &relu), 2, nullptr);
  g.output("logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return;
  tutti_metric_accuracy(g, "accuracy", logits, g.label("y"), nullptr);
  g.loss(tutti_loss_sparse_softmax_cross_entropy(g, logits, g.label("y"), nullptr));
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 1e-2), nullptr);
}

/// The code and text of what a call throws; OK when it throws nothing.
template <typename Call>
std::pair<int32_t, std::string> thrown_by(Call &&call) {
  try {
    call();
  } catch (const tutti::Error &error) {
    return {error.code(), error.what()};
  }
  return {TUTTI_OK, ""};
}

void test_train_evaluate_predict(void **) {
  const tutti::Dataset dataset = make_dataset(50, 8);
  assert_int_equal(dataset.cardinality(), 7);
  tutti::Estimator estimator(model, tutti::Options("run").set("seed", 3));
  int steps = 0;
  tutti::Hooks hooks;
  hooks.add(
      [&steps](const tutti_hook_event *event) {
        if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP) ++steps;
        return TUTTI_OK;
      },
      1);
  const tutti::Result result = estimator.train(dataset, tutti::Options("train").set("epochs", 2), hooks);
  assert_int_equal(result.reason(), TUTTI_REASON_EPOCHS);
  assert_int_equal(result.step(), 14);
  assert_int_equal(steps, 14);
  assert_int_equal(estimator.global_step(), 14);
  const double accuracy = estimator.evaluate(dataset).metric("accuracy");
  assert_true(accuracy >= 0 && accuracy <= 1);
  tutti::Predictor predictor(estimator);
  const tutti::Batch batch = predictor.run_all(dataset);
  assert_int_equal(batch.row_count(), 50);
  assert_int_equal(batch.output("logits").element_count(), 100);
  assert_true(batch.output("logits").data<float>() != nullptr);
  assert_null(batch.output("no_such").get());
}

void test_step_functions(void **) {
  const tutti::Dataset dataset = make_dataset(50, 8);
  tutti::Estimator estimator(model, tutti::Options("run").set("seed", 3));
  estimator.add_step_function("again", TUTTI_MODE_TRAIN, model).add_step_function("probe", TUTTI_MODE_PREDICT, model);
  tutti::Session session(estimator, dataset);
  tutti::Iterator iterator(dataset);
  std::vector<tutti::Tensor> batch;
  assert_true(iterator.next());
  for (int64_t i = 0; i < 2; ++i)
    batch.push_back(iterator.component(i));
  const auto [result, values] = session.run_step_function("again", batch);
  assert_int_equal(result.step(), 1);
  assert_int_equal(result.examples(), 8);
  auto [computed, rows] = session.run_step_function("probe", batch);
  assert_int_equal(computed.step(), 1);
  assert_int_equal(rows.gather("logits").element_count(), 16);
  assert_int_equal(rows.reduce("logits", TUTTI_REDUCE_MEAN, 0).element_count(), 2);
  assert_true(rows.local("logits", 0).get() != nullptr);
  assert_null(rows.local("logits", rows.replica_count()).get());
}

void test_regions(void **) {
  const auto recurrent = [](tutti::Graph g, int32_t mode) {
    const tutti_value x = g.feature("x"), w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, nullptr, 0, "ones", 0, 1);
    const int64_t columns = 1;
    const tutti_reduce_sum_attrs sum = {&columns, 1, 0};
    const tutti_value zero = tutti_mul(g, tutti_reduce_sum(g, x, &sum), tutti_graph_constant(g, TUTTI_DTYPE_F32, 0));
    const auto [last, all] = tutti::scan(
        g, {zero}, {x},
        [&](const tutti::Values &states, const tutti::Values &elements) {
          const tutti_value next = tutti_add(g, states[0], tutti_mul(g, elements[0], w));
          return std::pair(tutti::Values{next}, tutti::Values{next, next});
        },
        1, true);
    const tutti_value early =
        tutti_less(g, tutti_graph_get_completed_steps(g), tutti_graph_constant(g, TUTTI_DTYPE_F32, 9));
    const tutti::Values chosen = tutti::cond(
        g, early, [&] { return last; }, [&] { return tutti::Values{zero}; });
    const tutti::Values again =
        tutti::call(g, chosen, [&](const tutti::Values &inputs) { return tutti::Values{tutti_square(g, inputs[0])}; });
    const tutti::Values none = tutti::custom_gradient(
        g, again, [&](const tutti::Values &inputs) { return tutti::Values{tutti_neg(g, tutti_neg(g, inputs[0]))}; },
        [&](const tutti::Values &, const tutti::Values &, const tutti::Values &gradients) {
          return tutti::Values{tutti_mul(g, gradients[0], tutti_graph_constant(g, TUTTI_DTYPE_F32, 0))};
        });
    assert_int_equal(all.size(), 2);
    g.output("p", none[0]);
    if (mode == TUTTI_MODE_PREDICT) return;
    tutti_graph_set_loss(g, tutti_reduce_mean(g, none[0], nullptr));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1), nullptr);
  };
  const tutti::Dataset dataset = make_dataset(8, 8);
  tutti::Estimator estimator(recurrent);
  const double loss = estimator.train(dataset).loss();
  assert_true(loss > 0);
  assert_true(*estimator.read_variable("w").data<float>() == 1);  // whose gradient is none
  assert_true(std::abs(estimator.evaluate(dataset).loss() - loss) < 1e-5);
}

void test_update_rule(void **) {
  const auto ruled = [](tutti::Graph g, int32_t mode) {
    const int64_t two = 2, columns = 1;
    const tutti_reduce_sum_attrs sum = {&columns, 1, 0};
    const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &two, 1, "constant", 2, 1);
    const tutti_value y = tutti_reduce_sum(g, tutti_mul(g, g.feature("x"), w), &sum);
    g.output("y", y);
    if (mode == TUTTI_MODE_PREDICT) return;
    tutti_graph_set_loss(g, tutti_reduce_mean(g, y, nullptr));
    tutti::UpdateRuleOptions options;
    options.slots = {{"velocity", 1}, {"kept"}};
    options.weight_decay = 0.25;
    options.clip_value = 8;
    options.clip_norm = 5;
    options.average_decay = 0.5;
    options.average_ramp = true;
    options.average_start = 1;
    tutti::update_rule(g, tutti_schedule_constant(g, 0.1), options, [&](const tutti::VariableUpdate &u) {
      const tutti_value half = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5);
      const tutti_value velocity = tutti_add(g, tutti_mul(g, u.slots[0], half), u.gradient);
      const tutti_value decayed = tutti_add(g, velocity, tutti_mul(g, u.weight_decay, u.weight));
      const tutti_value rate = tutti_div(g, u.learning_rate, tutti_cast(g, u.count, TUTTI_DTYPE_F32));
      return std::pair(tutti_sub(g, u.weight, tutti_mul(g, rate, decayed)), tutti::Values{velocity, u.slots[1]});
    });
  };
  const float rows[] = {5, 10, 7, 14};
  const tutti::Tensor x(TUTTI_DTYPE_F32, {2, 2}, rows, sizeof rows);
  const tutti::Dataset dataset = tutti::Pipeline().slices("x", TUTTI_ROLE_FEATURE, x).repeat().batch(2).build();
  tutti::Estimator estimator(ruled);
  estimator.train(dataset, tutti::Options("train").set("steps", 2));
  // The gradient 6, 12 becomes 6, 8, and then 3, 4. The velocity is 3.5, 4.5 and 4.75, 6.25. The weight is first
  // 2 - 0.1 (3.5 + 0.5) = 1.6 and 2 - 0.1 (4.5 + 0.5) = 1.5, then 1.6 - 0.05 (4.75 + 0.4) and
  // 1.5 - 0.05 (6.25 + 0.375). The average is first the weight, and then has a decay of 2 / 11.
  const std::pair<const char *, std::array<double, 2>> wanted[] = {
      {"w", {1.3425, 1.16875}},
      {"w/velocity", {4.75, 6.25}},
      {"w/kept", {0, 0}},
      {"w/average", {(2 * 1.6 + 9 * 1.3425) / 11, (2 * 1.5 + 9 * 1.16875) / 11}}};
  for (const auto &[name, numbers] : wanted) {
    const tutti::Tensor variable = estimator.read_variable(name);
    for (size_t i = 0; i < 2; ++i)
      assert_true(std::abs(double(variable.data<float>()[i]) - numbers[i]) < 1e-5);
  }
}

/// The rule for matrices is used where a variable is one: w - 0.1 * g (wt w) with w = 2 I, where g is 12 in the first
/// row and 24 in the second.
void test_update_rule_for_matrices(void **) {
  const auto ruled = [](tutti::Graph g, int32_t mode) {
    const int64_t dims[] = {2, 2};
    const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, dims, 2, "identity(2)", 0, 1);
    const tutti_value y = tutti_matmul(g, g.feature("x"), w, nullptr);
    g.output("y", y);
    if (mode == TUTTI_MODE_PREDICT) return;
    tutti_graph_set_loss(g,
                         tutti_mul(g, tutti_reduce_mean(g, y, nullptr), tutti_graph_constant(g, TUTTI_DTYPE_F32, 4)));
    const tutti_value rate = tutti_schedule_constant(g, 0.1);
    tutti::update_rule(g, rate, {},
                       [](const tutti::VariableUpdate &u) { return std::pair(u.weight, tutti::Values{}); });
    tutti::UpdateRuleOptions options;
    options.matrices = true;
    tutti::update_rule(g, rate, options, [&](const tutti::VariableUpdate &u) {
      const tutti_matmul_attrs transposed = {1, 0};
      const tutti_value square = tutti_matmul(g, u.weight, u.weight, &transposed);
      const tutti_value step = tutti_mul(g, u.learning_rate, tutti_matmul(g, u.gradient, square, nullptr));
      return std::pair(tutti_sub(g, u.weight, step), tutti::Values{});
    });
  };
  const float rows[] = {5, 10, 7, 14};
  const tutti::Tensor x(TUTTI_DTYPE_F32, {2, 2}, rows, sizeof rows);
  const tutti::Dataset dataset = tutti::Pipeline().slices("x", TUTTI_ROLE_FEATURE, x).batch(2).build();
  tutti::Estimator estimator(ruled);
  estimator.train(dataset);
  const tutti::Tensor variable = estimator.read_variable("w");
  const std::array<double, 4> wanted = {-2.8, -4.8, -9.6, -7.6};
  for (size_t i = 0; i < wanted.size(); ++i)
    assert_true(std::abs(double(variable.data<float>()[i]) - wanted[i]) < 1e-5);
}

void test_handles_are_values(void **) {
  const int64_t before = tutti_debug_live_objects("tensor");
  {
    tutti::Tensor a(TUTTI_DTYPE_F32, {2, 3});
    tutti::Tensor b = a;
    assert_ptr_equal(a.get(), b.get());
    const tutti::Tensor c = std::move(a);
    assert_null(a.get());
    assert_int_equal(c.element_count(), 6);
    b = tutti::Tensor(TUTTI_DTYPE_I32, {1});
    assert_int_equal(tutti_debug_live_objects("tensor"), before + 2);
  }
  assert_int_equal(tutti_debug_live_objects("tensor"), before);
}

void test_errors_are_exceptions(void **) {
  const auto schema = thrown_by([] { tutti::Options("no_such"); });
  assert_int_equal(schema.first, TUTTI_NOT_FOUND);
  assert_contains(schema.second, "no_such");
  const auto option = thrown_by([] { tutti::Estimator(model, tutti::Options("run").set("sed", 1)); });
  assert_int_equal(option.first, TUTTI_INVALID_ARGUMENT);
  assert_contains(option.second, "did you mean 'seed'?");
  const auto empty = thrown_by([] { tutti::Pipeline().build(); });
  assert_int_equal(empty.first, TUTTI_FAILED_PRECONDITION);
}

void test_exceptions_of_callbacks(void **) {
  const tutti::Dataset dataset = make_dataset(8, 4);
  const auto model_error = thrown_by([&] {
    tutti::Estimator([](tutti::Graph, int32_t) { throw std::runtime_error("the recipe is lost"); }).train(dataset);
  });
  assert_int_equal(model_error.first, TUTTI_UNKNOWN);
  assert_contains(model_error.second, "the recipe is lost");

  tutti::Hooks hooks;
  hooks.add([](const tutti_hook_event *) -> int32_t { throw 7; }, 1);
  assert_true(tutti::Error(nullptr).json().empty());
  const auto hook_error = thrown_by([&] { tutti::Estimator(model).train(dataset, tutti::Options("train"), hooks); });
  assert_int_equal(hook_error.first, TUTTI_UNKNOWN);
  assert_contains(hook_error.second, "unknown exception");

  const auto map_error = thrown_by([&] {
    tutti::Pipeline pipeline;
    tutti_pipeline_add_dataset(pipeline, dataset);
    pipeline.map([](tutti::Graph) { throw std::out_of_range("no such pixel"); }).build();
  });
  assert_int_equal(map_error.first, TUTTI_UNKNOWN);
  assert_contains(map_error.second, "no such pixel");
}

void test_map(void **) {
  tutti::Pipeline pipeline;
  pipeline.slices("x", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_F32, {4}));
  int built = 0;
  pipeline.map([&built](tutti::Graph g) {
    ++built;
    g.output("x", tutti_add(g, g.feature("x"), tutti_graph_constant(g, TUTTI_DTYPE_F32, 3)));
  });
  assert_int_equal(built, 1);
  assert_int_equal(pipeline.build().cardinality(), 4);
  pipeline = tutti::Pipeline();
  pipeline.slices("x", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_F32, {4})).batch(2);
  pipeline.map_on_device([](tutti::Graph g) { g.output("x", tutti_neg(g, g.feature("x"))); }).prefetch();
  const tutti::Dataset mapped = pipeline.build();
  assert_string_equal(tutti_dataset_get_lint(mapped.get()), "");
  pipeline = tutti::Pipeline();
  pipeline.tensor("x", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_F32, {4}));
  assert_int_equal(pipeline.build().cardinality(), 1);
}

void test_hooks_of_the_library(void **) {
  char path[] = "/tmp/tutti-metrics-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  tutti::Hooks hooks;
  hooks.add_progress(TUTTI_PROGRESS_LINES).add_metrics_file(path, TUTTI_METRICS_JSON_LINES, 1);
  tutti::Estimator(model).train(make_dataset(8, 4), tutti::Options("train").set("steps", 2), hooks);
  assert_true(lseek(file, 0, SEEK_END) > 100);
  close(file);
  unlink(path);
}

void test_stop(void **) {
  tutti::Cancel cancel;
  cancel.stop();
  assert_int_equal(cancel.state(), TUTTI_CANCEL_STOP);
  tutti::Estimator estimator(model);
  tutti::Hooks hooks;
  int32_t state_in_hook = -1;
  hooks.add(
      [&](const tutti_hook_event *) {
        state_in_hook = tutti::Cancel::current_state();
        return TUTTI_OK;
      },
      0);
  const tutti::Result result = estimator.train(make_dataset(8, 4), tutti::Options("train"), hooks, cancel);
  assert_int_equal(state_in_hook, TUTTI_CANCEL_STOP);
  assert_int_equal(tutti::Cancel::current_state(), TUTTI_CANCEL_NONE);
  assert_int_equal(result.reason(), TUTTI_REASON_STOPPED);
  assert_int_equal(result.step(), 0);
}

void test_causes_survive_a_callback(void **) {
  // The error of a call inside a callback, with its own cause, is the cause of what the outer call throws.
  const tutti::Dataset dataset = make_dataset(8, 4);
  tutti::Hooks hooks;
  hooks.add(
      [&](const tutti_hook_event *) -> int32_t {
        tutti::Estimator([](tutti::Graph, int32_t) { throw std::runtime_error("the recipe is lost"); }).train(dataset);
        return TUTTI_OK;
      },
      1);
  bool thrown = false;
  try {
    tutti::Estimator(model).train(dataset, tutti::Options("train"), hooks);
  } catch (const tutti::Error &error) {
    thrown = true;
    int depth = 1, of_the_user = 0;
    tutti::Error innermost = error;
    for (; innermost.has_cause(); ++depth) {
      innermost = innermost.cause();
      of_the_user += innermost.domain() == "user";
    }
    assert_true(depth >= 3);
    assert_int_equal(of_the_user, 1);
    assert_string_equal(innermost.message().c_str(), "the recipe is lost");
  }
  assert_true(thrown);
}

void test_iterator_feed_and_split(void **) {
  tutti::Feed feed(8);
  feed.declare("x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, {2});
  const tutti::Dataset dataset = tutti::Pipeline().feed(feed).build();
  for (float i = 0; i < 3; ++i) {
    const float row[] = {i, 10 * i};
    feed.push({tutti::Tensor(TUTTI_DTYPE_F32, {2}, row, sizeof row)});
  }
  feed.finish();
  tutti::Iterator iterator(dataset);
  tutti::Tensor kept;
  int count = 0;
  while (iterator.next()) {
    if (count++ == 1) kept = iterator.component(0);
  }
  assert_int_equal(count, 3);
  assert_true(kept.data<float>()[1] == 10);
  assert_null(iterator.component(0).get());

  tutti::Feed failing(8);
  failing.declare("x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, {});
  tutti::Iterator reader(tutti::Pipeline().feed(failing).build());
  assert_int_equal(failing.position(), 0);
  failing.fail(TUTTI_DATA_LOSS, "the sensor is broken");
  const auto broken = thrown_by([&] { reader.next(); });
  assert_int_equal(broken.first, TUTTI_DATA_LOSS);
  assert_contains(broken.second, "the sensor is broken");

  const std::vector<int64_t> counts = make_dataset(10, 3).count_classes("y");
  assert_int_equal(counts.size(), 2);
  assert_int_equal(counts[0] + counts[1], 10);
  assert_true(make_dataset(10, 3).count_classes("y", 2) == counts);
  assert_int_equal(thrown_by([] { make_dataset(10, 3).count_classes("y", 1); }).first, TUTTI_OUT_OF_RANGE);
  const int64_t words[] = {32, 33, 34, 35, 0x616162};  // "b", "a", "a" behind their offsets
  tutti::Pipeline corpus;
  corpus.slices("text", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_BYTES, {3}, words, 35));
  const auto [texts, often] = corpus.build().count_texts("text");
  assert_int_equal(texts.element_count(), 2);
  assert_string_equal(texts.element(0).c_str(), "a");
  assert_string_equal(texts.element(2).c_str(), "");
  assert_true(often.data<int64_t>()[0] == 2 && often.data<int64_t>()[1] == 1);
  const auto [head, tail] = make_dataset(10, 1).split(4);
  assert_int_equal(head.cardinality(), 4);
  assert_int_equal(tail.cardinality(), 6);
  tutti::Iterator first(tail), second(tail);
  assert_true(first.next() && first.next());
  second.restore(first.save());
  assert_true(first.next() && second.next());
  assert_true(first.component(0).data<float>()[0] == second.component(0).data<float>()[0]);
}

void test_what_objects_tell(void **) {
  tutti::Context context;
  std::string log;
  context.set_log([&](int32_t severity, const char *text) {
    log += text;
    if (severity >= TUTTI_LOG_INFO) throw std::runtime_error("a log must not throw");
  });
  const tutti::Dataset dataset = make_dataset(12, 4, context);
  const tutti::Options run = tutti::Options("run").set("seed", 2);
  assert_contains(run.json(), "\"seed\"");
  tutti::Estimator estimator(model, run, nullptr, context);
  assert_contains(estimator.estimate_memory(dataset, 4), "\"outputs\":0");
  assert_int_equal(estimator.find_batch_size(dataset, 9), 9);
  const tutti::Result result = estimator.train(dataset, tutti::Options("train").set("steps", 2));
  const std::vector<std::string> metrics = result.metric_names();
  assert_true(std::find(metrics.begin(), metrics.end(), "accuracy") != metrics.end());
  assert_true(!log.empty());
  context.set_log(nullptr);
  const std::string until_here = log;
  estimator.train(dataset, tutti::Options("train").set("steps", 2));
  assert_string_equal(log.c_str(), until_here.c_str());
  const tutti::Batch batch = tutti::Predictor(estimator).run_all(dataset);
  const std::vector<std::string> outputs = batch.output_names();
  assert_true(std::find(outputs.begin(), outputs.end(), "logits") != outputs.end());
  tutti::Hooks hooks;
  hooks.add([](const tutti_hook_event *) -> int32_t { throw std::runtime_error("enough"); }, 1);
  try {
    estimator.train(dataset, tutti::Options("train"), hooks);
    assert_true(false);
  } catch (const tutti::Error &error) {
    assert_int_equal(error.subcode(), 0);
    for (const auto &[key, value] : error.details())
      assert_true(!key.empty() && !value.empty());
  }
}

void test_session_variables_and_stream(void **) {
  const tutti::Dataset dataset = make_dataset(12, 4);
  tutti::Estimator estimator(model, tutti::Options("run").set_json("{\"seed\": 2}"));
  tutti::Session session(estimator, dataset, tutti::Options("train").set("steps", 2));
  assert_int_equal(session.run(1).reason(), 0);
  assert_int_equal(session.run(5).reason(), TUTTI_REASON_MAX_STEPS);
  assert_int_equal(session.close().step(), 2);
  assert_int_equal(thrown_by([&] { session.close(); }).first, TUTTI_FAILED_PRECONDITION);

  assert_contains(estimator.variable_names().front(), "dense");
  tutti::Tensor kernel = estimator.read_variable("dense/kernel");
  assert_int_equal(kernel.dim(0), 4);
  for (int64_t i = 0; i < kernel.element_count(); ++i)
    kernel.mutable_data<float>()[i] = 0;
  estimator.write_variable("dense/kernel", kernel);
  assert_true(estimator.read_variable("dense/kernel").data<float>()[3] == 0);

  tutti::Predictor predictor(estimator);
  assert_int_equal(predictor.step(), 2);
  assert_contains(predictor.signature(), "logits");
  assert_contains(predictor.plan(3), "\"kernels\":[{");
  tutti::PredictionStream stream(predictor, dataset);
  int64_t rows = 0;
  while (const tutti::Batch batch = stream.next())
    rows += batch.row_count();
  assert_int_equal(rows, 12);
  const tutti::Batch one = predictor.run({{"x", tutti::Tensor(TUTTI_DTYPE_F32, {1, 4})}});
  assert_int_equal(one.output("logits").dim(0), 1);
}

void test_batches_and_outputs(void **) {
  tutti::Context context(tutti::Options("context").set("logical_devices", 3));
  const tutti::Strategy all = tutti::Strategy::mirrored(context);
  tutti::Estimator estimator(
      [](tutti::Graph g, int32_t) {
        const int64_t dims[] = {1};
        const tutti_value slope = tutti_graph_variable(g, "slope", TUTTI_DTYPE_F32, dims, 1, "ones", 0, 1);
        const tutti_value line = tutti_mul(g, g.feature("x"), slope);
        g.output("line", line);
        g.loss(tutti_reduce_mean(g, line, nullptr));
        tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.5), nullptr);
      },
      tutti::Options("run").set_json("{\"keep_outputs\": true, \"keep_gradients\": true}"), all, context);
  assert_int_equal(all.devices().size(), 3);
  assert_string_equal(all.devices()[2].c_str(), context.device_name(2).c_str());
  assert_contains(context.describe_device(2), all.devices()[2].c_str());
  assert_int_equal(all.context().device_count(), 3);
  const tutti::Strategy central = tutti::Strategy::central_storage(all.devices()[1].c_str(), {}, context);
  assert_string_equal(central.devices()[0].c_str(), all.devices()[1].c_str());
  assert_int_equal(tutti::Strategy::central_storage(nullptr, {all.devices()[2]}, context).replica_count(), 1);
  tutti::Feed feed(2, context);
  feed.declare("x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, {}).set_batch_size(5);
  tutti::Session session(estimator, tutti::Pipeline(context).feed(feed).build());
  float slope = 1;
  for (const int64_t rows : {5, 1, 4}) {
    std::vector<float> x;
    float mean = 0;
    for (int64_t i = 0; i < rows; ++i) {
      x.push_back(static_cast<float>(i + rows) / 8);
      mean += x.back() / static_cast<float>(rows);
    }
    feed.push({tutti::Tensor(TUTTI_DTYPE_F32, {rows}, x.data(), rows * 4)});
    const tutti::Result result = session.run(1);
    assert_int_equal(result.examples(), rows);
    assert_true(std::fabs(result.loss() - static_cast<double>(mean * slope)) < 1e-6);
    const tutti::Tensor line = estimator.read_output("line");
    assert_int_equal(line.element_count(), rows);
    for (size_t i = 0; i < x.size(); ++i)
      assert_true(std::fabs(line.data<float>()[i] - x[i] * slope) < 1e-6f);
    assert_true(std::fabs(estimator.read_gradient("slope").data<float>()[0] - mean) < 1e-6f);
    slope -= 0.5f * mean;
    assert_true(std::fabs(estimator.read_variable("slope").data<float>()[0] - slope) < 1e-6f);
  }
  const auto too_many = thrown_by([&] { feed.push({tutti::Tensor(TUTTI_DTYPE_F32, {6})}); });
  assert_int_equal(too_many.first, TUTTI_INVALID_ARGUMENT);
  assert_contains(too_many.second, "6 rows, expected 1 to 5");
  assert_int_equal(thrown_by([&] { estimator.read_output("lines"); }).first, TUTTI_NOT_FOUND);
  assert_int_equal(thrown_by([&] { estimator.read_gradient("slop"); }).first, TUTTI_NOT_FOUND);
  assert_int_equal(thrown_by([&] { feed.set_batch_size(7); }).first, TUTTI_FAILED_PRECONDITION);
  feed.finish();
  assert_int_equal(session.run(1).reason(), TUTTI_REASON_END_OF_INPUT);
  assert_int_equal(session.close().examples(), 10);
}

void test_records(void **) {
  char path[] = "/tmp/tutti-records-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  const int64_t seven = 7;
  tutti::RecordWriter writer(path, "zlib");
  writer.feature("n", tutti::Tensor(TUTTI_DTYPE_I64, {}, &seven, 8)).write_example().write("not an example").close();
  try {
    writer.write("late");
    assert_true(false);
  } catch (const tutti::Error &error) {
    assert_int_equal(error.code(), TUTTI_FAILED_PRECONDITION);
  }
  const char *paths[] = {path}, *features[] = {"n: i64"};
  tutti::Pipeline pipeline;
  tutti_source_tfrecord(pipeline, paths, 1, nullptr);
  tutti_pipeline_parse_example(pipeline, features, 1, nullptr);
  const tutti::Dataset dataset = pipeline.build();
  tutti::Iterator iterator(dataset);
  assert_true(iterator.next());
  assert_int_equal(*static_cast<const int64_t *>(tutti_tensor_get_data(iterator.component(0))), 7);
  unlink(path);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_causes_survive_a_callback),
    cmocka_unit_test(test_iterator_feed_and_split),
    cmocka_unit_test(test_what_objects_tell),
    cmocka_unit_test(test_session_variables_and_stream),
    cmocka_unit_test(test_train_evaluate_predict),
    cmocka_unit_test(test_step_functions),
    cmocka_unit_test(test_regions),
    cmocka_unit_test(test_update_rule),
    cmocka_unit_test(test_update_rule_for_matrices),
    cmocka_unit_test(test_handles_are_values),
    cmocka_unit_test(test_errors_are_exceptions),
    cmocka_unit_test(test_exceptions_of_callbacks),
    cmocka_unit_test(test_map),
    cmocka_unit_test(test_hooks_of_the_library),
    cmocka_unit_test(test_stop),
    cmocka_unit_test(test_batches_and_outputs),
    cmocka_unit_test(test_records),
};

}  // namespace

int main() {
  static_cast<void>(tutti_context_get_device_count(nullptr));  // the default context lives for ever
  const int64_t before = tutti_debug_live_objects(nullptr);
  const int failures = cmocka_run_group_tests(tests, nullptr, nullptr);
  if (tutti_debug_live_objects(nullptr) == before) return failures;
  print_error("objects are alive after the tests\n");
  return 1;
}
