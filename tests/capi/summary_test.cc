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

/// Element i of the features of the datasets.
float feature_at(int64_t i) { return static_cast<float>(i * 7 % 11) / 11; }

tutti::Dataset make_dataset(int64_t rows, int64_t batch, bool endless, tutti_context *context) {
  std::vector<float> x(static_cast<size_t>(rows) * 4);
  std::vector<int32_t> y(static_cast<size_t>(rows));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = feature_at(static_cast<int64_t>(i));
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

// Of the model's summaries. Two scalars differ in case alone.
constexpr const char *kMean = "Shown/mean of x", *kOtherMean = "shown/Mean of x", *kSquares = "squares of weights";
constexpr const char *kInput = "shown/x", *kHidden = "hidden", *kKernel = "kernel", *kImages = "images/grüße, 2 x 2";
constexpr const char *kFilters = "filters", *kNotes = "notes";
constexpr const char *kText = "# Notes\n\nwhat *this* is";

constexpr bool kHasImages = READS_PNG != 0;

// The same with summaries, of which metrics, or the data, say what they must be.
void shown_model(tutti::Graph g, int32_t mode) {
  model(g, mode);
  const tutti_value x = g.feature("x");
  const tutti_value mean = tutti_reduce_mean(g, x, nullptr);
  const int64_t dims[] = {8, 2}, one_row[] = {TUTTI_DIM_BATCH, 2, 2, 1}, one_filter[] = {1, 8, 2, 1};
  const tutti_value kernel = tutti_graph_variable(g, "shown", TUTTI_DTYPE_F32, dims, 2, "random_uniform", 1.0, 0);
  if (mode != TUTTI_MODE_PREDICT) tutti_graph_add_metric(g, "mean of x", mean);
  tutti_summary_scalar(g, kMean, mean);
  tutti_summary_scalar(g, kOtherMean, tutti_neg(g, mean));
  tutti_summary_scalar(g, kSquares, tutti_reduce_sum(g, tutti_mul(g, kernel, kernel), nullptr));
  tutti_summary_histogram(g, kInput, x);
  tutti_summary_histogram(g, kHidden, tutti_mul(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, -4.0)));
  tutti_summary_histogram(g, kKernel, kernel);
  tutti_summary_text(g, kNotes, kText);
  if (!kHasImages) return;
  tutti_summary_image(g, kImages, tutti_reshape(g, x, one_row, 4), 5);
  tutti_summary_image(g, kFilters, tutti_reshape(g, kernel, one_filter, 4), 0);
}

using Model = void (*)(tutti::Graph, int32_t);

/// Curves by their tags.
using Curves = std::map<std::string, Points>;

/// Of the elements of a tensor.
struct Distribution {
  double minimum = 0, maximum = 0, count = 0, sum = 0, squares = 0;

  bool operator==(const Distribution &) const = default;
};
/// By tags and steps.
using Distributions = std::map<std::string, std::map<int64_t, Distribution>>;

Distribution distribution_of(const std::vector<float> &elements) {
  Distribution all{elements[0], elements[0]};
  for (const double element : elements) {
    all = {std::min(all.minimum, element), std::max(all.maximum, element), all.count + 1, all.sum + element,
           all.squares + element * element};
  }
  return all;
}

Distribution distribution_of(const tutti::Tensor &tensor) {
  const auto *const elements = static_cast<const float *>(tutti_tensor_get_data(tensor));
  return distribution_of(std::vector<float>(elements, elements + tutti_tensor_get_element_count(tensor)));
}

