// SPDX-License-Identifier: Apache-2.0
//
// Summaries of a training and its evaluations, through the C interface: what is in the event files is what hooks and
// results say.
//
// usage: summary_test                  runs the tests
//        summary_test --write FOLDER   writes a run into FOLDER/run, and what must be in it into FOLDER/expected.json,
//                                      for summary_peer.py
#include <tutti/tutti.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "monitor/event_decoder.h"
#include "testing.h"

namespace {

using nlohmann::json;
using tutti::testing::DecodedEvent;

using Points = std::vector<std::pair<int64_t, double>>;

// Of the model's metrics: TensorBoard makes groups of what stands before "/".
constexpr const char *kMetrics[] = {"accuracy", "Accuracy", "group/half the loss", "grüße"};

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tutti-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data()) != nullptr ? pattern : "";
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char *name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

tutti::Dataset make_dataset(int64_t rows, int64_t batch, bool endless, tutti_context *context) {
  std::vector<float> x(static_cast<size_t>(rows) * 4);
  std::vector<int32_t> y(static_cast<size_t>(rows));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 7 % 11) / 11;
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = x[i * 4] > 0.5F ? 1 : 0;
  const tutti::Tensor features(TUTTI_DTYPE_F32, {rows, 4}, x.data(), rows * 16);
  const tutti::Tensor labels(TUTTI_DTYPE_I32, {rows}, y.data(), rows * 4);
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE, features).slices("y", TUTTI_ROLE_LABEL, labels);
  if (endless) pipeline.repeat();
  return pipeline.batch(batch).build();
}

void model(tutti::Graph g, int32_t mode) {
  tutti_layer_dense_attrs relu = {};
  relu.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU;
  const tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, g.feature("x"), 8, &relu), 2, nullptr);
  g.output("logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return;
  const tutti_value loss = tutti_loss_sparse_softmax_cross_entropy(g, logits, g.label("y"), nullptr);
  const tutti_value half = tutti_mul(g, loss, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5));
  tutti_metric_accuracy(g, kMetrics[0], logits, g.label("y"), nullptr);
  tutti_metric_accuracy(g, kMetrics[1], logits, g.label("y"), nullptr);
  tutti_graph_add_metric(g, kMetrics[2], half);
  tutti_graph_add_metric(g, kMetrics[3], half);
  g.loss(loss);
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 1e-2), nullptr);
}

/// Curves by their tags.
using Curves = std::map<std::string, Points>;

/// Of the elements of a tensor.
struct Distribution {
  double minimum = 0, maximum = 0, count = 0, sum = 0, squares = 0;

  bool operator==(const Distribution &) const = default;
};
/// By tags and steps.
using Distributions = std::map<std::string, std::map<int64_t, Distribution>>;

Distribution distribution_of(const tutti::Tensor &tensor) {
  const auto *const elements = static_cast<const float *>(tutti_tensor_get_data(tensor));
  Distribution all{elements[0], elements[0]};
  for (int64_t i = 0; i < tutti_tensor_get_element_count(tensor); ++i) {
    const double element = elements[i];
    all = {std::min(all.minimum, element), std::max(all.maximum, element), all.count + 1, all.sum + element,
           all.squares + element * element};
  }
  return all;
}

/// A run in two trainings, with evaluations: what its hooks saw of training steps and of evaluations, and of variables
/// and gradients at the steps that histograms are of.
struct Seen {
  Curves training, evaluation;
  Distributions histograms;
  Points gradient_norms;
  double began = 0, ended = 0;  ///< seconds since 1970
};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void note(Curves &curves, const tutti_hook_event *event, bool has_rate) {
  const int64_t step = tutti_hook_event_get_step(event);
  curves["loss"].emplace_back(step, tutti_hook_event_get_loss(event));
  for (const char *name : kMetrics)
    curves[name].emplace_back(step, tutti_hook_event_get_metric(event, name));
  if (has_rate) curves["learning_rate"].emplace_back(step, tutti_hook_event_get_metric(event, "learning_rate"));
}

