// SPDX-License-Identifier: Apache-2.0
//
// Every loss by name through the C interface: trained for one step on 1, 2 or 3 replicas, in one batch or in
// micro-batches, each giving the loss and the gradient that PyTorch or Keras have for the whole batch
// (tests/conformance/golden/loss_entries.json). What is differentiated is an input plus a variable, so that the
// variable gets the sum of the input's gradient over all rows.
//
// usage: golden_losses_test FILE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
// Behind the four that it needs.
extern "C" {
#include <cmocka.h>
}

#include "golden_entries.h"

using golden::dims_of;
using golden::must;
using golden::Replicas;
using golden::tensor_of;
using nlohmann::json;

namespace {

constexpr int kMostReplicas = 3;

std::string file_name;

std::string input_name(size_t i) { return "input" + std::to_string(i); }

std::string variable_name(size_t i) { return "shift" + std::to_string(i); }

/// The loss of the golden case; the sum of all numbers where it is not reduced.
int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const json &golden = *static_cast<const json *>(user);
  std::vector<tutti_value> inputs;
  for (size_t i = 0; i < golden["inputs"].size(); ++i) {
    inputs.push_back(tutti_graph_get_feature(g, input_name(i).c_str()));
    if (i >= golden["gradients"].size()) continue;
    const std::vector<int64_t> dims = dims_of(golden["inputs"][i]);
    const tutti_value shift = tutti_graph_variable(g, variable_name(i).c_str(), TUTTI_DTYPE_F32, dims.data() + 1,
                                                   static_cast<int64_t>(dims.size()) - 1, "zeros", 0, 1);
    inputs[i] = tutti_add(g, inputs[i], shift);
  }
  tutti_value loss = golden::add_entry(g, golden, inputs);
  if (!dims_of(golden["outputs"][0]).empty()) loss = tutti_reduce_sum(g, loss, nullptr);
  tutti_graph_set_output(g, "first", inputs[0]);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, loss);
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1), nullptr);
  }
  return tutti_graph_check(g, err);
}

/// All rows in so many batches.
tutti_dataset *rows_of(tutti_context *context, const json &golden, int64_t batches) {
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_error *error = nullptr;
  must(tutti_pipeline_create(context, &pipeline, &error), &error);
  for (size_t i = 0; i < golden["inputs"].size(); ++i) {
    tutti_tensor *const tensor = tensor_of(golden["inputs"][i]);
    tutti_pipeline_add_slices(pipeline, input_name(i).c_str(), TUTTI_ROLE_FEATURE, tensor);
    tutti_tensor_unref(tensor);
  }
  tutti_pipeline_batch(pipeline, (dims_of(golden["inputs"][0])[0] + batches - 1) / batches, nullptr);
  must(tutti_pipeline_build(pipeline, &dataset, &error), &error);
  tutti_pipeline_unref(pipeline);
  return dataset;
}

bool is_close(double got, double expected, double size, const json &golden) {
  // Sums of a few numbers, each of which may be off.
  return std::fabs(got - expected) <= 4 * golden["absolute"].get<double>() + golden["relative"].get<double>() * size;
}

/// What of the variable is wrong after a step of rate 1; empty where nothing is.
std::string check_gradient(tutti_estimator *estimator, const json &golden, size_t i) {
  tutti_tensor *variable = nullptr;
  tutti_error *error = nullptr;
  must(tutti_estimator_read_variable(estimator, variable_name(i).c_str(), &variable, &error), &error);
  const auto *const values = static_cast<const float *>(tutti_tensor_get_data(variable));
  const auto gradient = golden["gradients"][i]["values"].get<std::vector<double>>();
  const auto elements = static_cast<size_t>(tutti_tensor_get_element_count(variable));
  std::string wrong;
  for (size_t k = 0; k < elements && wrong.empty(); ++k) {
    double sum = 0, size = 0;
    for (size_t at = k; at < gradient.size(); at += elements)
      sum += gradient[at], size += std::fabs(gradient[at]);
    if (!is_close(-values[k], sum, size, golden)) {
      wrong = "gradient of input " + std::to_string(i) + ", element " + std::to_string(k) + ": " +
              std::to_string(-values[k]) + ", expected " + std::to_string(sum);
    }
  }
  tutti_tensor_unref(variable);
  return wrong;
}

