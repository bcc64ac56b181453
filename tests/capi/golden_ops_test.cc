// SPDX-License-Identifier: Apache-2.0
//
// Ops by name through the C interface, against the numbers of tests/conformance/golden, which NumPy computed: every op
// of the registry that a model may use and that has such numbers, in one model on each backend that is linked in.
//
// usage: golden_ops_test FOLDER
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>
// Behind the four that it needs.
extern "C" {
#include <cmocka.h>
}

using nlohmann::json;

namespace {

struct Numbers {
  int32_t dtype;
  std::vector<int64_t> dims;
  std::vector<double> values;
};

const struct {
  const char *name;
  int32_t dtype;
  size_t bytes;
} kTypes[] = {{"f32", TUTTI_DTYPE_F32, 4}, {"f64", TUTTI_DTYPE_F64, 8}, {"i32", TUTTI_DTYPE_I32, 4},
              {"i64", TUTTI_DTYPE_I64, 8}, {"u8", TUTTI_DTYPE_U8, 1},   {"boolean", TUTTI_DTYPE_BOOL, 1}};

Numbers numbers_of(const json &text) {
  Numbers numbers{0, text["dims"].get<std::vector<int64_t>>(), {}};
  for (const auto &type : kTypes)
    if (text["dtype"] == type.name) numbers.dtype = type.dtype;
  for (const json &value : text["values"]) {
    if (value.is_string())
      numbers.values.push_back(std::stod(value.get<std::string>()));
    else
      numbers.values.push_back(value.is_boolean() ? value.get<bool>() : value.get<double>());
  }
  return numbers;
}

/// Null for types that are not among the above.
tutti_tensor *tensor_of(const Numbers &numbers) {
  std::string bytes;
  for (const double value : numbers.values) {
    const auto f32 = static_cast<float>(value);
    const auto i32 = static_cast<int32_t>(value);
    const auto i64 = static_cast<int64_t>(value);
    const auto u8 = static_cast<uint8_t>(value);
    const void *const from = numbers.dtype == TUTTI_DTYPE_F32   ? static_cast<const void *>(&f32)
                             : numbers.dtype == TUTTI_DTYPE_F64 ? static_cast<const void *>(&value)
                             : numbers.dtype == TUTTI_DTYPE_I32 ? static_cast<const void *>(&i32)
                             : numbers.dtype == TUTTI_DTYPE_I64 ? static_cast<const void *>(&i64)
                                                                : static_cast<const void *>(&u8);
    for (const auto &type : kTypes)
      if (type.dtype == numbers.dtype) bytes.append(static_cast<const char *>(from), type.bytes);
  }
  tutti_tensor *tensor = nullptr;
  (void)tutti_tensor_from_data(numbers.dtype, numbers.dims.data(), static_cast<int64_t>(numbers.dims.size()),
                               bytes.data(), static_cast<int64_t>(bytes.size()), &tensor, nullptr);
  return tensor;
}

/// Values that no tensor of the six types has, or an op that is no part of models.
bool is_usable(const json &golden) {
  if (!golden.contains("inputs") || !golden.contains("outputs")) return false;
  const auto is_known = [](const json &text) {
    return std::any_of(std::begin(kTypes), std::end(kTypes),
                       [&](const auto &type) { return text["dtype"] == type.name; });
  };
  const std::string op = golden["op"];
  for (const char *internal : {"_gradient", "_moments", "_apply", "_update"})
    if (op.find(internal) != std::string::npos) return false;
  for (const auto &[name, value] : golden["attributes"].items())
    if (value.contains("tensor")) return false;
  return tutti_has_feature(("op:" + op).c_str()) != 0 &&
         std::all_of(golden["inputs"].begin(), golden["inputs"].end(), is_known) &&
         std::all_of(golden["outputs"].begin(), golden["outputs"].end(), is_known);
}

std::vector<json> cases_of(const std::string &folder) {
  std::vector<json> cases;
  for (const char *name : {"attention", "binary", "convolution", "elementwise", "group_normalization", "losses",
                           "matmul", "normalization", "pooling", "reductions", "shapes", "top_k"}) {
    std::ifstream file(folder + "/" + name + ".json");
    for (json &one : json::parse(file))
      if (is_usable(one)) cases.push_back(std::move(one));
  }
  return cases;
}

void set_attribute(tutti_graph *g, const std::string &key, const json &value) {
  const char *const name = key.c_str();
  if (value.contains("bool")) tutti_graph_set_bool(g, name, value["bool"].get<bool>());
  if (value.contains("i64")) tutti_graph_set_i64(g, name, value["i64"].get<int64_t>());
  if (value.contains("f64")) tutti_graph_set_f64(g, name, value["f64"].get<double>());
  if (value.contains("string")) tutti_graph_set_string(g, name, value["string"].get<std::string>().c_str());
  if (value.contains("doubles")) {
    const auto list = value["doubles"].get<std::vector<double>>();
    tutti_graph_set_f64s(g, name, list.data(), static_cast<int64_t>(list.size()));
  }
  for (const auto &type : kTypes)
    if (value.contains("dtype") && value["dtype"] == type.name) tutti_graph_set_i64(g, name, type.dtype);
  std::vector<int64_t> list;
  if (value.contains("ints")) list = value["ints"].get<std::vector<int64_t>>();
  for (const json &dim : value.value("dims", json::array()))
    list.push_back(std::stoll(dim.get<std::string>()));
  if (value.contains("ints") || value.contains("dims"))
    tutti_graph_set_i64s(g, name, list.data(), static_cast<int64_t>(list.size()));
}

/// All outputs of the op on constants.
std::vector<tutti_value> write_op(tutti_graph *g, const json &golden) {
  std::vector<tutti_value> inputs;
  for (const json &input : golden["inputs"]) {
    tutti_tensor *const tensor = tensor_of(numbers_of(input));
    inputs.push_back(tutti_graph_constant_tensor(g, tensor));
    tutti_tensor_unref(tensor);
  }
  tutti_graph_begin(g, golden["op"].get<std::string>().c_str(), 1);
  for (const tutti_value input : inputs)
    tutti_graph_add_input(g, input);
  for (const auto &[key, value] : golden["attributes"].items())
    set_attribute(g, key, value);
  std::vector<tutti_value> outputs(golden["outputs"].size());
  outputs[0] = tutti_graph_end(g, outputs.data() + 1, static_cast<int64_t>(outputs.size()) - 1);
  return outputs;
}

std::string output_name(size_t number, size_t output) {
  return "case" + std::to_string(number) + "_" + std::to_string(output);
}

int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const auto &cases = *static_cast<const std::vector<json> *>(user);
  const int64_t one_wide[] = {TUTTI_DIM_BATCH, 1};
  const tutti_value zero =
      tutti_reshape(g, tutti_cast(g, tutti_graph_get_feature(g, "zero"), TUTTI_DTYPE_F64), one_wide, 2);
  for (size_t i = 0; mode == TUTTI_MODE_PREDICT && i < cases.size(); ++i) {
    const std::vector<tutti_value> outputs = write_op(g, cases[i]);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const int64_t flat[] = {1, static_cast<int64_t>(cases[i]["outputs"][k]["values"].size())};
      const tutti_value values = tutti_reshape(g, tutti_cast(g, outputs[k], TUTTI_DTYPE_F64), flat, 2);
      tutti_graph_set_output(g, output_name(i, k).c_str(), tutti_add(g, values, zero));
    }
  }
  if (mode != TUTTI_MODE_PREDICT) {
    const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F64, nullptr, 0, "ones", 0, 1);
    tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_mul(g, zero, w), nullptr));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), nullptr);
  }
  return tutti_graph_check(g, err);
}

