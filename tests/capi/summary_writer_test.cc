// SPDX-License-Identifier: Apache-2.0
//
// Summaries that programs and hooks write, and what a training tells Prometheus.
//
// usage: summary_writer_test                  runs the tests
//        summary_writer_test --write FOLDER   writes into FOLDER, and what must be there into FOLDER/expected.json, for
//                                             summary_writer_peer.py
#include <tutti/tutti.hpp>

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "monitor/event_decoder.h"
#include "testing.h"

namespace {

using nlohmann::json;
using tutti::testing::DecodedEvent;

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

template <typename T>
tutti::Tensor make_tensor(int32_t dtype, const std::vector<int64_t> &dims, const std::vector<T> &elements) {
  return {dtype, dims, elements.data(), static_cast<int64_t>(elements.size() * sizeof(T))};
}

std::string contents_of(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

constexpr bool kHasImages = READS_PNG != 0;

// Names with "/", spaces, of other scripts, and that differ in case alone.
constexpr const char *kCurve = "agent/Reward of it", *kOtherCurve = "agent/reward of it", *kStrange = "größe \"1\"";
constexpr const char *kMetadata = "word\tcount\neins\t1\nzwei\t2\ndrei\t3\n";

std::vector<uint8_t> colors() {
  std::vector<uint8_t> all;
  for (int i = 0; i < 4 * 2 * 3 * 3; ++i)
    all.push_back(static_cast<uint8_t>(i * 37));
  return all;
}
const std::vector<float> kGrays = {-1, 0, 0.25F, 0.5F, 0.999F, 1, 2, NAN};
const std::vector<uint8_t> kLabels = {1, 0, 1, 1, 0, 0, 1, 0};
const std::vector<float> kPredictions = {0.9F, 0.8F, 0.35F, 1, 0, 0.5F, 0.5F, 0.1F};
const std::vector<float> kWeights = {1, 2, 0.5F, 1, 1, 3, 1, 1};
const std::vector<float> kPoints = {0.1F, -2, 3e-8F, 4, 5, 6.25F};

void add_images(tutti::SummaryWriter &writer) {
  writer.add_image("colors", make_tensor<uint8_t>(TUTTI_DTYPE_U8, {4, 2, 3, 3}, colors()), 6);
  writer.add_image("grays", make_tensor<float>(TUTTI_DTYPE_F32, {2, 2, 2, 1}, kGrays), 7, 1);
  writer.add_image("clear", make_tensor<uint8_t>(TUTTI_DTYPE_U8, {1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), 7, 9);
}

json write_all(const std::string &folder) {
  tutti::SummaryWriter writer(folder);
  for (const int64_t step : {1, 2, 40}) {
    writer.add_scalar(kCurve, static_cast<double>(step) * 0.5, step);
    writer.add_scalar(kOtherCurve, -static_cast<double>(step), step);
  }
  writer.add_scalar(kStrange, INFINITY, 3);
  writer.add_histogram("weights", make_tensor<float>(TUTTI_DTYPE_F32, {3, 2}, kPoints), 5);
  if (kHasImages) add_images(writer);
  writer.add_text("notes", "| a |\n|---|\n| **b** |", 8);
  const tutti::Tensor labels = make_tensor<uint8_t>(TUTTI_DTYPE_BOOL, {8}, kLabels);
  const tutti::Tensor predictions = make_tensor<float>(TUTTI_DTYPE_F32, {8}, kPredictions);
  writer.add_pr_curve("curve", labels, predictions, 9);
  writer.add_pr_curve("weighed", labels, predictions, 9, make_tensor<float>(TUTTI_DTYPE_F32, {8}, kWeights), 5);
  writer.add_embedding("old", make_tensor<float>(TUTTI_DTYPE_F32, {2, 3}, kPoints));
  writer.add_embedding("words / \"drei\"", make_tensor<float>(TUTTI_DTYPE_F32, {3, 2}, kPoints), kMetadata);
  writer.add_embedding("old", make_tensor<float>(TUTTI_DTYPE_F32, {3, 2}, kPoints), "a\nb\nc\n");
  writer.add_hyperparameters(R"({"rate": 0.1, "is deep": true, "name": "x"})", R"(["agent/Reward of it"])");
  return {{"labels", kLabels}, {"predictions", kPredictions}, {"weights", kWeights},
          {"points", kPoints}, {"colors", colors()},          {"metadata", kMetadata},
          {"curve", kCurve},   {"other_curve", kOtherCurve},  {"strange", kStrange}};
}

void test_writer(void **) {
  const Folder folder;
  (void)write_all(folder / "run");
  const auto events = tutti::testing::decode_event_folder(folder / "run");
  using Points = std::vector<std::pair<int64_t, double>>;
  assert_true((tutti::testing::curve(events, kCurve) == Points{{1, 0.5}, {2, 1}, {40, 20}}));
  assert_true((tutti::testing::curve(events, kOtherCurve) == Points{{1, -1}, {2, -2}, {40, -40}}));
  for (const char *tag : {"weights", "colors", "grays", "clear", "notes", "curve", "weighed"}) {
    size_t found = 0;
    for (const DecodedEvent &event : events)
      found += event.values.count(tag);
    const bool is_image = std::string(tag) == "colors" || std::string(tag) == "grays" || std::string(tag) == "clear";
    assert_int_equal(found, is_image && !kHasImages ? 0 : 1);
  }
  // One configuration with each embedding once, and files that it names.
  const std::string config = contents_of(folder / "run/projector_config.pbtxt");
  assert_int_equal(config.find("tensor_name: \"old\""), config.rfind("tensor_name: \"old\""));
  assert_true(config.find(R"(tensor_name: "words / \"drei\"")") != std::string::npos);
  // Another writer of the folder goes on with a file of its own.
  tutti::SummaryWriter(folder / "run").add_scalar(kCurve, 7, 41);
  assert_int_equal(tutti::testing::curve(tutti::testing::decode_event_folder(folder / "run"), kCurve).size(), 4);
}

/// What an error says.
template <typename Call>
std::string error_of(Call &&call) {
  try {
    call();
  } catch (const tutti::Error &error) {
    return error.what();
  }
  return "";
}

void test_mistakes(void **) {
  const Folder folder;
  tutti::SummaryWriter writer(folder / "run");
  const tutti::Tensor floats = make_tensor<float>(TUTTI_DTYPE_F32, {3, 2}, kPoints);
  const tutti::Tensor few = make_tensor<float>(TUTTI_DTYPE_F32, {2}, {0.5F, 2});
  assert_contains(error_of([&] { writer.add_scalar("", 1, 1); }).c_str(), "'name' is empty");
  assert_contains(error_of([&] { writer.add_scalar(nullptr, 1, 1); }).c_str(), "'name' is NULL");
  assert_contains(error_of([&] { writer.add_text("x", nullptr, 1); }).c_str(), "'text' is NULL");
  assert_contains(error_of([&] { writer.add_image("x", floats, 1); }).c_str(), "expected images");
  assert_contains(error_of([&] { writer.add_pr_curve("x", floats, few, 1); }).c_str(), "as many labels");
  assert_contains(error_of([&] { writer.add_pr_curve("x", few, few, 1); }).c_str(), "prediction 1 is 2");
  assert_contains(error_of([&] { writer.add_pr_curve("x", few, few, 1, nullptr, 1); }).c_str(), "thresholds is 1");
  assert_contains(error_of([&] { writer.add_embedding("x", few); }).c_str(), "[points, dimensions]");
  assert_contains(error_of([&] { writer.add_embedding("x", floats, "a\nb"); }).c_str(), "2 lines for 3 points");
  assert_contains(error_of([&] { writer.add_embedding("x", floats, "a\tb\nc\td\ne\tf\n"); }).c_str(),
                  "the names of its columns");
  assert_contains(error_of([&] { writer.add_hyperparameters("[]"); }).c_str(), "expected a JSON object");
  assert_contains(error_of([&] { writer.add_hyperparameters("{}", "{}"); }).c_str(), "metrics_json");
  assert_contains(error_of([&] { writer.add_histogram("x", nullptr, 1); }).c_str(), "values");
  assert_contains(error_of([&] { tutti::SummaryWriter(""); }).c_str(), "'folder' is empty");
  assert_contains(error_of([&] { tutti::SummaryWriter(folder / "x", -1); }).c_str(), "flush_secs");
  writer.flush();
  assert_int_equal(tutti::testing::decode_event_folder(folder / "run").size(), 0);  // nothing of all that
}

void test_threads(void **) {
  const Folder folder;
  constexpr int64_t points = 500;
  {
    tutti::SummaryWriter writer(folder / "run", 0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&writer, t] {
        for (int64_t step = 0; step < points; ++step)
          writer.add_scalar(("thread " + std::to_string(t)).c_str(), static_cast<double>(step), step);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  const auto events = tutti::testing::decode_event_folder(folder / "run");
  for (int t = 0; t < 4; ++t) {
    const auto curve = tutti::testing::curve(events, "thread " + std::to_string(t));
    assert_int_equal(curve.size(), points);
    for (int64_t step = 0; step < points; ++step)
      assert_true(curve[static_cast<size_t>(step)] == std::pair(step, static_cast<double>(step)));
  }
}

// A disk that is full, for which a file in the folder's place stands: one warning, and no error.
void test_no_room(void **) {
  const Folder folder;
  std::ofstream(folder / "file") << "in the way";
  std::atomic<int> warnings{0};
  tutti::Context context(tutti::Options("context").set("backend", "cpu"));
  context.set_log([&](int32_t severity, const char *) { warnings += severity >= TUTTI_LOG_WARNING ? 1 : 0; },
                  TUTTI_LOG_WARNING);
  tutti::SummaryWriter writer(folder / "file/run", 0, context);
  for (int64_t step = 0; step < 100; ++step)
    writer.add_scalar("loss", 1, step);
  writer.flush();
  assert_int_equal(warnings.load(), 1);
  std::filesystem::remove(folder / "file");
  writer.flush();  // now there is room
  assert_int_equal(tutti::testing::curve(tutti::testing::decode_event_folder(folder / "file/run"), "loss").size(), 100);
}

void model(tutti::Graph g, int32_t mode) {
  const tutti_value y = tutti_layer_dense(g, g.feature("x"), 1, nullptr);
  g.output("y", y);
  if (mode == TUTTI_MODE_PREDICT) return;
  const tutti_value loss = tutti_reduce_mean(g, tutti_mul(g, y, y), nullptr);
  tutti_graph_add_metric(g, "a \"b\\c\"\nd", loss);
  g.loss(loss);
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), nullptr);
}

tutti::Dataset make_dataset(tutti_context *context, bool endless) {
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 7) - 3;
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE, make_tensor<float>(TUTTI_DTYPE_F32, {32, 2}, x));
  if (endless) pipeline.repeat();
  return pipeline.batch(8).build();
}

void test_writer_of_a_run(void **) {
  const Folder folder;
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", 1));
  tutti::SummaryWriter kept;
  int without = 0;
  const auto watch = [&](const tutti_hook_event *event) -> int32_t {
    tutti::SummaryWriter writer = tutti::SummaryWriter::of(event);
    if (!writer) return ++without, TUTTI_OK;
    assert_true(writer.folder() == folder / "run");
    const int64_t step = tutti_hook_event_get_step(event);
    if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP)
      writer.add_scalar("hooked/loss", tutti_hook_event_get_loss(event), step);
    kept = std::move(writer);
    return TUTTI_OK;
  };
  for (const bool has_summaries : {true, false}) {
    tutti::Hooks hooks;
    hooks.add(watch, 5);
    tutti::Options run("run");
    run.set("model_dir", folder / (has_summaries ? "run" : "quiet")).set("save_summary_steps", has_summaries ? 5 : 0);
    tutti::Estimator estimator(model, run, nullptr, context);
    estimator.train(make_dataset(context, true), tutti::Options("train").set("steps", 20), hooks);
  }
  assert_true(without >= 6);
  kept.add_scalar("kept", 1, 21);  // the run has ended; its summaries have not
  kept.flush();
  const auto events = tutti::testing::decode_event_folder(folder / "run");
  assert_int_equal(tutti::testing::curve(events, "hooked/loss").size(), 4);
  assert_int_equal(tutti::testing::curve(events, "kept").size(), 1);
  assert_int_equal(std::filesystem::exists(folder / "quiet/eval"), 0);
}

/// A training with an evaluation; `look` gets the text in the middle of it.
template <typename Look>
std::string monitored(Look &&look) {
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", 1));
  const tutti::Prometheus prometheus;
  tutti::Hooks hooks;
  hooks.add_prometheus(prometheus, 1);
  hooks.add(
      [&](const tutti_hook_event *event) -> int32_t {
        if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP && tutti_hook_event_get_step(event) == 10)
          look(prometheus.text());
        return TUTTI_OK;
      },
      1);
  tutti::Estimator estimator(model, tutti::Options("run"), nullptr, context);
  estimator.train_and_evaluate(make_dataset(context, true), make_dataset(context, false), 8,
                               tutti::Options("train").set("steps", 20), hooks);
  return prometheus.text();
}

