// SPDX-License-Identifier: Apache-2.0
//
// Every function by name through the C interface, trained for one step on 1, 2 and 3 replicas: results row by row, and
// the gradients, are those that PyTorch and NumPy have for the whole batch (tests/conformance/golden/functions.json,
// written by make_function_golden.py). Cases that mix the rows of a batch run on one replica alone. The loss is the sum
// of result * upstream. What is differentiated is an input plus a variable: one for all rows, which gets the sum of the
// input's gradient over them. The same numbers come out of a map of a dataset, where a function may be used there.
//
// usage: golden_functions_test FILE [PLUG-IN]
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "missing_backend.h"
// Behind the four that it needs.
extern "C" {
#include <cmocka.h>
}

using nlohmann::json;

namespace {

constexpr int kMostReplicas = 3;

/// Of test_of_sums_over_rows(), by PyTorch: tan(s) + atan2(s, cosh(s)) + softsign(s) * norm(x) of the sum s.
constexpr double kLoss = 4.238285531882543, kGradient = 72.44892345332498;

std::string file_name, plugin;

std::vector<int64_t> dims_of(const json &tensor) { return tensor["dims"].get<std::vector<int64_t>>(); }

double number_of(const json &value) {
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_string()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return value == "Infinity" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

template <typename T>
tutti::Tensor filled(int32_t dtype, const json &text) {
  std::vector<T> values;
  for (const json &value : text["values"])
    values.push_back(static_cast<T>(number_of(value)));
  return {dtype, dims_of(text), values.data(), static_cast<int64_t>(sizeof(T) * values.size())};
}

tutti::Tensor tensor_of(const json &text) {
  if (text["dtype"] == "boolean") return filled<uint8_t>(TUTTI_DTYPE_BOOL, text);
  return text["dtype"] == "i32" ? filled<int32_t>(TUTTI_DTYPE_I32, text) : filled<float>(TUTTI_DTYPE_F32, text);
}

void set_attribute(tutti_graph *g, const char *key, const json &value) {
  if (value.contains("bool")) tutti_graph_set_bool(g, key, value["bool"].get<bool>());
  if (value.contains("i64")) tutti_graph_set_i64(g, key, value["i64"].get<int64_t>());
  if (value.contains("f64")) tutti_graph_set_f64(g, key, value["f64"].get<double>());
  if (value.contains("string")) tutti_graph_set_string(g, key, value["string"].get<std::string>().c_str());
  if (value.contains("ints")) {
    const auto list = value["ints"].get<std::vector<int64_t>>();
    tutti_graph_set_i64s(g, key, list.data(), static_cast<int64_t>(list.size()));
  }
}

/// One case, and how its values are named in a model.
struct Case {
  json golden;
  bool is_split = false;  ///< into rows

  bool has(const char *list, size_t index, const char *of = nullptr) const {
    if (of == nullptr && !golden.contains(list)) return false;
    const json &indices = of == nullptr ? golden[list] : golden["rows"][of];
    return std::find(indices.begin(), indices.end(), index) != indices.end();
  }
  bool has_rows(const char *of, size_t index) const { return is_split && has("rows", index, of); }
  bool is_differentiated(size_t input) const { return has("wrt", input); }
  bool is_float(size_t output) const { return golden["outputs"][output]["dtype"] == "f32"; }
  size_t outputs() const { return golden["outputs"].size(); }
};

std::string name_of(const char *what, size_t index) { return what + std::to_string(index); }

tutti_value input_of(tutti::Graph g, const Case &one, size_t i) {
  const json &text = one.golden["inputs"][i];
  const bool has_rows = one.has_rows("inputs", i);
  const tutti_value given =
      has_rows ? g.feature(name_of("input", i).c_str()) : tutti_graph_constant_tensor(g, tensor_of(text));
  if (!one.is_differentiated(i)) return given;
  const std::vector<int64_t> dims = dims_of(text);
  const auto skipped = has_rows ? 1 : 0;
  const tutti_value shift = tutti_graph_variable(g, name_of("shift", i).c_str(), TUTTI_DTYPE_F32, dims.data() + skipped,
                                                 static_cast<int64_t>(dims.size()) - skipped, "zeros", 0, 1);
  return tutti_add(g, given, shift);
}

/// The function on its inputs, and all of its results.
std::vector<tutti_value> results_of(tutti::Graph g, const Case &one, const std::vector<tutti_value> &inputs) {
  std::vector<tutti_value> results(one.outputs());
  tutti_graph_begin(g, one.golden["op"].get<std::string>().c_str(), 1);
  for (const tutti_value input : inputs)
    tutti_graph_add_input(g, input);
  for (const auto &[key, value] : one.golden["attributes"].items())
    set_attribute(g, key.c_str(), value);
  results[0] = tutti_graph_end(g, results.data() + 1, static_cast<int64_t>(results.size()) - 1);
  return results;
}

/// The results as outputs where they have rows, and the sum of each, or of each times its upstream.
void model(tutti::Graph g, int32_t mode, const Case &one) {
  std::vector<tutti_value> inputs;
  for (size_t i = 0; i < one.golden["inputs"].size(); ++i)
    inputs.push_back(input_of(g, one, i));
  const std::vector<tutti_value> results = results_of(g, one, inputs);
  tutti_value sum = tutti_graph_variable(g, "start", TUTTI_DTYPE_F32, nullptr, 0, "zeros", 0, 1);
  size_t upstreams = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool has_rows = one.has_rows("outputs", i);
    if (has_rows) g.output(name_of("output", i).c_str(), results[i]);
    tutti_value weighed = tutti_cast(g, results[i], TUTTI_DTYPE_F32);
    if (one.is_float(i) && !one.golden["upstreams"].empty()) {
      const size_t upstream = upstreams++;
      const json &text = one.golden["upstreams"][upstream];
      weighed = tutti_mul(g, weighed,
                          has_rows ? g.feature(name_of("upstream", upstream).c_str())
                                   : tutti_graph_constant_tensor(g, tensor_of(text)));
    }
    sum = tutti_add(g, sum, tutti_reduce_sum(g, weighed, nullptr));
  }
  g.output("row", g.feature("row"));
  if (mode == TUTTI_MODE_PREDICT) return;
  g.loss(sum);
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), nullptr);
}

