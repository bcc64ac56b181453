// SPDX-License-Identifier: Apache-2.0
//
// Every metric by name through the C interface: of an evaluation over uneven batches, and of a training step in two
// micro-batches, on 1, 2 and 3 replicas, each giving what scikit-learn and Keras have for all rows
// (tests/conformance/golden/metric_entries.json).
//
// usage: golden_metrics_test FILE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.h>

#include <algorithm>
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

using golden::dims_of;
using golden::must;
using golden::Replicas;
using nlohmann::json;

namespace {

constexpr size_t kTogether = 64;
constexpr int kMostReplicas = 3;

std::vector<json> cases;

/// Some cases, of one model.
struct Group {
  size_t begin = 0, end = 0;
};

std::string input_name(size_t one, size_t i) { return "case" + std::to_string(one) + "_" + std::to_string(i); }

std::string metric_name(size_t one) { return "m" + std::to_string(one); }

int32_t model(tutti_graph *g, int32_t, void *user, tutti_error **err) {
  const Group &group = *static_cast<const Group *>(user);
  for (size_t one = group.begin; one < group.end; ++one) {
    std::vector<tutti_value> inputs;
    for (size_t i = 0; i < cases[one]["inputs"].size(); ++i)
      inputs.push_back(tutti_graph_get_feature(g, input_name(one, i).c_str()));
    golden::add_entry(g, cases[one], inputs, metric_name(one));
  }
  const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, nullptr, 0, "zeros", 0, 1);
  tutti_graph_set_loss(g, tutti_square(g, w));
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), nullptr);
  return tutti_graph_check(g, err);
}

tutti_dataset *rows_of(tutti_context *context, const Group &group, int64_t batch) {
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_error *error = nullptr;
  must(tutti_pipeline_create(context, &pipeline, &error), &error);
  for (size_t one = group.begin; one < group.end; ++one) {
    for (size_t i = 0; i < cases[one]["inputs"].size(); ++i) {
      tutti_tensor *const tensor = golden::tensor_of(cases[one]["inputs"][i]);
      tutti_pipeline_add_slices(pipeline, input_name(one, i).c_str(), TUTTI_ROLE_FEATURE, tensor);
      tutti_tensor_unref(tensor);
    }
  }
  tutti_pipeline_batch(pipeline, batch, nullptr);
  must(tutti_pipeline_build(pipeline, &dataset, &error), &error);
  tutti_pipeline_unref(pipeline);
  return dataset;
}

/// What is wrong with a metric; empty where nothing is.
std::string check_metric(const tutti_result *result, size_t one) {
  const json &golden = cases[one], &expected = golden["outputs"][0];
  tutti_tensor *value = nullptr;
  tutti_error *error = nullptr;
  must(tutti_result_read_metric(result, metric_name(one).c_str(), &value, &error), &error);
  std::string wrong;
  const std::vector<int64_t> dims = dims_of(expected);
  if (tutti_tensor_get_rank(value) != static_cast<int64_t>(dims.size())) wrong = "another rank";
  for (size_t axis = 0; wrong.empty() && axis < dims.size(); ++axis)
    if (tutti_tensor_get_dim(value, static_cast<int64_t>(axis)) != dims[axis]) wrong = "another shape";
  assert_true(tutti_tensor_get_dtype(value) == TUTTI_DTYPE_F64);
  const auto *const numbers = static_cast<const double *>(tutti_tensor_get_data(value));
  const auto wanted = expected["values"].get<std::vector<double>>();
  for (size_t i = 0; wrong.empty() && i < wanted.size(); ++i) {
    const double most = golden["absolute"].get<double>() + golden["relative"].get<double>() * std::fabs(wanted[i]);
    if (std::fabs(numbers[i] - wanted[i]) <= most) continue;
    wrong =
        "number " + std::to_string(i) + " is " + std::to_string(numbers[i]) + ", expected " + std::to_string(wanted[i]);
  }
  const double plain = tutti_result_get_metric(result, metric_name(one).c_str());
  if (dims.empty() ? plain != numbers[0] : !std::isnan(plain)) wrong = "other number than the tensor";
  tutti_tensor_unref(value);
  return wrong;
}

int count_wrong(const tutti_result *result, const Group &group, int replicas, const char *what) {
  int wrong = 0;
  for (size_t one = group.begin; one < group.end; ++one) {
    const std::string text = check_metric(result, one);
    if (text.empty()) continue;
    print_error("line %zu (%s), %s on %d replicas: %s\n", one + 2, cases[one]["op"].get<std::string>().c_str(), what,
                replicas, text.c_str());
    ++wrong;
  }
  return wrong;
}

int check_group(const Replicas &replicas, int count, Group &group) {
  tutti_error *error = nullptr;
  tutti_options *options = nullptr;
  tutti_estimator *estimator = nullptr;
  tutti_result *result = nullptr;
  must(tutti_options_create("run", &options, &error), &error);
  tutti_options_set_i64(options, "accumulation_steps", 2);
  must(tutti_estimator_create(replicas.context, model, &group, nullptr, replicas.strategy, options, &estimator, &error),
       &error);
  const int64_t rows = dims_of(cases[0]["inputs"][0])[0];
  tutti_dataset *const halves = rows_of(replicas.context, group, (rows + 1) / 2);
  must(tutti_estimator_train(estimator, halves, nullptr, nullptr, nullptr, &result, &error), &error);
  int wrong = count_wrong(result, group, count, "a step");
  tutti_result_unref(result);
  tutti_dataset *const uneven = rows_of(replicas.context, group, 7);
  must(tutti_estimator_evaluate(estimator, uneven, 0, nullptr, &result, &error), &error);
  assert_int_equal(tutti_result_get_examples(result), rows);
  wrong += count_wrong(result, group, count, "an evaluation");
  tutti_result_unref(result), tutti_dataset_unref(halves), tutti_dataset_unref(uneven);
  tutti_estimator_unref(estimator), tutti_options_unref(options);
  return wrong;
}

void test_metrics_by_name(void **) {
  int wrong = 0;
  for (int count = 1; count <= kMostReplicas; ++count) {
    const Replicas replicas(count);
    for (size_t begin = 0; begin < cases.size(); begin += kTogether) {
      Group group{begin, std::min(begin + kTogether, cases.size())};
      wrong += check_group(replicas, count, group);
    }
  }
  std::map<std::string, int> counts;
  for (const json &golden : cases)
    ++counts[golden["op"].get<std::string>()];
  print_message("%zu cases of %zu metrics\n", cases.size(), counts.size());
  assert_int_equal(wrong, 0);
  assert_true(counts.size() >= 22);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1]);
  cases = json::parse(file).get<std::vector<json>>();
  const CMUnitTest tests[] = {cmocka_unit_test(test_metrics_by_name)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
