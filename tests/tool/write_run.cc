// SPDX-License-Identifier: Apache-2.0
//
// Trains small models and leaves their records, for the tests of `tutti report` and `tutti explain`.
//
// usage: write_run KIND FOLDER
//
//   plain      two trainings with evaluations, a confusion matrix and a profile; FOLDER/expected.json has what the
//              results of the library say
//   slow_map   a map on the host that sleeps
//   shapes     rows of thirty lengths
//   uneven     batches of three rows on two replicas
//   failed     a training that is cancelled, and one with labels that are no classes
//   many       a million steps in event files, without a training
#include <tutti/tutti.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_builder.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using nlohmann::json;

constexpr int64_t kClasses = 3;
// A metric's name is any text.
constexpr const char *kHostileName = "</script><b>&\"half'";

tutti::Dataset make_dataset(int64_t rows, int64_t batch, int64_t passes, tutti_context *context) {
  std::vector<float> x(static_cast<size_t>(rows) * 4);
  std::vector<int32_t> y(static_cast<size_t>(rows));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 7 % 11) / 11;
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<int32_t>(x[i * 4] * kClasses);
  const tutti::Tensor features(TUTTI_DTYPE_F32, {rows, 4}, x.data(), rows * 16);
  const tutti::Tensor labels(TUTTI_DTYPE_I32, {rows}, y.data(), rows * 4);
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE, features).slices("y", TUTTI_ROLE_LABEL, labels);
  if (passes > 1) pipeline.repeat(passes);
  return pipeline.batch(batch).build();
}

void model(tutti::Graph g, int32_t mode) {
  tutti_layer_dense_attrs relu = {};
  relu.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU;
  const tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, g.feature("x"), 8, &relu), kClasses, nullptr);
  g.output("logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return;
  const tutti_value loss = tutti_loss_sparse_softmax_cross_entropy(g, logits, g.label("y"), nullptr);
  tutti_metric_accuracy(g, "accuracy", logits, g.label("y"), nullptr);
  tutti_graph_add_metric(g, kHostileName, tutti_mul(g, loss, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5)));
  if (mode == TUTTI_MODE_EVAL) tutti_metric_confusion_matrix(g, "confusion_matrix", logits, g.label("y"), nullptr);
  g.loss(loss);
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 1e-2), nullptr);
}

tutti::Context make_context(int devices) {
  return tutti::Context(tutti::Options("context").set("backend", "cpu").set("logical_devices", devices));
}

tutti::Options run_options(const std::string &folder) {
  return tutti::Options("run").set("model_dir", folder).set("save_summary_steps", 5).set("save_checkpoints_steps", 0);
}

json expected_of(const tutti::Result &result) {
  json metrics = json::object();
  for (const std::string &name : result.metric_names())
    if (!std::isnan(result.metric(name.c_str()))) metrics[name] = result.metric(name.c_str());
  return {{"step", result.step()}, {"examples", result.examples()}, {"loss", result.loss()}, {"metrics", metrics}};
}

json matrix_of(const tutti::Result &result) {
  const tutti::Tensor matrix = result.read_metric("confusion_matrix");
  const auto *const elements = static_cast<const double *>(tutti_tensor_get_data(matrix));
  json rows = json::array();
  for (int64_t i = 0; i < kClasses; ++i)
    rows.push_back(std::vector<double>(elements + i * kClasses, elements + (i + 1) * kClasses));
  return rows;
}

