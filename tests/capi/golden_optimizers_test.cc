// SPDX-License-Identifier: Apache-2.0
//
// Optimizers by name through the C interface: up to 100 steps on 1, 2 or 3 replicas and in micro-batches, against what
// PyTorch, Keras, Optax and timm make of the same gradients (tests/conformance/golden/optimizers.json, adafactor.json).
// The gradient of a step is the sum of three rows: the loss is the sum of all elements of rows times variables.
//
// usage: golden_optimizers_test FILE OPTIMIZERS [PLUG-IN], with so many optimizers at least
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

#include "golden_entries.h"
#include "missing_backend.h"
// Behind the four that it needs.
extern "C" {
#include <cmocka.h>
}

using golden::must;
using golden::Replicas;
using nlohmann::json;

namespace {

constexpr int kMostReplicas = 3;
/// Shares of the gradient of a step, exact in single precision.
constexpr double kShares[] = {0.5, 0.25, 0.25};
constexpr int64_t kRows = std::size(kShares);

std::string file_name, plugin;
size_t least_optimizers = 0;

using Dims = std::vector<int64_t>;

tutti_tensor *make_tensor(const Dims &dims, const std::vector<float> &values) {
  tutti_tensor *tensor = nullptr;
  tutti_error *error = nullptr;
  must(tutti_tensor_from_data(TUTTI_DTYPE_F32, dims.data(), static_cast<int64_t>(dims.size()), values.data(),
                              static_cast<int64_t>(4 * values.size()), &tensor, &error),
       &error);
  return tensor;
}

struct Case {
  const json &file;
  const json &golden;

  std::vector<double> weights(const std::string &variable) const {
    return file["weights"][variable].get<std::vector<double>>();
  }
  const json &gradients(const std::string &variable) const {
    return file["gradients"][golden["gradients"].get<size_t>()][variable];
  }
};

tutti_value weighted_sum(tutti_graph *g, const std::string &name, const Dims &dims) {
  const tutti_value variable = tutti_graph_variable(g, name.c_str(), TUTTI_DTYPE_F32, dims.data(),
                                                    static_cast<int64_t>(dims.size()), "zeros", 0, 1);
  return tutti_reduce_sum(g, tutti_mul(g, tutti_graph_get_feature(g, name.c_str()), variable), nullptr);
}

int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const Case &one = *static_cast<const Case *>(user);
  tutti_value loss = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0);
  for (const auto &[name, shape] : one.file["shapes"].items())
    loss = tutti_add(g, loss, weighted_sum(g, name, shape.get<Dims>()));
  tutti_graph_set_output(g, "first", tutti_graph_get_feature(g, "bias"));
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, loss);
  const double first = one.golden["rate"].get<double>();
  const tutti_value rate = one.golden["falls"].get<bool>() ? tutti_schedule_exponential(g, first, 0.5, 50, nullptr)
                                                           : tutti_schedule_constant(g, first);
  golden::add_entry(g, one.golden, {rate});
  return tutti_graph_check(g, err);
}

/// Three rows for each step, in batches.
tutti_dataset *rows_of(tutti_context *context, const Case &one, int64_t batch) {
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_error *error = nullptr;
  must(tutti_pipeline_create(context, &pipeline, &error), &error);
  for (const auto &[name, shape] : one.file["shapes"].items()) {
    Dims dims = shape.get<Dims>();
    dims.insert(dims.begin(), kRows * static_cast<int64_t>(one.gradients(name).size()));
    std::vector<float> values;
    for (const json &gradient : one.gradients(name)) {
      for (const double share : kShares) {
        for (const json &number : gradient)
          values.push_back(static_cast<float>(share * number.get<double>()));
      }
    }
    tutti_tensor *const tensor = make_tensor(dims, values);
    tutti_pipeline_add_slices(pipeline, name.c_str(), TUTTI_ROLE_FEATURE, tensor);
    tutti_tensor_unref(tensor);
  }
  tutti_pipeline_batch(pipeline, batch, nullptr);
  must(tutti_pipeline_build(pipeline, &dataset, &error), &error);
  tutti_pipeline_unref(pipeline);
  return dataset;
}

tutti_estimator *make_estimator(const Replicas &replicas, const Case &one, int64_t micro_batches) {
  tutti_error *error = nullptr;
  tutti_options *options = nullptr;
  tutti_estimator *estimator = nullptr;
  must(tutti_options_create("run", &options, &error), &error);
  tutti_options_set_i64(options, "accumulation_steps", micro_batches);
  must(tutti_estimator_create(replicas.context, model, const_cast<Case *>(&one), nullptr, replicas.strategy, options,
                              &estimator, &error),
       &error);
  tutti_options_unref(options);
  return estimator;
}