int64_t row_count(const Case &one) {
  for (size_t i = 0; one.is_split && i < one.golden["inputs"].size(); ++i) {
    if (one.has_rows("inputs", i)) return dims_of(one.golden["inputs"][i])[0];
  }
  return 2;
}

/// A component of zeros, for cases without one of their own.
void add_row(tutti::Pipeline &pipeline, const Case &one) {
  const int64_t rows = row_count(one);
  const std::vector<float> numbers(static_cast<size_t>(rows), 0);
  pipeline.slices("row", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_F32, {rows}, numbers.data(), 4 * rows));
}

tutti::Dataset rows_of(const tutti::Context &context, const Case &one) {
  tutti::Pipeline pipeline(context);
  for (size_t i = 0; i < one.golden["inputs"].size(); ++i) {
    if (one.has_rows("inputs", i))
      pipeline.slices(name_of("input", i).c_str(), TUTTI_ROLE_FEATURE, tensor_of(one.golden["inputs"][i]));
  }
  size_t upstream = 0;
  for (size_t i = 0; i < one.outputs() && !one.golden["upstreams"].empty(); ++i) {
    if (one.is_float(i) && one.has_rows("outputs", i))
      pipeline.slices(name_of("upstream", upstream).c_str(), TUTTI_ROLE_FEATURE,
                      tensor_of(one.golden["upstreams"][upstream]));
    if (one.is_float(i)) ++upstream;
  }
  add_row(pipeline, one);
  return pipeline.batch(row_count(one)).build();
}

bool is_close(double got, double expected, double size, const json &golden) {
  if (std::isnan(expected) || std::isinf(expected)) return std::isnan(expected) ? std::isnan(got) : got == expected;
  // Sums of a few numbers, each of which may be off.
  return std::fabs(got - expected) <= 4 * golden["absolute"].get<double>() + golden["relative"].get<double>() * size;
}

double element(const tutti::Tensor &tensor, size_t index) {
  switch (tensor.dtype()) {
    case TUTTI_DTYPE_BOOL:
      return tensor.data<uint8_t>()[index];
    case TUTTI_DTYPE_I32:
      return tensor.data<int32_t>()[index];
    case TUTTI_DTYPE_I64:
      return static_cast<double>(tensor.data<int64_t>()[index]);
    default:
      return tensor.data<float>()[index];
  }
}

