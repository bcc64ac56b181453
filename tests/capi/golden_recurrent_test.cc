// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers through the C interface, on 1 to 3 replicas and in micro-batches: outputs, last states, the loss and
// the gradient of each variable are those of PyTorch (tests/conformance/golden/recurrent.json, written by
// make_recurrent_golden.py beside it).
//
// usage: golden_recurrent_test FILE [PLUG-IN]
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.hpp>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "missing_backend.h"
// Behind the four that it needs.
extern "C" {
#include <cmocka.h>
}

using nlohmann::json;

namespace {

constexpr int kMostReplicas = 3;

std::string file_name, plugin;

std::vector<int64_t> dims_of(const json &tensor) { return tensor["dims"].get<std::vector<int64_t>>(); }

tutti::Tensor tensor_of(const json &text) {
  const auto values = text["values"].get<std::vector<float>>();
  return {TUTTI_DTYPE_F32, dims_of(text), values.data(), static_cast<int64_t>(4 * values.size())};
}

void set_attribute(tutti_graph *g, const char *key, const json &value) {
  if (value.is_boolean()) tutti_graph_set_bool(g, key, value.get<bool>());
  if (value.is_number_integer()) tutti_graph_set_i64(g, key, value.get<int64_t>());
  if (value.is_number_float()) tutti_graph_set_f64(g, key, value.get<double>());
  if (value.is_string()) tutti_graph_set_string(g, key, value.get<std::string>().c_str());
}

/// The outputs of the layer, by name, and the mean over rows of the sum of all their squares.
void model(tutti::Graph g, int32_t mode, const json &golden) {
  tutti_graph_begin(g, golden["op"].get<std::string>().c_str(), 1);
  tutti_graph_add_input(g, g.feature("x"));
  tutti_graph_add_input(g, golden["lengths"].is_null() ? tutti_no_value() : g.feature("lengths"));
  for (size_t i = 0; i < golden["initial"].size(); ++i)
    tutti_graph_add_input(g, g.feature(("initial" + std::to_string(i)).c_str()));
  for (const auto &[key, value] : golden["attributes"].items())
    set_attribute(g, key.c_str(), value);
  const size_t count = golden["outputs"].size();
  std::vector<tutti_value> outputs(count);
  outputs[0] = tutti_graph_end(g, outputs.data() + 1, static_cast<int64_t>(count) - 1);
  tutti_value sum = {0};
  for (size_t i = 0; i < count; ++i) {
    g.output(("output" + std::to_string(i)).c_str(), outputs[i]);
    const int64_t axes[] = {1, 2};
    const tutti_reduce_sum_attrs attrs = {axes, 2, 0};
    const tutti_value squares = tutti_reduce_sum(g, tutti_square(g, outputs[i]), &attrs);
    sum = i == 0 ? squares : tutti_add(g, sum, squares);
  }
  if (mode == TUTTI_MODE_PREDICT) return;
  g.loss(tutti_reduce_mean(g, sum, nullptr));
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), nullptr);
}

tutti::Dataset rows_of(const tutti::Context &context, const json &golden, int64_t batches) {
  tutti::Pipeline pipeline(context);
  const auto add = [&](const std::string &name, const tutti::Tensor &tensor) {
    tutti_pipeline_add_slices(pipeline, name.c_str(), TUTTI_ROLE_FEATURE, tensor);
  };
  add("x", tensor_of(golden["x"]));
  if (!golden["lengths"].is_null()) {
    const auto lengths = golden["lengths"].get<std::vector<int32_t>>();
    const auto count = static_cast<int64_t>(lengths.size());
    add("lengths", tutti::Tensor(TUTTI_DTYPE_I32, {count}, lengths.data(), 4 * count));
  }
  for (size_t i = 0; i < golden["initial"].size(); ++i)
    add("initial" + std::to_string(i), tensor_of(golden["initial"][i]));
  tutti_pipeline_batch(pipeline, (dims_of(golden["x"])[0] + batches - 1) / batches, nullptr);
  return pipeline.build();
}

void compare(const tutti::Tensor &got, const json &expected, const std::string &what) {
  const auto values = expected["values"].get<std::vector<double>>();
  if (got.element_count() != static_cast<int64_t>(values.size()))
    fail_msg("%s has %d elements, expected %zu", what.c_str(), static_cast<int>(got.element_count()), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double number = got.data<float>()[i];
    if (std::fabs(number - values[i]) > 2e-6 + 1e-5 * std::fabs(values[i]))
      fail_msg("%s: element %zu is %.9g, expected %.9g", what.c_str(), i, number, values[i]);
  }
}

