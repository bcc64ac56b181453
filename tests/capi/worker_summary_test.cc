// SPDX-License-Identifier: Apache-2.0
//
// Summaries of a model that workers in several processes train: the first one alone writes, and what it writes is of
// the rows of all.
#include <tutti/tutti.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "monitor/event_decoder.h"
#include "testing.h"
#undef assert_ok  // that of the C API takes its place
extern "C" {
#include "estimator_fixtures.h"
#include "worker_fixtures.h"
}

namespace {

using tutti::testing::DecodedEvent;

constexpr int64_t kRows = 60, kBatch = 8, kSteps = 10, kEvery = 3;
constexpr size_t kImages = READS_PNG != 0 ? 3 : 0;

struct Answer {
  int32_t code;
  char error[400];
};

void shown_model(tutti::Graph g, int32_t mode) {
  tutti_error *failure = nullptr;
  (void)toy_model(g, mode, nullptr, &failure);
  const tutti_value x = g.feature("x");
  const int64_t dims[] = {TUTTI_DIM_BATCH, 2, 2, 1};
  g.summary_scalar("mean of x", tutti_reduce_mean(g, x, nullptr));
  g.summary_histogram("x", x);
  if (kImages > 0) g.summary_image("images", tutti_reshape(g, x, dims, 4));
}

void train(const std::string &folder, tutti_strategy *strategy) {
  tutti_context *const context = tutti_strategy_get_context(strategy);
  const auto rows = [&](bool endless) {
    tutti_pipeline *const pipeline = toy_rows(context, kRows);
    if (endless) tutti_pipeline_repeat(pipeline, nullptr);
    tutti_pipeline_batch(pipeline, kBatch, nullptr);
    tutti_dataset *dataset = nullptr;
    tutti_error *failure = nullptr;
    (void)tutti_pipeline_build(pipeline, &dataset, &failure);
    tutti_pipeline_unref(pipeline);
    return tutti::Dataset(dataset);
  };
  tutti::Options run("run");
  run.set("model_dir", folder).set("save_summary_steps", kEvery).set("seed", 5);
  run.set("metrics_file", folder + ".csv").set("metrics_file_steps", 1);
  tutti::Estimator estimator(shown_model, run, strategy, context);
  estimator.train(rows(true), tutti::Options("train").set("steps", kSteps));
  estimator.evaluate(rows(false));
}

int work(const char *scenario, const char *directory) {
  Answer answer{};
  tutti_context *context = nullptr;
  tutti_strategy *strategy = nullptr;
  tutti_error *failure = nullptr;
  const std::string cluster = std::string(R"({"worker_input": ")") + scenario + "\"}";
  answer.code = join_workers(cluster.c_str(), &context, &strategy, &failure);
  try {
    if (answer.code == TUTTI_OK) train(std::string(directory) + "/run", strategy);
  } catch (const tutti::Error &error) {
    answer.code = error.code();
    snprintf(answer.error, sizeof answer.error, "%s", error.what());
  }
  tutti_error_unref(failure);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  return leave_answer(directory, &answer, sizeof answer, answer.code);
}

/// Number and sum of a histogram's elements.
std::pair<double, double> totals(const std::vector<DecodedEvent> &events, int64_t step) {
  using namespace tutti::testing;
  for (const DecodedEvent &event : events) {
    const auto value = event.values.find("x");
    if (event.step != step || value == event.values.end()) continue;
    const Fields fields = decode_message(field_of(value->second, 5));
    return {double_of(field_of(fields, 3)), double_of(field_of(fields, 4))};
  }
  return {0, 0};
}

size_t images_in(const std::vector<DecodedEvent> &events, int64_t step) {
  using namespace tutti::testing;
  size_t images = 0;
  for (const DecodedEvent &event : events) {
    const auto value = event.values.find("images");
    if (event.step != step || value == event.values.end()) continue;
    for (const auto &[number, text] : decode_message(field_of(value->second, 8)))
      images += number == 8 && text.starts_with("\x89PNG") ? 1 : 0;
  }
  return images;
}

int64_t files_in(const std::string &folder) {
  int64_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    files += entry.path().filename().string().starts_with("events.") ? 1 : 0;
  return files;
}

int64_t lines_in(const std::string &path) {
  std::ifstream file(path);
  int64_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
  }
  return lines;
}

// `rows`: of a step of all workers.
void check(const std::string &run, double rows, double evaluated) {
  const auto events = tutti::testing::decode_event_folder(run),
             of_eval = tutti::testing::decode_event_folder(run + "/eval");
  assert_int_equal(lines_in(run + ".csv"), 1 + kSteps + 1);  // and the names of the columns, and the end
  assert_true(files_in(run) == 1 && files_in(run + "/eval") == 1);
  const auto means = tutti::testing::curve(events, "mean of x");
  assert_int_equal(means.size(), 4);
  for (const auto &[step, mean] : means) {
    const auto [count, sum] = totals(events, step);
    assert_true(count == rows * 4);
    assert_true(std::abs(sum / count - mean) < 1e-6);
    assert_int_equal(images_in(events, step), kImages);
  }
  const auto [count, sum] = totals(of_eval, kSteps);
  assert_true(count == evaluated * 4);
  assert_true(std::abs(sum / count - tutti::testing::curve(of_eval, "mean of x")[0].second) < 1e-6);
  assert_int_equal(images_in(of_eval, kSteps), kImages);
}

void test_workers(void **) {
  // One input for all, whose batches they share; and an input of each, so that a step has a batch of each.
  for (const bool is_own : {false, true}) {
    char directory[64];
    make_directory(directory);
    int codes[2];
    Answer answers[2];
    run_workers(is_own ? "own" : "whole", directory, 2, 2, codes, answers, sizeof answers[0]);
    for (const Answer &answer : answers)
      if (answer.code != TUTTI_OK) fail_msg("a worker failed: %s", answer.error);
    check(std::string(directory) + "/run", is_own ? 2 * kBatch : kBatch, is_own ? 2 * kRows : kRows);
    std::filesystem::remove_all(directory);
  }
}

}  // namespace

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return work(arguments[1], arguments[2]);
  const CMUnitTest tests[] = {cmocka_unit_test(test_workers)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