/// Each number of `got` is the sum of every so many of `expected`, which has as many or more.
void compare(const tutti::Tensor &got, const json &expected, const Case &one, const std::string &what) {
  const json &values = expected["values"];
  const auto elements = static_cast<size_t>(got.element_count());
  assert_true(elements > 0 && values.size() % elements == 0);
  for (size_t k = 0; k < elements; ++k) {
    double sum = 0, size = 0;
    for (size_t at = k; at < values.size(); at += elements)
      sum += number_of(values[at]), size += std::fabs(number_of(values[at]));
    const double number = element(got, k);
    if (!is_close(number, sum, size, one.golden))
      fail_msg("%s: element %zu is %.9g, expected %.9g", what.c_str(), k, number, sum);
  }
}

void check_case(const tutti::Context &context, const tutti::Strategy &strategy, const Case &one,
                const std::string &name) {
  tutti::Options run("run");
  run.set("keep_gradients", true).set("keep_outputs", true);
  tutti::Estimator estimator([&](tutti::Graph g, int32_t mode) { model(g, mode, one); }, run, strategy, context);
  const tutti::Result result = estimator.train(rows_of(context, one));
  assert_int_equal(result.step(), 1);
  double loss = 0, size = 0;
  for (size_t i = 0, upstream = 0; i < one.outputs(); ++i) {
    const bool is_weighed = one.is_float(i) && !one.golden["upstreams"].empty();
    for (size_t k = 0; k < one.golden["outputs"][i]["values"].size(); ++k) {
      const double weight = is_weighed ? number_of(one.golden["upstreams"][upstream]["values"][k]) : 1;
      const double term = number_of(one.golden["outputs"][i]["values"][k]) * weight;
      loss += term, size += std::fabs(term);
    }
    if (is_weighed) ++upstream;
    const std::string output = name_of("output", i);
    if (one.has_rows("outputs", i))
      compare(estimator.read_output(output), one.golden["outputs"][i], one, name + " " + output);
  }
  if (!is_close(result.loss(), loss, size, one.golden))
    fail_msg("%s: loss %.9g, expected %.9g", name.c_str(), result.loss(), loss);
  for (size_t k = 0; one.golden.contains("wrt") && k < one.golden["wrt"].size(); ++k) {
    const auto input = one.golden["wrt"][k].get<size_t>();
    compare(estimator.read_gradient(name_of("shift", input)), one.golden["gradients"][k], one,
            name + " gradient of input " + std::to_string(input));
  }
}

/// The sum of its results is a number, of which there is a loss.
bool is_finite(const json &golden) {
  return std::all_of(golden["outputs"].begin(), golden["outputs"].end(), [](const json &output) {
    return std::all_of(output["values"].begin(), output["values"].end(),
                       [](const json &value) { return std::isfinite(number_of(value)); });
  });
}

void test_functions(void **) {
  const json cases = json::parse(std::ifstream(file_name));
  std::set<std::string> functions, on_several;
  int trained = 0;
  for (int replicas = 1; replicas <= kMostReplicas; ++replicas) {
    tutti::Options options("context");
    options.set("logical_devices", replicas);
    if (!plugin.empty()) options.set("plugin", plugin);
    const tutti::Context context(options);
    const tutti::Strategy strategy = tutti::Strategy::mirrored(context);
    for (size_t i = 0; i < cases.size(); ++i) {
      const Case one{cases[i], cases[i].contains("rows")};
      if ((!one.is_split && replicas > 1) || !is_finite(cases[i])) continue;
      const std::string op = cases[i]["op"];
      const std::string name =
          "line " + std::to_string(i + 2) + ", " + op + ", " + std::to_string(replicas) + " replicas";
      try {
        check_case(context, strategy, one, name);
      } catch (const tutti::Error &error) {
        fail_msg("%s: %s", name.c_str(), error.what());
      }
      functions.insert(op), ++trained;
      if (replicas > 1) on_several.insert(op);
    }
  }
  print_message("%d trainings of %zu functions, %zu of them on several replicas\n", trained, functions.size(),
                on_several.size());
  assert_true(functions.size() >= 54 && on_several.size() + 4 >= functions.size());
}