void write_weights(tutti_estimator *estimator, const Case &one) {
  for (const auto &[name, shape] : one.file["shapes"].items()) {
    std::vector<float> values;
    for (const double number : one.weights(name))
      values.push_back(static_cast<float>(number));
    tutti_tensor *const tensor = make_tensor(shape.get<Dims>(), values);
    tutti_error *error = nullptr;
    must(tutti_estimator_write_variable(estimator, name.c_str(), tensor, &error), &error);
    tutti_tensor_unref(tensor);
  }
}

/// What of a variable is wrong after so many steps; empty where nothing is.
std::string compare(tutti_estimator *estimator, const std::string &name, const json &expected) {
  tutti_tensor *variable = nullptr;
  tutti_error *error = nullptr;
  must(tutti_estimator_read_variable(estimator, name.c_str(), &variable, &error), &error);
  const auto *const values = static_cast<const float *>(tutti_tensor_get_data(variable));
  std::string wrong;
  double size = 0;
  for (const json &number : expected)
    size = std::max(size, std::fabs(number.get<double>()));
  for (size_t i = 0; i < expected.size() && wrong.empty(); ++i) {
    const auto number = expected[i].get<double>();
    if (!(std::fabs(values[i] - number) <= 1e-5 * size))
      wrong =
          name + "[" + std::to_string(i) + "] is " + std::to_string(values[i]) + ", expected " + std::to_string(number);
  }
  tutti_tensor_unref(variable);
  return wrong;
}

std::string check_case(const Replicas &replicas, const Case &one, int64_t micro_batches) {
  tutti_error *error = nullptr;
  for (const auto &[steps, expected] : one.golden["after"].items()) {
    tutti_estimator *const estimator = make_estimator(replicas, one, micro_batches);
    tutti_dataset *const dataset = rows_of(replicas.context, one, micro_batches == 1 ? kRows : 1);
    tutti_options *options = nullptr;
    tutti_result *result = nullptr;
    must(tutti_options_create("train", &options, &error), &error);
    tutti_options_set_i64(options, "max_steps", std::stoll(steps));
    must(tutti_estimator_initialize(estimator, dataset, nullptr, nullptr, &error), &error);
    write_weights(estimator, one);
    must(tutti_estimator_train(estimator, dataset, options, nullptr, nullptr, &result, &error), &error);
    assert_int_equal(tutti_result_get_step(result), std::stoll(steps));
    std::string wrong;
    for (const auto &[name, numbers] : expected.items())
      wrong = wrong.empty() ? compare(estimator, name, numbers) : wrong;
    tutti_result_unref(result), tutti_dataset_unref(dataset), tutti_options_unref(options);
    tutti_estimator_unref(estimator);
    if (!wrong.empty()) return "after " + steps + " steps " + wrong;
  }
  return "";
}

/// The cases take turns: replicas, and whether a step has one batch or three.
void test_optimizers_by_name(void **) {
  std::ifstream stream(file_name);
  const json file = json::parse(stream);
  const Replicas replicas[kMostReplicas] = {Replicas(1, plugin), Replicas(2, plugin), Replicas(3, plugin)};
  std::map<std::string, int> turns;
  int cases = 0, wrong = 0;
  for (const json &golden : file["cases"]) {
    const Case one{file, golden};
    const int turn = turns[golden["op"].get<std::string>()]++;
    const int count = turn % kMostReplicas, micro_batches = turn % 4 == 3 ? kRows : 1;
    const std::string what = check_case(replicas[count], one, micro_batches);
    if (!what.empty()) {
      print_error("case %d, %s %s of %s, %d replicas, %d micro-batches: %s\n", cases,
                  golden["op"].get<std::string>().c_str(), golden["attributes"].dump().c_str(),
                  golden["made_by"].get<std::string>().c_str(), count + 1, micro_batches, what.c_str());
      ++wrong;
    }
    ++cases;
  }
  print_message("%d cases of %zu optimizers\n", cases, turns.size());
  assert_int_equal(wrong, 0);
  assert_true(turns.size() >= least_optimizers);
  for (const auto &[op, count] : turns)
    if (count < 4) fail_msg("%s has only %d cases", op.c_str(), count);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  file_name = argv[1];
  least_optimizers = std::stoul(argv[2]);
  if (argc > 3) plugin = argv[3];
  if (!plugin.empty() && is_missing(plugin.c_str())) return TEST_IS_SKIPPED;
  const CMUnitTest tests[] = {cmocka_unit_test(test_optimizers_by_name)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