void must(int32_t code, tutti_error *const *error) {
  if (code != TUTTI_OK) fail_msg("%s", *error != nullptr ? tutti_error_get_text(*error) : "no text");
}

tutti_context *open_context(const char *backend) {
  tutti_options *options = nullptr;
  tutti_context *context = nullptr;
  tutti_error *error = nullptr;
  must(tutti_options_create("context", &options, &error), &error);
  tutti_options_set_string(options, "backend", backend);
  must(tutti_context_create(options, &context, &error), &error);
  tutti_options_unref(options);
  return context;
}

tutti_dataset *one_row(tutti_context *context) {
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_error *error = nullptr;
  tutti_tensor *const zero = tensor_of({TUTTI_DTYPE_F32, {1}, {0}});
  must(tutti_pipeline_create(context, &pipeline, &error), &error);
  tutti_pipeline_add_slices(pipeline, "zero", TUTTI_ROLE_FEATURE, zero);
  tutti_pipeline_batch(pipeline, 1, nullptr);
  must(tutti_pipeline_build(pipeline, &dataset, &error), &error);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(zero);
  return dataset;
}

bool is_close(double got, double expected, const json &golden) {
  if (std::isnan(expected)) return std::isnan(got);
  if (got == expected) return true;
  // Constants are f32; what NumPy rounded once more is compared with room for both.
  const double relative = golden["relative"].get<double>() * 4 + 1e-6, absolute = golden["absolute"].get<double>() * 4;
  return std::fabs(got - expected) <= absolute + relative * std::fabs(expected);
}