/// Of a value that is a sum over all rows.
void test_of_sums_over_rows(void **) {
  const std::vector<float> numbers = {0.5f, -0.25f, 0.75f, 0.125f, -0.5f, 0.25f, 0.375f};
  for (int replicas = 1; replicas <= kMostReplicas; ++replicas) {
    tutti::Options options("context"), run("run");
    options.set("logical_devices", replicas);
    if (!plugin.empty()) options.set("plugin", plugin);
    const tutti::Context context(options);
    run.set("keep_gradients", true);
    const auto build = [](tutti::Graph g, int32_t mode) {
      const tutti_value shift = tutti_graph_variable(g, "shift", TUTTI_DTYPE_F32, nullptr, 0, "zeros", 0, 1);
      const tutti_value x = tutti_add(g, g.feature("x"), shift), sum = tutti_reduce_sum(g, x, nullptr);
      tutti_value all = tutti_add(g, tutti_tan(g, sum), tutti_atan2(g, sum, tutti_cosh(g, sum)));
      all = tutti_add(g, all, tutti_mul(g, tutti_softsign(g, sum), tutti_norm(g, x, nullptr)));
      g.output("x", x);
      if (mode == TUTTI_MODE_PREDICT) return;
      g.loss(all);
      tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), nullptr);
    };
    tutti::Estimator estimator(build, run, tutti::Strategy::mirrored(context), context);
    tutti::Pipeline pipeline(context);
    const auto rows = static_cast<int64_t>(numbers.size());
    pipeline.slices("x", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_F32, {rows}, numbers.data(), 4 * rows));
    const double loss = estimator.train(pipeline.batch(rows).build()).loss();
    assert_true(std::fabs(loss - kLoss) < 1e-5 * kLoss);
    const double gradient = estimator.read_gradient("shift").data<float>()[0];
    assert_true(std::fabs(gradient - kGradient) < 1e-5 * kGradient);
  }
}

/// h' = norm(h) + softsign(w * left) * sort(right) of each element of a sequence, cut in two: as the body of a loop, or
/// written again for each element.
tutti_value step(tutti::Graph g, tutti_value h, tutti_value element, tutti_value w) {
  tutti_value parts[2];
  const tutti_split_attrs last = {.axis = -1, .sizes = nullptr, .sizes_count = 0};
  tutti_split(g, element, 2, &last, parts);
  const int64_t axis = 1;
  const tutti_norm_attrs rows = {.order = TUTTI_NORM_ORDER_L2, .axes = &axis, .axes_count = 1, .keep_dims = 1};
  const tutti_value soft = tutti_softsign(g, tutti_mul(g, parts[0], w));
  return tutti_add(g, tutti_norm(g, h, &rows), tutti_mul(g, soft, tutti_sort(g, parts[1], nullptr)));
}

/// The loss and the gradient of w.
std::pair<double, double> trained_in_steps(const tutti::Context &context, bool is_loop) {
  constexpr int64_t kRows = 5, kLength = 3, kWidth = 4;
  std::vector<float> numbers;
  for (int i = 0; i < kRows * kLength * kWidth; ++i)
    numbers.push_back(static_cast<float>(i * 7 % 11) * 0.25f - 1);
  const auto build = [&](tutti::Graph g, int32_t mode) {
    const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, nullptr, 0, "ones", 0, 1);
    const tutti_value x = g.feature("x");
    tutti_value elements[kLength];
    const tutti_unstack_attrs second = {.axis = 1};
    tutti_unstack(g, x, kLength, &second, elements);
    tutti_value h = tutti_clip(g, elements[0], -0.25, 0.5), unused[2];
    const tutti_split_attrs last = {.axis = -1, .sizes = nullptr, .sizes_count = 0};
    tutti_split(g, h, 2, &last, unused);
    h = unused[1];
    if (is_loop) {
      const auto body = [&](const tutti::Values &states, const tutti::Values &now) {
        return std::pair(tutti::Values{step(g, states[0], now[0], w)}, tutti::Values{});
      };
      h = tutti::scan(g, {h}, {x}, body, 1).first[0];
    } else {
      for (const tutti_value element : elements)
        h = step(g, h, element, w);
    }
    g.output("h", h);
    if (mode == TUTTI_MODE_PREDICT) return;
    g.loss(tutti_reduce_sum(g, tutti_square(g, h), nullptr));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), nullptr);
  };
  tutti::Options run("run");
  run.set("keep_gradients", true);
  tutti::Estimator estimator(build, run, tutti::Strategy::mirrored(context), context);
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE,
                  tutti::Tensor(TUTTI_DTYPE_F32, {kRows, kLength, kWidth}, numbers.data(),
                                static_cast<int64_t>(4 * numbers.size())));
  const double loss = estimator.train(pipeline.batch(kRows).build()).loss();
  return {loss, estimator.read_gradient("w").data<float>()[0]};
}

