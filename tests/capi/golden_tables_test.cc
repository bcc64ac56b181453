// SPDX-License-Identifier: Apache-2.0
//
// Tables that a model looks rows up in, through the C interface: up to 11 steps on 1, 2 or 3 replicas and in
// micro-batches, against what PyTorch makes of them (tests/conformance/golden/tables.json). Whether an optimizer
// updates all rows or those that were looked up, the weights are the same; a lazy one leaves the other rows alone.
//
// usage: golden_tables_test FILE [PLUGIN]
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
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
std::string file_name, plugin;

using Dims = std::vector<int64_t>;

struct Case {
  const json &file;
  const json &golden;

  int64_t number(const char *name) const { return file[name].get<int64_t>(); }
};

template <typename T>
tutti_tensor *make_tensor(int32_t dtype, const Dims &dims, const json &numbers) {
  const auto values = numbers.get<std::vector<T>>();
  tutti_tensor *tensor = nullptr;
  tutti_error *error = nullptr;
  must(tutti_tensor_from_data(dtype, dims.data(), static_cast<int64_t>(dims.size()), values.data(),
                              static_cast<int64_t>(sizeof(T) * values.size()), &tensor, &error),
       &error);
  return tensor;
}

tutti_value sum_along(tutti_graph *g, tutti_value x, int64_t axis) {
  tutti_reduce_sum_attrs attributes = {};
  attributes.axes = &axis;
  attributes.axes_count = 1;
  return tutti_reduce_sum(g, x, &attributes);
}

/// The squared error of each example.
tutti_value error_of(tutti_graph *g, const Case &one) {
  const Dims table_dims{one.number("count"), one.number("width")};
  const tutti_value table = tutti_graph_variable(g, "table", TUTTI_DTYPE_F32, table_dims.data(), 2, "zeros", 0, 1);
  const tutti_value kernel =
      tutti_graph_variable(g, "kernel", TUTTI_DTYPE_F32, table_dims.data() + 1, 1, "zeros", 0, 1);
  const tutti_value several = tutti_gather(g, table, tutti_graph_get_feature(g, "ids"), nullptr);
  const tutti_value single = tutti_gather(g, table, tutti_graph_get_feature(g, "id"), nullptr);
  const tutti_value features = tutti_add(g, sum_along(g, tutti_tanh(g, several), 1),
                                         tutti_mul(g, single, tutti_graph_constant(g, TUTTI_DTYPE_F32, 2)));
  tutti_graph_set_output(g, "features", features);
  const tutti_value prediction = sum_along(g, tutti_mul(g, features, kernel), 1);
  return tutti_square(g, tutti_sub(g, prediction, tutti_graph_get_feature(g, "target")));
}

int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const Case &one = *static_cast<const Case *>(user);
  const tutti_value error = error_of(g, one);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  const tutti_value weight = tutti_graph_get_feature(g, "weight");
  const tutti_value weighted =
      tutti_div(g, tutti_reduce_sum(g, tutti_mul(g, weight, error), nullptr), tutti_reduce_sum(g, weight, nullptr));
  tutti_graph_set_loss(g, one.golden["weighted"].get<bool>() ? weighted : tutti_reduce_mean(g, error, nullptr));
  if (one.golden.contains("clip_norm")) tutti_graph_set_gradient_clip_norm(g, one.golden["clip_norm"].get<double>());
  json entry = one.golden;
  if (entry.contains("clip_value")) entry["attributes"]["clip_value"] = {{"f64", entry["clip_value"]}};
  golden::add_entry(g, entry, {tutti_schedule_constant(g, one.golden["rate"].get<double>())});
  return tutti_graph_check(g, err);
}

template <typename T>
void add_feature(tutti_pipeline *pipeline, const char *name, int32_t dtype, const Dims &dims, const json &numbers) {
  tutti_tensor *const tensor = make_tensor<T>(dtype, dims, numbers);
  tutti_pipeline_add_slices(pipeline, name, TUTTI_ROLE_FEATURE, tensor);
  tutti_tensor_unref(tensor);
}