void write_plain(const std::string &folder) {
  tutti::Context context = make_context(2);
  const tutti::Dataset train = make_dataset(96, 8, 20, context), test = make_dataset(30, 8, 1, context);
  const tutti::Options run = run_options(folder).set("seed", 7).set("determinism", "repeatable");
  json expected;
  std::vector<std::pair<int64_t, double>> losses;
  tutti::Hooks hooks;
  const auto watch = [&](const tutti_hook_event *event) -> int32_t {
    if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP)
      losses.emplace_back(tutti_hook_event_get_step(event), tutti_hook_event_get_loss(event));
    return TUTTI_OK;
  };
  hooks.add(watch, 1);
  tutti::Estimator estimator(model, run, tutti::Strategy::mirrored(context), context);
  const tutti::Result first =
      estimator.train_and_evaluate(train, test, 40, tutti::Options("train").set("steps", 120), hooks);
  expected["evaluations"].push_back(expected_of(first));
  context.start_profile();
  const tutti::Result second = estimator.train(train, tutti::Options("train").set("steps", 30), hooks);
  std::ofstream(folder + "/profile.json") << context.stop_profile();
  json training = expected_of(second);
  training["input_report"] = json::parse(second.input_report());
  training["step_report"] = json::parse(second.step_report());
  training["input_wait_seconds"] = second.input_wait();
  expected["trainings"].push_back(training);
  const tutti::Result evaluated = estimator.evaluate(test);
  json evaluation = expected_of(evaluated);
  evaluation["confusion_matrix"] = matrix_of(evaluated);
  expected["evaluations"].push_back(evaluation);
  expected["losses"] = losses;
  std::ofstream(folder + "/expected.json") << expected.dump(1);
}

// Of each row, as one that opens a file would.
int32_t sleep_and_pass(void *, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count, tutti_error **) {
  std::this_thread::sleep_for(std::chrono::microseconds(500));
  for (int64_t i = 0; i < count; ++i) {
    tutti_tensor_ref(inputs[i]);
    outputs[i] = inputs[i];
  }
  return TUTTI_OK;
}

void write_slow_map(const std::string &folder) {
  const tutti::Context context = make_context(1);
  tutti::Pipeline pipeline(context);
  pipeline.dataset(make_dataset(400, 1, 1, context)).transform("unbatch", 1, [](tutti_pipeline *) {});
  tutti_pipeline_map(pipeline, sleep_and_pass, nullptr, nullptr, 1);
  tutti::Estimator estimator(model, run_options(folder), nullptr, context);
  estimator.train(pipeline.batch(8).build());
}

// Batches of one to thirty rows.
void write_shapes(const std::string &folder) {
  constexpr int64_t kMostRows = 30;
  const tutti::Context context = make_context(1);
  tutti::Feed feed(4, context);
  feed.declare("x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, {4}).declare("y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, {});
  feed.set_batch_size(kMostRows);
  std::thread pusher([&] {
    for (int64_t i = 0; i < 2 * kMostRows; ++i) {
      const int64_t rows = i % kMostRows + 1;
      const std::vector<float> x(static_cast<size_t>(rows) * 4, 0.5F);
      const std::vector<int32_t> y(static_cast<size_t>(rows), 1);
      feed.push({tutti::Tensor(TUTTI_DTYPE_F32, {rows, 4}, x.data(), rows * 16),
                 tutti::Tensor(TUTTI_DTYPE_I32, {rows}, y.data(), rows * 4)});
    }
    feed.finish();
  });
  tutti::Estimator estimator(model, run_options(folder).set("without_predictions", true), nullptr, context);
  estimator.train(tutti::Pipeline(context).feed(feed).build());
  pusher.join();
}

// Much to compute for each row, and few weights.
void deep_model(tutti::Graph g, int32_t mode) {
  tutti_layer_conv2d_attrs same = {};
  same.padding = TUTTI_LAYER_CONV2D_PADDING_SAME;
  const int64_t image[] = {-1, 32, 32, 1};
  tutti_value x = tutti_reshape(g, tutti_layer_dense(g, g.feature("x"), 1024, nullptr), image, 4);
  for (int layer = 0; layer < 3; ++layer)
    x = tutti_layer_conv2d(g, x, 64, 3, &same);
  x = tutti_layer_dense(g, tutti_layer_flatten(g, tutti_layer_max_pool2d(g, x, 32, nullptr)), kClasses, nullptr);
  g.output("logits", x);
  if (mode == TUTTI_MODE_PREDICT) return;
  g.loss(tutti_loss_sparse_softmax_cross_entropy(g, x, g.label("y"), nullptr));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 1e-6), nullptr);
}