void note(Seen &seen, tutti::Estimator &estimator, int64_t step) {
  double squares = 0;
  for (const std::string &name : estimator.trainable_names()) {
    seen.histograms["weights/" + name][step] = distribution_of(estimator.read_variable(name));
    const Distribution gradient = distribution_of(estimator.read_gradient(name));
    seen.histograms["gradients/" + name][step] = gradient;
    squares += gradient.squares;
  }
  seen.gradient_norms.emplace_back(step, static_cast<float>(std::sqrt(squares)));
}

/// `histograms`: steps between them, 0 = none.
Seen train(const std::string &folder, int devices, int64_t every, int64_t histograms) {
  Seen seen;
  seen.began = now();
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", devices));
  tutti::Options run("run");
  run.set("model_dir", folder).set("save_summary_steps", every).set("determinism", "repeatable");
  run.set("save_histogram_steps", histograms);
  tutti::Hooks hooks;
  tutti::Estimator *trained = nullptr;
  const auto watch = [&](const tutti_hook_event *event) -> int32_t {
    const int32_t kind = tutti_hook_event_get_kind(event);
    const int64_t step = tutti_hook_event_get_step(event);
    if (kind == TUTTI_EVENT_STEP) note(seen.training, event, true);
    if (kind == TUTTI_EVENT_STEP && histograms > 0 && (step - 1) % 20 % histograms == 0) note(seen, *trained, step);
    if (kind == TUTTI_EVENT_EVALUATED) note(seen.evaluation, event, false);
    return TUTTI_OK;
  };
  hooks.add(watch, 1);
  const tutti::Dataset endless = make_dataset(60, 8, true, context), once = make_dataset(30, 8, false, context);
  for (int training = 0; training < 2; ++training) {
    tutti::Estimator estimator(model, run, tutti::Strategy::mirrored(context), context);
    trained = &estimator;
    estimator.train_and_evaluate(endless, once, 6, tutti::Options("train").set("steps", 20), hooks);
  }
  seen.ended = now();
  return seen;
}

/// Of them the steps that summaries are of, in two trainings of 20 steps, as f32.
Points due(const Points &points, int64_t every) {
  Points kept;
  for (const auto &[step, value] : points)
    if ((step - 1) % 20 % every == 0) kept.emplace_back(step, static_cast<float>(value));
  return kept;
}

void test_run(void **) {
  for (const int devices : {1, 2, 3}) {
    for (const int64_t every : {1, 7}) {
      const Folder folder;
      const Seen seen = train(folder / "run", devices, every, 0);
      const auto events = tutti::testing::decode_event_folder(folder / "run");
      for (const auto &[tag, points] : seen.training)
        assert_true(tutti::testing::curve(events, tag) == due(points, every));
      assert_int_equal(tutti::testing::curve(events, "loss").size(), every == 1 ? 40 : 6);
      const auto evaluations = tutti::testing::decode_event_folder(folder / "run/eval");
      for (const auto &[tag, points] : seen.evaluation)
        assert_true(tutti::testing::curve(evaluations, tag) == due(points, 1));
      double last = seen.began;
      for (const DecodedEvent &event : events) {
        assert_true(event.wall_time >= last - 1e-3 && event.wall_time <= seen.ended + 1e-3);
        if (!event.values.empty()) last = event.wall_time;
      }
      for (const auto &[step, rate] : tutti::testing::curve(events, "global_step/sec"))
        assert_true(rate > 0 && std::isfinite(rate));
      for (const auto &[step, fraction] : tutti::testing::curve(events, "input_wait_fraction"))
        assert_true(fraction >= 0 && fraction <= 1);
      // All but the first of a training have a step before them.
      assert_int_equal(tutti::testing::curve(events, "examples/sec").size(), every == 1 ? 38 : 4);
    }
  }
}