tutti_dataset *data_of(tutti_context *context, const Case &one, int64_t batch) {
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_error *error = nullptr;
  must(tutti_pipeline_create(context, &pipeline, &error), &error);
  const json &data = one.file["data"];
  const auto rows = static_cast<int64_t>(data["id"].size());
  add_feature<int32_t>(pipeline, "ids", TUTTI_DTYPE_I32, {rows, one.number("ids_each")}, data["ids"]);
  add_feature<int64_t>(pipeline, "id", TUTTI_DTYPE_I64, {rows}, data["id"]);
  add_feature<float>(pipeline, "target", TUTTI_DTYPE_F32, {rows}, data["target"]);
  add_feature<float>(pipeline, "weight", TUTTI_DTYPE_F32, {rows}, data["weight"]);
  tutti_pipeline_repeat(pipeline, nullptr);
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
  const Dims dims{one.number("count"), one.number("width")};
  for (const char *name : {"table", "kernel"}) {
    const Dims shape = std::string(name) == "table" ? dims : Dims{dims[1]};
    tutti_tensor *const tensor = make_tensor<float>(TUTTI_DTYPE_F32, shape, one.file["data"][name]);
    tutti_error *error = nullptr;
    must(tutti_estimator_write_variable(estimator, name, tensor, &error), &error);
    tutti_tensor_unref(tensor);
  }
}

/// What of a variable is wrong; empty where nothing is.
std::string compare(tutti_estimator *estimator, const std::string &name, const json &expected) {
  tutti_tensor *variable = nullptr;
  tutti_error *error = nullptr;
  must(tutti_estimator_read_variable(estimator, name.c_str(), &variable, &error), &error);
  const auto *const values = static_cast<const float *>(tutti_tensor_get_data(variable));
  const auto numbers = expected.get<std::vector<double>>();
  const double size = std::ranges::max(numbers, {}, [](double x) { return std::fabs(x); });
  std::string wrong;
  for (size_t i = 0; i < numbers.size() && wrong.empty(); ++i) {
    if (std::fabs(values[i] - numbers[i]) <= 1e-5 * std::fabs(size)) continue;
    wrong = name + "[" + std::to_string(i) + "] is " + std::to_string(values[i]) + ", expected " +
            std::to_string(numbers[i]);
  }
  tutti_tensor_unref(variable);
  return wrong;
}

std::string check_case(const Replicas &replicas, const Case &one, int64_t micro_batches) {
  tutti_error *error = nullptr;
  for (const auto &[steps, expected] : one.golden["after"].items()) {
    tutti_estimator *const estimator = make_estimator(replicas, one, micro_batches);
    tutti_dataset *const dataset = data_of(replicas.context, one, one.number("rows") / micro_batches);
    tutti_options *options = nullptr;
    tutti_result *result = nullptr;
    must(tutti_options_create("train", &options, &error), &error);
    tutti_options_set_i64(options, "max_steps", std::stoll(steps));
    must(tutti_estimator_initialize(estimator, dataset, nullptr, nullptr, &error), &error);
    write_weights(estimator, one);
    must(tutti_estimator_train(estimator, dataset, options, nullptr, nullptr, &result, &error), &error);
    std::string wrong;
    for (const auto &[name, numbers] : expected.items())
      wrong = wrong.empty() ? compare(estimator, name, numbers) : wrong;
    tutti_result_unref(result), tutti_dataset_unref(dataset), tutti_options_unref(options);
    tutti_estimator_unref(estimator);
    if (!wrong.empty()) return "after " + steps + " steps " + wrong;
  }
  return "";
}

/// Each case on every number of replicas, and in micro-batches of one row.
void test_tables(void **) {
  std::ifstream stream(file_name);
  const json file = json::parse(stream);
  const Replicas replicas[kMostReplicas] = {Replicas(1, plugin), Replicas(2, plugin), Replicas(3, plugin)};
  int cases = 0, wrong = 0;
  for (const json &golden : file["cases"]) {
    const Case one{file, golden};
    for (int turn = 0; turn <= kMostReplicas; ++turn) {
      const bool is_whole = turn < kMostReplicas;
      const int count = is_whole ? turn : cases % kMostReplicas;
      const int64_t micro_batches = is_whole ? 1 : one.number("rows");
      const std::string what = check_case(replicas[count], one, micro_batches);
      if (what.empty()) continue;
      print_error("case %d, %s %s of %s, %d replicas, %d micro-batches: %s\n", cases,
                  golden["op"].get<std::string>().c_str(), golden["attributes"].dump().c_str(),
                  golden["made_by"].get<std::string>().c_str(), count + 1, static_cast<int>(micro_batches),
                  what.c_str());
      ++wrong;
    }
    ++cases;
  }
  print_message("%d cases\n", cases);
  assert_int_equal(wrong, 0);
  assert_true(cases >= 60);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  file_name = argv[1];
  if (argc > 2) plugin = argv[2];
  if (!plugin.empty() && is_missing(plugin.c_str())) return TEST_IS_SKIPPED;
  const CMUnitTest tests[] = {cmocka_unit_test(test_tables)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