// One of two replicas has twice the rows of the other.
void write_uneven(const std::string &folder) {
  const tutti::Context context = make_context(2);
  const tutti::Dataset dataset = make_dataset(300, 3, 3, context);
  tutti::Estimator estimator(deep_model, run_options(folder), tutti::Strategy::mirrored(context), context);
  estimator.train(dataset, tutti::Options("train").set("steps", 60));
}

void write_failed(const std::string &folder) {
  const tutti::Context context = make_context(1);
  tutti::Cancel cancel;
  tutti::Hooks hooks;
  const auto watch = [&](const tutti_hook_event *event) -> int32_t {
    if (tutti_hook_event_get_step(event) == 5) cancel.cancel();
    return TUTTI_OK;
  };
  hooks.add(watch, 1);
  tutti::Estimator estimator(model, run_options(folder), nullptr, context);
  const auto train = [&](const tutti::Dataset &dataset, tutti_hooks *watched, tutti_cancel *token) {
    try {
      estimator.train(dataset, tutti::Options("train"), watched, token);
    } catch (const tutti::Error &) {  // it is in the record
    }
  };
  train(make_dataset(96, 8, 20, context), hooks, cancel);
  const std::vector<float> x(16, 1);
  const std::vector<int32_t> y(4, 99);
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_F32, {4, 4}, x.data(), 64))
      .slices("y", TUTTI_ROLE_LABEL, tutti::Tensor(TUTTI_DTYPE_I32, {4}, y.data(), 16));
  train(pipeline.batch(4).build(), nullptr, nullptr);
}

enum class EventField : protozero::pbf_tag_type { wall_time = 1, step = 2, summary = 5 };
enum class SummaryField : protozero::pbf_tag_type { value = 1 };
enum class ValueField : protozero::pbf_tag_type { tag = 1, simple_value = 2 };

// Of a million steps there is an event for every tenth, with a spike that nobody must lose.
constexpr int64_t kSteps = 1'000'000, kSpike = 654'320;

void write_summary(int64_t step, protozero::pbf_builder<EventField> &event) {
  protozero::pbf_builder<SummaryField> summary(event, EventField::summary);
  for (int tag = 0; tag < 8; ++tag) {
    protozero::pbf_builder<ValueField> value(summary, SummaryField::value);
    value.add_string(ValueField::tag, tag == 0 ? std::string("loss") : "metric " + std::to_string(tag));
    const double x = static_cast<double>(step) / kSteps, curve = std::exp(-5 * x) + 0.1 * std::sin(900 * x + tag);
    value.add_float(ValueField::simple_value, step == kSpike ? 77.5F : static_cast<float>(curve));
  }
}

void write_many(const std::string &folder) {
  tutti::RecordWriter writer(folder + "/events.out.tfevents.1.test.1.1", "none");
  for (int64_t step = 0; step <= kSteps; step += 10) {
    std::string record;
    protozero::pbf_builder<EventField> event(record);
    event.add_double(EventField::wall_time, 1.7e9 + static_cast<double>(step));
    event.add_int64(EventField::step, step);
    write_summary(step, event);
    writer.write(record);
  }
  writer.close();
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 3) return 2;
  const std::map<std::string, void (*)(const std::string &)> kinds = {
      {"plain", write_plain},   {"slow_map", write_slow_map}, {"shapes", write_shapes},
      {"uneven", write_uneven}, {"failed", write_failed},     {"many", write_many}};
  try {
    std::filesystem::create_directories(arguments[2]);
    kinds.at(arguments[1])(arguments[2]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "write_run: %s\n", error.what());
    return 1;
  }
  return 0;
}