void check_case(const json &golden, const std::string &name, int replicas, int64_t batches) {
  tutti::Options options("context");
  options.set("logical_devices", replicas);
  if (!plugin.empty()) options.set("plugin", plugin);
  const tutti::Context context(options);
  const tutti::Strategy strategy = tutti::Strategy::mirrored(context);
  tutti::Options run("run");
  run.set("keep_gradients", true).set("keep_outputs", true).set("accumulation_steps", batches);
  tutti::Estimator estimator([&](tutti::Graph g, int32_t mode) { model(g, mode, golden); }, run, strategy, context);
  const tutti::Dataset rows = rows_of(context, golden, batches);
  estimator.initialize(rows);
  for (const auto &[variable, value] : golden["variables"].items())
    estimator.write_variable(variable, tensor_of(value));
  assert_int_equal(estimator.trainable_names().size(), golden["variables"].size());
  const tutti::Result result = estimator.train(rows);
  const double loss = golden["loss"].get<double>();
  if (std::fabs(result.loss() - loss) > 1e-5 * (1 + loss))
    fail_msg("%s: loss %g, expected %g", name.c_str(), result.loss(), loss);
  for (size_t i = 0; i < golden["outputs"].size(); ++i) {
    const std::string output = "output" + std::to_string(i);
    compare(estimator.read_output(output), golden["outputs"][i], name + " " + output);
  }
  for (const auto &[variable, gradient] : golden["gradients"].items())
    compare(estimator.read_gradient(variable), gradient, name + " gradient of " + variable);
}

void test_recurrent_layers(void **) {
  const json cases = json::parse(std::ifstream(file_name));
  assert_true(cases.size() > 20);
  for (size_t i = 0; i < cases.size(); ++i) {
    for (int replicas = 1; replicas <= kMostReplicas; ++replicas) {
      const int64_t batches = replicas == 2 && dims_of(cases[i]["x"])[0] > 1 ? 2 : 1;
      const std::string name = "line " + std::to_string(i + 2) + ", " + cases[i]["op"].get<std::string>() + ", " +
                               std::to_string(replicas) + " replicas";
      try {
        check_case(cases[i], name, replicas, batches);
      } catch (const tutti::Error &error) {
        fail_msg("%s: %s", name.c_str(), error.what());
      }
    }
  }
}

/// What cannot be: the error says what was expected.
std::string open_error(const json &golden) {
  const tutti::Context context{tutti::Options("context")};
  const tutti::Strategy strategy = tutti::Strategy::one_device(context);
  tutti::Estimator estimator([&](tutti::Graph g, int32_t mode) { model(g, mode, golden); }, tutti::Options("run"),
                             strategy, context);
  try {
    estimator.train(rows_of(context, golden, 1));
  } catch (const tutti::Error &error) {
    return error.what();
  }
  return "no error";
}

void assert_says(const std::string &text, const char *needle) {
  if (text.find(needle) == std::string::npos) fail_msg("expected \"%s\" in: %s", needle, text.c_str());
}

void test_mistakes(void **) {
  const json cases = json::parse(std::ifstream(file_name));
  json golden = cases[2];  // lengths and initial states
  golden["lengths"][3] = 7;
  assert_says(open_error(golden), "7");
  golden["lengths"][3] = -1;
  assert_says(open_error(golden), "-1");
  golden = cases[2];
  golden["initial"][0]["dims"][1] = 3;
  golden["initial"][0]["dims"][2] = 1;
  assert_says(open_error(golden), "a state for each layer and direction");
  golden = cases[0];
  golden["attributes"]["dropout"] = 1.0;
  assert_says(open_error(golden), "'dropout' must be below 1");
  golden["attributes"] = {{"units", 2}, {"bidirectional", true}, {"reverse", true}};
  assert_says(open_error(golden), "'reverse' has no meaning");
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 2) return 2;
  file_name = arguments[1];
  if (count > 2) plugin = arguments[2];
  if (!plugin.empty() && is_missing(plugin.c_str())) return TEST_IS_SKIPPED;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_recurrent_layers),
      cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