/// A step over all rows; the caller drops the estimator.
double train_step(const Replicas &replicas, json &golden, int64_t batches, const char *determinism,
                  tutti_estimator **out) {
  tutti_error *error = nullptr;
  tutti_options *options = nullptr;
  tutti_estimator *estimator = nullptr;
  tutti_result *result = nullptr;
  must(tutti_options_create("run", &options, &error), &error);
  tutti_options_set_i64(options, "accumulation_steps", batches);
  tutti_options_set_string(options, "determinism", determinism);
  must(
      tutti_estimator_create(replicas.context, model, &golden, nullptr, replicas.strategy, options, &estimator, &error),
      &error);
  tutti_dataset *const dataset = rows_of(replicas.context, golden, batches);
  must(tutti_estimator_train(estimator, dataset, nullptr, nullptr, nullptr, &result, &error), &error);
  assert_int_equal(tutti_result_get_step(result), 1);
  const double loss = tutti_result_get_loss(result);
  tutti_result_unref(result), tutti_dataset_unref(dataset), tutti_options_unref(options);
  *out = estimator;
  return loss;
}

std::string check_case(const Replicas &replicas, json &golden, int64_t batches) {
  double expected = 0, size = 0;
  for (const json &value : golden["outputs"][0]["values"])
    expected += value.get<double>(), size += std::fabs(value.get<double>());
  tutti_estimator *estimator = nullptr;
  const double loss = train_step(replicas, golden, batches, "fast", &estimator);
  std::string wrong;
  if (!is_close(loss, expected, size, golden))
    wrong = "loss " + std::to_string(loss) + ", expected " + std::to_string(expected);
  for (size_t i = 0; wrong.empty() && i < golden["gradients"].size(); ++i)
    wrong = check_gradient(estimator, golden, i);
  tutti_estimator_unref(estimator);
  return wrong;
}

/// The cases of a loss take turns: replicas, and whether a step has one batch or two.
void test_losses_by_name(void **) {
  std::ifstream file(file_name);
  std::vector<json> cases = json::parse(file).get<std::vector<json>>();
  const Replicas replicas[kMostReplicas] = {Replicas(1), Replicas(2), Replicas(3)};
  std::map<std::string, int> turns;
  int wrong = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string op = cases[i]["op"];
    const int turn = turns[op]++, batches = 1 + turn / kMostReplicas % 2;
    const std::string what = check_case(replicas[turn % kMostReplicas], cases[i], batches);
    if (what.empty()) continue;
    print_error("line %zu (%s), %d replicas, %d batches: %s\n", i + 2, op.c_str(), 1 + turn % kMostReplicas, batches,
                what.c_str());
    ++wrong;
  }
  print_message("%zu cases of %zu losses\n", cases.size(), turns.size());
  assert_int_equal(wrong, 0);
  assert_true(turns.size() > 20);
  for (const auto &[op, count] : turns)
    if (count < 2 * kMostReplicas) fail_msg("%s has only %d cases", op.c_str(), count);
}

/// The loss and the bits of all variables after a step at level invariant.
std::pair<double, std::string> invariant_step(const Replicas &replicas, json &golden) {
  tutti_estimator *estimator = nullptr;
  tutti_error *error = nullptr;
  std::pair<double, std::string> trained;
  trained.first = train_step(replicas, golden, 1, "invariant", &estimator);
  for (size_t i = 0; i < golden["gradients"].size(); ++i) {
    tutti_tensor *variable = nullptr;
    must(tutti_estimator_read_variable(estimator, variable_name(i).c_str(), &variable, &error), &error);
    trained.second.append(static_cast<const char *>(tutti_tensor_get_data(variable)),
                          static_cast<size_t>(4 * tutti_tensor_get_element_count(variable)));
    tutti_tensor_unref(variable);
  }
  tutti_estimator_unref(estimator);
  return trained;
}

/// At level invariant one replica and two give the same bits.
void test_same_bits(void **) {
  std::ifstream file(file_name);
  std::vector<json> cases = json::parse(file).get<std::vector<json>>();
  const Replicas one(1), two(2);
  std::map<std::string, int> compared;
  for (json &golden : cases) {
    int &count = compared[golden["op"].get<std::string>()];
    if (count >= 3 || dims_of(golden["inputs"][0])[0] < 3) continue;
    ++count;
    if (invariant_step(one, golden) != invariant_step(two, golden))
      fail_msg("%s: other bits on two replicas", golden["op"].get<std::string>().c_str());
  }
  for (const auto &[op, count] : compared)
    if (count != 3) fail_msg("%s: %d cases compared", op.c_str(), count);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  file_name = argv[1];
  const CMUnitTest tests[] = {cmocka_unit_test(test_losses_by_name), cmocka_unit_test(test_same_bits)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