Distributions histograms_in(const std::vector<DecodedEvent> &events) {
  using namespace tutti::testing;
  Distributions all;
  for (const DecodedEvent &event : events) {
    for (const auto &[tag, value] : event.values) {
      const std::string message = field_of(value, 5);
      if (message.empty()) continue;
      const Fields fields = decode_message(message);
      const auto number = [&](int32_t field) { return double_of(field_of(fields, field)); };
      all[tag][event.step] = {number(1), number(2), number(3), number(4), number(5)};
    }
  }
  return all;
}

void test_histograms(void **) {
  for (const int devices : {1, 3}) {
    const Folder folder;
    const Seen seen = train(folder / "run", devices, 100, 8);
    const auto events = tutti::testing::decode_event_folder(folder / "run");
    assert_int_equal(seen.gradient_norms.size(), 6);
    assert_true(tutti::testing::curve(events, "gradient_norm") == seen.gradient_norms);
    assert_int_equal(seen.histograms.size(), 8);  // of four variables
    assert_true(histograms_in(events) == seen.histograms);
  }
}

void test_off_and_elsewhere(void **) {
  const Folder folder;
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", 1));
  const tutti::Dataset dataset = make_dataset(60, 8, false, context);
  const auto train_with = [&](const tutti::Options &run) {
    tutti::Estimator estimator(model, run, nullptr, context);
    estimator.train(dataset);
    estimator.evaluate(dataset);
  };
  train_with(tutti::Options("run").set("model_dir", folder / "quiet").set("save_summary_steps", 0));
  assert_int_equal(tutti::testing::decode_event_folder(folder / "quiet").size(), 0);
  assert_false(std::filesystem::exists(folder / "quiet/eval"));
  train_with(tutti::Options("run").set("model_dir", folder / "model").set("summary_dir", folder / "other"));
  assert_int_equal(tutti::testing::decode_event_folder(folder / "model").size(), 0);
  const auto events = tutti::testing::decode_event_folder(folder / "other");
  assert_int_equal(tutti::testing::curve(events, "loss").size(), 1);  // every 100th of 8 steps
  assert_int_equal(tutti::testing::curve(tutti::testing::decode_event_folder(folder / "other/eval"), "loss").size(), 1);
  // Without a directory there are none, and nothing else.
  train_with(tutti::Options("run").set("summary_flush_secs", 0));
  try {
    train_with(tutti::Options("run").set("save_summary_steps", -1));
    assert_true(false);
  } catch (const tutti::Error &error) {
    assert_int_equal(error.code(), TUTTI_INVALID_ARGUMENT);
    assert_contains(error.what(), "save_summary_steps");
  }
}

json as_json(const Curves &curves, int64_t every) {
  json all;
  for (const auto &[tag, points] : curves)
    all[tag] = due(points, every);
  return all;
}

json as_json(const Distributions &distributions) {
  json all = json::array();
  for (const auto &[tag, steps] : distributions)
    for (const auto &[step, d] : steps)
      all.push_back({tag, step, {d.minimum, d.maximum, d.count, d.sum, d.squares}});
  return all;
}

int write_run(const std::string &folder) {
  constexpr int64_t every = 3;
  const Seen seen = train(folder + "/run", 2, every, 8);
  const json settings = {{"save_summary_steps", every},
                         {"determinism", "repeatable"},
                         {"batch_size", 8},
                         {"keep_gradients", false},
                         {"replicas", 2},
                         {"optimizer", "adam_update"}};
  const json expected = {{"training", as_json(seen.training, every)},
                         {"evaluation", as_json(seen.evaluation, 1)},
                         {"histograms", as_json(seen.histograms)},
                         {"gradient_norms", seen.gradient_norms},
                         {"settings", settings},
                         {"began", seen.began},
                         {"ended", seen.ended}};
  std::ofstream(folder + "/expected.json") << expected.dump(2) << "\n";
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 3 && std::string(arguments[1]) == "--write") return write_run(arguments[2]);
  const CMUnitTest tests[] = {cmocka_unit_test(test_run), cmocka_unit_test(test_histograms),
                              cmocka_unit_test(test_off_and_elsewhere)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