void test_in_loops(void **) {
  for (int replicas = 1; replicas <= kMostReplicas; ++replicas) {
    tutti::Options options("context");
    options.set("logical_devices", replicas);
    if (!plugin.empty()) options.set("plugin", plugin);
    const tutti::Context context(options);
    const auto looped = trained_in_steps(context, true), written = trained_in_steps(context, false);
    assert_true(written.first > 1 && std::fabs(written.second) > 0.1);
    assert_true(std::fabs(looped.first - written.first) < 1e-5 * written.first);
    assert_true(std::fabs(looped.second - written.second) < 1e-5 * std::fabs(written.second));
  }
}

/// Its results with rows as components of the one batch of a dataset.
tutti::Dataset mapped(const Case &one) {
  tutti::Pipeline pipeline;
  for (size_t i = 0; i < one.golden["inputs"].size(); ++i) {
    if (one.has_rows("inputs", i))
      pipeline.slices(name_of("input", i).c_str(), TUTTI_ROLE_FEATURE, tensor_of(one.golden["inputs"][i]));
  }
  add_row(pipeline, one);
  pipeline.batch(row_count(one)).map([&](tutti::Graph g) {
    std::vector<tutti_value> inputs;
    for (size_t i = 0; i < one.golden["inputs"].size(); ++i) {
      inputs.push_back(one.has_rows("inputs", i) ? g.feature(name_of("input", i).c_str())
                                                 : tutti_graph_constant_tensor(g, tensor_of(one.golden["inputs"][i])));
    }
    const std::vector<tutti_value> results = results_of(g, one, inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      const tutti_value sum = tutti_reduce_sum(g, tutti_cast(g, results[i], TUTTI_DTYPE_F32), nullptr);
      g.output(name_of("output", i).c_str(),
               one.has_rows("outputs", i) ? results[i] : tutti_add(g, g.feature("row"), sum));
    }
  });
  return pipeline.build();
}

/// A result without rows comes as the sum of its elements, in each row.
void compare_mapped(const tutti::Tensor &got, size_t output, const Case &one, const std::string &name) {
  const json &expected = one.golden["outputs"][output];
  if (one.has_rows("outputs", output)) return compare(got, expected, one, name);
  double sum = 0, size = 0;
  for (const json &value : expected["values"])
    sum += number_of(value), size += std::fabs(number_of(value));
  if (!is_close(element(got, 0), sum, size, one.golden))
    fail_msg("%s: the sum is %.9g, expected %.9g", name.c_str(), element(got, 0), sum);
}

void test_in_maps(void **) {
  const json cases = json::parse(std::ifstream(file_name));
  std::set<std::string> functions;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case one{cases[i], cases[i].contains("rows")};
    const std::string op = cases[i]["op"], name = "line " + std::to_string(i + 2) + ", " + op + " in a map";
    if (!is_finite(cases[i]) && !one.is_split) continue;
    try {
      const tutti::Dataset dataset = mapped(one);
      tutti::Iterator iterator(dataset);
      assert_true(iterator.next());
      const auto before = dataset.component_count() - static_cast<int64_t>(one.outputs());
      for (size_t k = 0; k < one.outputs(); ++k) {
        compare_mapped(iterator.component(before + static_cast<int64_t>(k)), k, one, name);
      }
    } catch (const tutti::Error &error) {
      fail_msg("%s: %s", name.c_str(), error.what());
    }
    functions.insert(op);
  }
  print_message("%zu functions in maps\n", functions.size());
  assert_true(functions.size() >= 54);
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 2) return 2;
  file_name = arguments[1];
  if (count > 2) plugin = arguments[2];
  if (!plugin.empty() && is_missing(plugin.c_str())) return TEST_IS_SKIPPED;
  const CMUnitTest tests[] = {cmocka_unit_test(test_functions), cmocka_unit_test(test_of_sums_over_rows),
                              cmocka_unit_test(test_in_loops), cmocka_unit_test(test_in_maps)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
