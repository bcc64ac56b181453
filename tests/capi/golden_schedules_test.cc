// SPDX-License-Identifier: Apache-2.0
//
// Every schedule by name through the C interface, step by step: the rates of PyTorch, Keras and TensorFlow
// (tests/conformance/golden/schedule_entries.json; steps far away are those of backend_schedules_test). And a schedule
// that is computed by ops from the number of completed steps.
//
// usage: golden_schedules_test FILE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
// Behind the four that it needs.
extern "C" {
#include <cmocka.h>
}

#include "golden_entries.h"

using golden::must;
using golden::Replicas;
using nlohmann::json;

namespace {

constexpr int64_t kSteps = 130;

std::vector<json> cases;

tutti_value add_schedule(tutti_graph *g, const json &entry) {
  std::vector<tutti_value> rates;
  for (const json &rate : entry["rates"])
    rates.push_back(add_schedule(g, rate));
  return golden::add_entry(g, entry, rates);
}

/// w += rate in each step.
void train_by(tutti_graph *g, tutti_value rate) {
  const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, nullptr, 0, "zeros", 0, 1);
  const tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_loss(g, tutti_neg(g, tutti_reduce_mean(g, tutti_mul(g, x, w), nullptr)));
  tutti_graph_set_output(g, "x", x);
  tutti_optimizer_sgd(g, rate, nullptr);
}

/// Each case under its number as a metric; the first trains.
int32_t all_schedules(tutti_graph *g, int32_t, void *, tutti_error **err) {
  std::vector<tutti_value> rates;
  for (size_t i = 0; i < cases.size(); ++i) {
    rates.push_back(add_schedule(g, cases[i]));
    tutti_graph_add_metric(g, std::to_string(i).c_str(), rates.back());
  }
  train_by(g, rates[1]);
  return tutti_graph_check(g, err);
}

/// 1 / sqrt(1 + step), which no entry has.
int32_t own_schedule(tutti_graph *g, int32_t, void *, tutti_error **err) {
  const tutti_value step = tutti_graph_get_completed_steps(g);
  train_by(g, tutti_rsqrt(g, tutti_add(g, step, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1))));
  return tutti_graph_check(g, err);
}

tutti_dataset *ones(tutti_context *context) {
  const std::vector<float> values(6, 1);
  const int64_t rows = 6;
  tutti_tensor *tensor = nullptr;
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_error *error = nullptr;
  must(tutti_tensor_from_data(TUTTI_DTYPE_F32, &rows, 1, values.data(), 24, &tensor, &error), &error);
  must(tutti_pipeline_create(context, &pipeline, &error), &error);
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_pipeline_repeat(pipeline, nullptr);
  tutti_pipeline_batch(pipeline, 3, nullptr);
  must(tutti_pipeline_build(pipeline, &dataset, &error), &error);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(tensor);
  return dataset;
}

class Training {
 public:
  Training(const Replicas &replicas, tutti_model_fn model) : dataset_(ones(replicas.context)) {
    tutti_error *error = nullptr;
    must(tutti_estimator_create(replicas.context, model, nullptr, nullptr, replicas.strategy, nullptr, &estimator_,
                                &error),
         &error);
    must(tutti_session_open(estimator_, dataset_, nullptr, nullptr, nullptr, &session_, &error), &error);
  }
  ~Training() { tutti_session_unref(session_), tutti_estimator_unref(estimator_), tutti_dataset_unref(dataset_); }
  Training(const Training &) = delete;
  Training &operator=(const Training &) = delete;

  /// The caller drops the result.
  tutti_result *step() {
    tutti_error *error = nullptr;
    tutti_result *result = nullptr;
    must(tutti_session_run(session_, 1, &result, &error), &error);
    return result;
  }
  double weight() {
    tutti_error *error = nullptr;
    tutti_tensor *value = nullptr;
    must(tutti_estimator_read_variable(estimator_, "w", &value, &error), &error);
    const auto weight = static_cast<double>(*static_cast<const float *>(tutti_tensor_get_data(value)));
    tutti_tensor_unref(value);
    return weight;
  }

 private:
  tutti_dataset *dataset_ = nullptr;
  tutti_estimator *estimator_ = nullptr;
  tutti_session *session_ = nullptr;
};

/// The rate of a case at a step; NaN where it has none.
double expected_rate(const json &golden, int64_t step) {
  const json &steps = golden["inputs"][0]["values"];
  for (size_t k = 0; k < steps.size(); ++k)
    if (steps[k].get<int64_t>() == step) return golden["outputs"][0]["values"][k].get<double>();
  return NAN;
}

int count_wrong(const tutti_result *result, int64_t step, std::map<std::string, int> &compared) {
  int wrong = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const double expected = expected_rate(cases[i], step);
    if (std::isnan(expected)) continue;
    ++compared[cases[i]["op"].get<std::string>()];
    const double rate = tutti_result_get_metric(result, std::to_string(i).c_str());
    if (std::fabs(rate - expected) <= 1e-6 * std::fabs(expected) + 1e-37) continue;
    print_error("line %zu (%s), step %d: %.9g, expected %.9g\n", i + 2, cases[i]["op"].get<std::string>().c_str(),
                static_cast<int>(step), rate, expected);
    ++wrong;
  }
  return wrong;
}

void test_schedules_by_name(void **) {
  for (const int count : {1, 2}) {
    const Replicas replicas(count);
    Training training(replicas, all_schedules);
    std::map<std::string, int> compared;
    int wrong = 0;
    double weight = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
      tutti_result *const result = training.step();
      wrong += count_wrong(result, step, compared);
      weight += tutti_result_get_metric(result, "1");
      tutti_result_unref(result);
    }
    assert_int_equal(wrong, 0);
    assert_true(compared.size() >= 12);
    for (const auto &[op, comparisons] : compared)
      if (comparisons < 3) fail_msg("%s: %d rates compared", op.c_str(), comparisons);
    assert_true(std::fabs(training.weight() - weight) < 1e-4 && weight > 0.1);
  }
}

void test_own_schedule(void **) {
  const Replicas replicas(2);
  Training training(replicas, own_schedule);
  double expected = 0;
  for (int64_t step = 0; step < 40; ++step) {
    tutti_result_unref(training.step());
    expected += 1 / std::sqrt(1 + static_cast<double>(step));
    assert_true(std::fabs(training.weight() - expected) < 1e-4);
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1]);
  cases = json::parse(file).get<std::vector<json>>();
  const CMUnitTest tests[] = {cmocka_unit_test(test_schedules_by_name), cmocka_unit_test(test_own_schedule)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