/// How many cases are wrong.
int count_wrong(const tutti_batch *batch, const std::vector<json> &cases, const char *backend) {
  int wrong = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    for (size_t k = 0; k < cases[i]["outputs"].size(); ++k) {
      const Numbers expected = numbers_of(cases[i]["outputs"][k]);
      const tutti_tensor *const got = tutti_batch_get_output(batch, output_name(i, k).c_str());
      assert_int_equal(tutti_tensor_get_element_count(got), expected.values.size());
      const auto *const values = static_cast<const double *>(tutti_tensor_get_data(got));
      for (size_t at = 0; at < expected.values.size(); ++at) {
        if (is_close(values[at], expected.values[at], cases[i])) continue;
        print_error("%s, case %zu (%s), output %zu: element %zu is %.9g, expected %.9g\n", backend, i,
                    cases[i]["op"].get<std::string>().c_str(), k, at, values[at], expected.values[at]);
        ++wrong;
        break;
      }
    }
  }
  return wrong;
}

void check_on(const char *backend, std::vector<json> cases) {
  tutti_error *error = nullptr;
  tutti_context *const context = open_context(backend);
  tutti_dataset *const dataset = one_row(context);
  tutti_estimator *estimator = nullptr;
  tutti_predictor *predictor = nullptr;
  tutti_batch *batch = nullptr;
  must(tutti_estimator_create(context, model, &cases, nullptr, nullptr, nullptr, &estimator, &error), &error);
  must(tutti_estimator_initialize(estimator, dataset, nullptr, nullptr, &error), &error);
  must(tutti_predictor_from_estimator(estimator, nullptr, &predictor, &error), &error);
  must(tutti_predictor_run_all(predictor, dataset, nullptr, &batch, &error), &error);
  const int wrong = count_wrong(batch, cases, backend);
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset), tutti_context_unref(context);
  assert_int_equal(wrong, 0);
}

std::string folder;

void test_ops_by_name(void **) {
  const std::vector<json> cases = cases_of(folder);
  std::set<std::string> ops;
  for (const json &one : cases)
    ops.insert(one["op"].get<std::string>());
  print_message("%zu cases of %zu ops\n", cases.size(), ops.size());
  assert_true(cases.size() > 400 && ops.size() > 60);
  check_on("reference", cases);
  if (tutti_has_feature("backend:cpu")) check_on("cpu", cases);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  const CMUnitTest tests[] = {cmocka_unit_test(test_ops_by_name)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