/// A run in two trainings, with evaluations: what its hooks saw of training steps and of evaluations, and of variables
/// and gradients at the steps that histograms are of.
struct Seen {
  Curves training, evaluation;
  Distributions histograms;
  Points gradient_norms;
  tutti::Tensor kernel{};       ///< the variable that shown_model() shows
  double began = 0, ended = 0;  ///< seconds since 1970
};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void note(Curves &curves, const tutti_hook_event *event, bool has_rate) {
  const int64_t step = tutti_hook_event_get_step(event);
  curves["loss"].emplace_back(step, tutti_hook_event_get_loss(event));
  for (const char *name : kMetrics)
    curves[name].emplace_back(step, tutti_hook_event_get_metric(event, name));
  const double mean = tutti_hook_event_get_metric(event, "mean of x");
  if (!std::isnan(mean)) curves["mean of x"].emplace_back(step, mean);
  const double norm = tutti_hook_event_get_metric(event, "gradient_norm");
  if (!std::isnan(norm)) curves["gradient_norm"].emplace_back(step, norm);
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
Seen train(const std::string &folder, int devices, int64_t every, int64_t histograms,
           const Model &trained_model = model, int64_t accumulation = 1) {
  Seen seen;
  seen.began = now();
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", devices));
  tutti::Options run("run");
  run.set("model_dir", folder).set("save_summary_steps", every).set("determinism", "repeatable");
  run.set("save_histogram_steps", histograms).set("accumulation_steps", accumulation);
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
    tutti::Estimator estimator(trained_model, run, tutti::Strategy::mirrored(context), context);
    trained = &estimator;
    estimator.train_and_evaluate(endless, once, 6, tutti::Options("train").set("steps", 20), hooks);
    if (trained_model == shown_model) seen.kernel = estimator.read_variable("shown");
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

// Where gradients are clipped by their norm steps report it, once, whether or not there are histograms.
void clipped_model(tutti::Graph g, int32_t mode) {
  model(g, mode);
  if (mode == TUTTI_MODE_TRAIN) tutti_graph_set_gradient_clip_norm(g, 0.5);
}

void test_gradient_norm(void **) {
  for (const int64_t histograms : {0, 4}) {
    const Folder folder;
    const Seen seen = train(folder / "run", 2, 2, histograms, clipped_model);
    const auto norms = tutti::testing::curve(tutti::testing::decode_event_folder(folder / "run"), "gradient_norm");
    assert_int_equal(norms.size(), 20);
    assert_true(norms == due(seen.training.at("gradient_norm"), 2));
  }
}

// Of each device, while steps run: about once a second.
void test_device_use(void **) {
  const Folder folder;
  (void)train(folder / "run", 2, 1, 0);
  const auto events = tutti::testing::decode_event_folder(folder / "run");
  for (const char *tag : {"device_use/cpu:0", "device_use/cpu:1"}) {
    const auto curve = tutti::testing::curve(events, tag);
    assert_true(!curve.empty() && curve.size() < 20);
    for (const auto &[step, share] : curve)
      assert_true(share >= 0 && share <= 1);
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

/// Texts of a tensor in an event: of images their width, height and files.
std::vector<std::string> texts_of(const std::vector<DecodedEvent> &events, const std::string &tag, int64_t step) {
  using namespace tutti::testing;
  std::vector<std::string> texts;
  for (const DecodedEvent &event : events) {
    const auto value = event.values.find(tag);
    if (event.step != step || value == event.values.end()) continue;
    for (const auto &[number, text] : decode_message(field_of(value->second, 8)))
      if (number == 8) texts.push_back(text);
  }
  return texts;
}

/// Features of so many rows of data from `row` on, which begin again after `rows`, times a factor.
std::vector<float> features(int64_t row, int64_t count, int64_t rows, float factor = 1) {
  std::vector<float> all;
  for (int64_t r = row; r < row + count; ++r)
    for (int64_t column = 0; column < 4; ++column)
      all.push_back(feature_at(r % rows * 4 + column) * factor);
  return all;
}

void assert_near(const Distribution &a, const Distribution &b) {
  assert_true(a.minimum == b.minimum && a.maximum == b.maximum && a.count == b.count);
  assert_true(std::abs(a.sum - b.sum) <= 1e-9 && std::abs(a.squares - b.squares) <= 1e-9);
}

void check_images(const std::vector<DecodedEvent> &events, const std::string &tag, int64_t step, size_t count,
                  const char *width, const char *height) {
  const std::vector<std::string> texts = texts_of(events, tag, step);
  if (!kHasImages) return;
  assert_int_equal(texts.size(), count + 2);
  assert_true(texts[0] == width && texts[1] == height);
  for (size_t i = 2; i < texts.size(); ++i)
    assert_true(texts[i].starts_with("\x89PNG"));
}

// Of each step that is looked at: what metrics say, and what its rows are, whoever had them.
void check_training(const std::vector<DecodedEvent> &events, const Seen &seen, int64_t every, int64_t batch) {
  const auto mean = seen.training.find("mean of x");
  const Points means = due(mean->second, every);
  assert_true(tutti::testing::curve(events, kMean) == means);
  const Points negated = tutti::testing::curve(events, kOtherMean), squares = tutti::testing::curve(events, kSquares);
  assert_int_equal(negated.size(), means.size());
  const auto histograms = histograms_in(events);
  const std::vector<float> kernel(static_cast<const float *>(tutti_tensor_get_data(seen.kernel)),
                                  static_cast<const float *>(tutti_tensor_get_data(seen.kernel)) + 16);
  for (size_t i = 0; i < means.size(); ++i) {
    const int64_t step = means[i].first, row = (step - 1) * batch;
    assert_true(negated[i] == std::pair(step, -means[i].second));
    assert_near(histograms.at(kInput).at(step), distribution_of(features(row, batch, 60)));
    assert_near(histograms.at(kHidden).at(step), distribution_of(features(row, batch, 60, -4)));
    assert_true(histograms.at(kKernel).at(step) == distribution_of(kernel));
    assert_true(std::abs(squares[i].second - distribution_of(kernel).squares) <= 1e-5);
    check_images(events, kImages, step, 5, "2", "2");
    check_images(events, kFilters, step, 1, "2", "8");
  }
  assert_int_equal(histograms.at(kInput).size(), means.size());
  assert_true(texts_of(events, kNotes, 0) == std::vector<std::string>{kText});
}

// Over all rows; images of the last batch, which has six rows.
void check_evaluations(const std::vector<DecodedEvent> &events, const Seen &seen) {
  const Points means = due(seen.evaluation.find("mean of x")->second, 1);
  assert_true(tutti::testing::curve(events, kMean) == means);
  const auto histograms = histograms_in(events);
  for (const auto &[step, mean] : means) {
    assert_near(histograms.at(kInput).at(step), distribution_of(features(0, 30, 60)));
    check_images(events, kImages, step, 5, "2", "2");
    check_images(events, kFilters, step, 1, "2", "8");
    assert_true(texts_of(events, kNotes, step) == std::vector<std::string>{kText});
  }
}

void test_summaries_of_the_model(void **) {
  for (const int64_t accumulation : {1, 2}) {
    for (const int devices : {1, 2, 3}) {
      const Folder folder;
      const Seen plain = train(folder / "plain", devices, 0, 0, shown_model, accumulation);
      const Seen seen = train(folder / "run", devices, 7, 0, shown_model, accumulation);
      assert_true(plain.training == seen.training && plain.evaluation == seen.evaluation);
      check_training(tutti::testing::decode_event_folder(folder / "run"), seen, 7, 8 * accumulation);
      check_evaluations(tutti::testing::decode_event_folder(folder / "run/eval"), seen);
    }
  }
}

/// What a model's mistake is called.
std::string mistake(void (*add)(tutti::Graph)) {
  static void (*added)(tutti::Graph) = nullptr;
  added = add;
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", 1));
  const auto function = [](tutti::Graph g, int32_t mode) {
    model(g, mode);
    added(g);
  };
  tutti::Estimator estimator(function, tutti::Options("run"), nullptr, context);
  try {
    estimator.train(make_dataset(16, 8, false, context));
  } catch (const tutti::Error &error) {
    return error.what();
  }
  return "";
}

void test_mistakes(void **) {
  assert_contains(mistake([](tutti::Graph g) {
                    tutti_summary_text(g, "same", "a");
                    tutti_summary_scalar(g, "same", tutti_graph_constant(g, TUTTI_DTYPE_F32, 1));
                  }).c_str(),
                  "there is already a summary 'same'");
  assert_contains(mistake([](tutti::Graph g) { tutti_summary_text(g, "accuracy", "a"); }).c_str(), "'accuracy'");
  assert_contains(mistake([](tutti::Graph g) { tutti_summary_text(g, "loss", "a"); }).c_str(), "'loss'");
  assert_contains(mistake([](tutti::Graph g) { tutti_summary_text(g, "", "a"); }).c_str(), "empty name");
  assert_contains(mistake([](tutti::Graph g) { tutti_summary_scalar(g, "rows", g.feature("x")); }).c_str(),
                  "summary 'rows' is f32 [batch, 4], expected a scalar");
  assert_contains(mistake([](tutti::Graph g) { tutti_summary_text(g, "none", nullptr); }).c_str(), "'text' is NULL");
  assert_true(mistake([](tutti::Graph g) { tutti_summary_text(g, "good", "a"); }).empty());
}

void test_mistakes_with_images(void **) {
  if (!kHasImages) {
    const auto refused = mistake([](tutti::Graph g) { tutti_summary_image(g, "rows", g.feature("x"), 0); });
    return assert_contains(refused.c_str(), "summary 'rows': this build of tutti has no libspng");
  }
  assert_contains(mistake([](tutti::Graph g) { tutti_summary_image(g, "rows", g.feature("x"), 0); }).c_str(),
                  "expected images");
  assert_contains(mistake([](tutti::Graph g) {
                    const int64_t dims[] = {TUTTI_DIM_BATCH, 1, 2, 2};
                    tutti_summary_image(g, "two", tutti_reshape(g, g.feature("x"), dims, 4), 0);
                  }).c_str(),
                  "1, 3 or 4 channels");
  assert_contains(mistake([](tutti::Graph g) {
                    const int64_t dims[] = {TUTTI_DIM_BATCH, 2, 2, 1};
                    tutti_summary_image(g, "few", tutti_reshape(g, g.feature("x"), dims, 4), -1);
                  }).c_str(),
                  "max_images is -1");
}

// Predictions and step functions have none, and maps of datasets cannot.
void test_where_there_are_none(void **) {
  const Folder folder;
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", 1));
  const tutti::Dataset dataset = make_dataset(16, 8, false, context);
  tutti::Options run("run");
  run.set("model_dir", folder / "run").set("save_summary_steps", 1);
  tutti::Estimator estimator(shown_model, run, nullptr, context);
  estimator.add_step_function("again", TUTTI_MODE_EVAL, shown_model);
  estimator.train(dataset);
  const std::vector<float> x(4, 0.5F);
  tutti::Predictor predictor(estimator);
  assert_non_null(predictor.run({{"x", tutti::Tensor(TUTTI_DTYPE_F32, {1, 4}, x.data(), 16)}}).get());
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_F32, {1, 4}, x.data(), 16));
  pipeline.map([](tutti::Graph g) {
    tutti_summary_histogram(g, "mapped", g.feature("x"));
    g.output("x", g.feature("x"));
  });
  try {
    (void)pipeline.build();
    assert_true(false);
  } catch (const tutti::Error &error) {
    assert_contains(error.what(), "summary 'mapped': models have summaries");
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

/// What summary_peer.py must find of the model's summaries: at each step of `means` the data of `rows` rows from row
/// `first(step)` on, and images of these from row `first_image(step)` on.
template <typename First, typename FirstImage>
json shown_as_json(const Points &means, int64_t rows, First &&first, FirstImage &&first_image, const Seen &seen) {
  json histograms = json::array(), images = json::array();
  const std::vector<float> kernel(static_cast<const float *>(tutti_tensor_get_data(seen.kernel)),
                                  static_cast<const float *>(tutti_tensor_get_data(seen.kernel)) + 16);
  const auto add = [&](const char *tag, int64_t step, const Distribution &d) {
    histograms.push_back({tag, step, {d.minimum, d.maximum, d.count, d.sum, d.squares}});
  };
  for (const auto &[step, mean] : means) {
    add(kInput, step, distribution_of(features(first(step), rows, 60)));
    add(kHidden, step, distribution_of(features(first(step), rows, 60, -4)));
    add(kKernel, step, distribution_of(kernel));
    if (!kHasImages) continue;
    images.push_back({kImages, step, {5, 2, 2, 1}, features(first_image(step), 5, 60)});
    images.push_back({kFilters, step, {1, 8, 2, 1}, kernel});
  }
  return {{"scalars", {{kMean, means}}}, {"histograms", histograms}, {"images", images}, {"text", {kNotes, kText}}};
}

json write_shown_run(const std::string &folder) {
  constexpr int64_t every = 3;
  const Seen seen = train(folder + "/shown", 3, every, 0, shown_model);
  const auto begin_of_step = [](int64_t step) { return (step - 1) * 8; };
  const auto begin = [](int64_t) { return int64_t{0}; };
  const auto last_batch = [](int64_t) { return int64_t{24}; };
  return {{"training", shown_as_json(due(seen.training.at("mean of x"), every), 8, begin_of_step, begin_of_step, seen)},
          {"evaluation", shown_as_json(due(seen.evaluation.at("mean of x"), 1), 30, begin, last_batch, seen)},
          {"began", seen.began},
          {"ended", seen.ended}};
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
                         {"shown", write_shown_run(folder)},
                         {"began", seen.began},
                         {"ended", seen.ended}};
  std::ofstream(folder + "/expected.json") << expected.dump(2) << "\n";
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 3 && std::string(arguments[1]) == "--write") return write_run(arguments[2]);
  const CMUnitTest tests[] = {cmocka_unit_test(test_run),
                              cmocka_unit_test(test_histograms),
                              cmocka_unit_test(test_gradient_norm),
                              cmocka_unit_test(test_device_use),
                              cmocka_unit_test(test_summaries_of_the_model),
                              cmocka_unit_test(test_mistakes),
                              cmocka_unit_test(test_where_there_are_none),
                              cmocka_unit_test(test_mistakes_with_images),
                              cmocka_unit_test(test_off_and_elsewhere)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