bool has_line(const std::string &text, const std::string &line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

void test_prometheus(void **) {
  std::string before;
  const std::string after = monitored([&](const std::string &text) { before = text; });
  assert_true(has_line(tutti::Prometheus().text(), "tutti_training_running 0"));
  assert_true(has_line(before, "tutti_training_running 1") && has_line(after, "tutti_training_running 0"));
  assert_true(has_line(before, "tutti_step 10") && has_line(after, "tutti_step 20"));
  assert_true(has_line(before, "tutti_examples_total 80") && has_line(before, "tutti_evaluation_step 8"));
  assert_true(has_line(after, "tutti_examples_total 160") && has_line(after, "tutti_evaluation_step 20"));
  assert_true(has_line(before, "# TYPE tutti_examples_total counter"));
  assert_true(before.find("\ntutti_metric{name=\"a \\\"b\\\\c\\\"\\nd\"} ") != std::string::npos);
  assert_true(before.find("\ntutti_examples_per_second ") != std::string::npos);
  assert_true(has_line(after, "tutti_training_failed 0"));
  // One that fails says so.
  const tutti::Prometheus prometheus;
  const tutti::Context context(tutti::Options("context").set("backend", "cpu").set("logical_devices", 1));
  tutti::Hooks hooks;
  hooks.add_prometheus(prometheus, 0);
  hooks.add(
      [](const tutti_hook_event *event) -> int32_t {
        return tutti_hook_event_get_step(event) == 3 ? TUTTI_INTERNAL : TUTTI_OK;
      },
      1);
  tutti::Estimator estimator(model, tutti::Options("run"), nullptr, context);
  assert_true(!error_of([&] {
                 estimator.train(make_dataset(context, true), tutti::Options("train").set("steps", 5), hooks);
               }).empty());
  assert_true(has_line(prometheus.text(), "tutti_training_failed 1"));
  assert_true(has_line(prometheus.text(), "tutti_training_running 0"));
  assert_contains(error_of([&] { hooks.add_prometheus(prometheus, -1); }).c_str(), "every_steps");
  assert_contains(error_of([&] { hooks.add_prometheus(nullptr, 1); }).c_str(), "prometheus");
}

int write(const std::string &folder) {
  json expected = write_all(folder + "/run");
  std::vector<std::string> texts{tutti::Prometheus().text()};
  texts.push_back(monitored([&](const std::string &text) { texts.push_back(text); }));
  expected["prometheus"] = texts;
  std::ofstream(folder + "/expected.json") << expected.dump(2) << "\n";
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 3 && std::string(arguments[1]) == "--write") return write(arguments[2]);
  const CMUnitTest tests[] = {cmocka_unit_test(test_writer),          cmocka_unit_test(test_mistakes),
                              cmocka_unit_test(test_threads),         cmocka_unit_test(test_no_room),
                              cmocka_unit_test(test_writer_of_a_run), cmocka_unit_test(test_prometheus)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
