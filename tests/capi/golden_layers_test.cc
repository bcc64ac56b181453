// SPDX-License-Identifier: Apache-2.0
//
// Layers of convolution, pooling, shapes and embeddings by name through the C interface, trained for one step on 1, 2
// and 3 replicas: results row by row, and the gradients, are those that Keras and PyTorch have for the whole batch
// (tests/conformance/golden/layers.json, written by make_layer_golden.py). The loss is the sum of result * upstream,
// and what the layer adds to it. An input of floating point is a feature plus a variable: one for all rows, which gets
// the sum of the input's gradient over them. Then what ids and tables must be, and what padding does to a table.
//
// usage: golden_layers_test FILE [PLUG-IN]
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.hpp>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "golden_entries.h"
#include "missing_backend.h"
// Behind the others: it has macros of common names.
extern "C" {
#include <cmocka.h>
}

using nlohmann::json;

namespace {

constexpr int kMostReplicas = 3;

std::string file_name, plugin;

tutti::Tensor tensor_of(const json &text) {
  const std::vector<int64_t> dims = golden::dims_of(text);
  if (text["dtype"] == "i32") {
    const auto values = text["values"].get<std::vector<int32_t>>();
    return {TUTTI_DTYPE_I32, dims, values.data(), static_cast<int64_t>(4 * values.size())};
  }
  const auto values = text["values"].get<std::vector<float>>();
  return {TUTTI_DTYPE_F32, dims, values.data(), static_cast<int64_t>(4 * values.size())};
}

std::string numbered(const char *what, int64_t index) { return what + std::to_string(index); }

bool is_float(const json &text) { return text["dtype"] == "f32"; }

/// One of the layer's inputs: a feature, and where it is differentiated a variable of zeros for all rows.
tutti_value input_of(tutti::Graph g, const json &one, int64_t port) {
  if (port < 0) return tutti_no_value();
  const json &text = one["inputs"][static_cast<size_t>(port)];
  const tutti_value given = g.feature(numbered("input", port).c_str());
  if (!is_float(text)) return given;
  const std::vector<int64_t> dims = golden::dims_of(text);
  const tutti_value shift = tutti_graph_variable(g, numbered("shift", port).c_str(), TUTTI_DTYPE_F32, dims.data() + 1,
                                                 static_cast<int64_t>(dims.size()) - 1, "zeros", 0, 1);
  return tutti_add(g, given, shift);
}

void model(tutti::Graph g, int32_t mode, const json &one) {
  std::vector<tutti_value> inputs;
  for (const json &port : one["ports"])
    inputs.push_back(input_of(g, one, port.get<int64_t>()));
  const tutti_value result = golden::add_entry(g, one, inputs);
  g.output("result", result);
  if (mode == TUTTI_MODE_PREDICT) return;
  const tutti_value start = tutti_graph_variable(g, "start", TUTTI_DTYPE_F32, nullptr, 0, "zeros", 0, 1);
  const tutti_value weighed = tutti_mul(g, result, g.feature("upstream"));
  g.loss(tutti_add(g, start, tutti_reduce_sum(g, weighed, nullptr)));
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), nullptr);
}

tutti::Dataset rows_of(const tutti::Context &context, const json &one) {
  tutti::Pipeline pipeline(context);
  int64_t rows = 0;
  for (const json &port : one["ports"]) {
    const auto place = port.get<int64_t>();
    if (place < 0) continue;
    const json &text = one["inputs"][static_cast<size_t>(place)];
    rows = golden::dims_of(text)[0];
    pipeline.slices(numbered("input", place).c_str(), TUTTI_ROLE_FEATURE, tensor_of(text));
  }
  pipeline.slices("upstream", TUTTI_ROLE_FEATURE, tensor_of(one["upstreams"][0]));
  return pipeline.batch(rows).build();
}

/// Each number of `got` is the sum of every so many of `expected`, which has as many or more, and of `added`.
void compare(const tutti::Tensor &got, const json &expected, const json &added, const json &one,
             const std::string &what) {
  const auto values = expected["values"].get<std::vector<double>>();
  const auto elements = static_cast<size_t>(got.element_count());
  if (elements == 0 || values.size() % elements != 0)
    fail_msg("%s has %zu elements, expected %zu", what.c_str(), elements, values.size());
  for (size_t k = 0; k < elements; ++k) {
    double sum = added.is_null() ? 0 : added["values"][k].get<double>(), size = std::fabs(sum);
    for (size_t at = k; at < values.size(); at += elements)
      sum += values[at], size += std::fabs(values[at]);
    const double number = got.data<float>()[k];
    // Sums of a few numbers, each of which may be off.
    if (!(std::fabs(number - sum) <= 4 * one["absolute"].get<double>() + one["relative"].get<double>() * size))
      fail_msg("%s: element %zu is %.9g, expected %.9g", what.c_str(), k, number, sum);
  }
}

void compare_loss(double loss, const json &one, const std::string &name) {
  double sum = one.value("penalty", 0.0), size = sum;
  for (size_t k = 0; k < one["outputs"][0]["values"].size(); ++k) {
    const double term = one["outputs"][0]["values"][k].get<double>() * one["upstreams"][0]["values"][k].get<double>();
    sum += term, size += std::fabs(term);
  }
  if (!(std::fabs(loss - sum) <= 1e-5 * (1 + size))) fail_msg("%s: loss %.9g, expected %.9g", name.c_str(), loss, sum);
}

void compare_gradients(tutti::Estimator &estimator, const json &one, const std::string &name) {
  for (size_t k = 0; k < one["wrt"].size(); ++k) {
    const auto place = one["wrt"][k].get<int64_t>();
    std::string variable = numbered("shift", place);
    json added;
    for (const auto &[own, at] : one["variables"].items()) {
      if (at.get<int64_t>() != place) continue;
      variable = own;
      const auto first = one["inputs"].size() - one["variables"].size();
      if (one.contains("penalty_gradients")) added = one["penalty_gradients"][static_cast<size_t>(place) - first];
    }
    compare(estimator.read_gradient(variable), one["gradients"][k], added, one, name + " gradient of " + variable);
  }
}

tutti::Context context_of(int replicas) {
  tutti::Options options("context");
  options.set("logical_devices", replicas);
  if (!plugin.empty()) options.set("plugin", plugin);
  return tutti::Context(options);
}

void check_case(const tutti::Context &context, const tutti::Strategy &strategy, const json &one,
                const std::string &name) {
  tutti::Options run("run");
  run.set("keep_gradients", true).set("keep_outputs", true);
  tutti::Estimator estimator([&](tutti::Graph g, int32_t mode) { model(g, mode, one); }, run, strategy, context);
  const tutti::Dataset rows = rows_of(context, one);
  estimator.initialize(rows);
  for (const auto &[variable, place] : one["variables"].items())
    estimator.write_variable(variable, tensor_of(one["inputs"][place.get<size_t>()]));
  const tutti::Result result = estimator.train(rows);
  compare(estimator.read_output("result"), one["outputs"][0], json(), one, name);
  compare_loss(result.loss(), one, name);
  compare_gradients(estimator, one, name);
}

void test_layers(void **) {
  const json cases = json::parse(std::ifstream(file_name));
  std::set<std::string> layers;
  for (int replicas = 1; replicas <= kMostReplicas; ++replicas) {
    const tutti::Context context = context_of(replicas);
    const tutti::Strategy strategy = tutti::Strategy::mirrored(context);
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string op = cases[i]["op"];
      const std::string name =
          "line " + std::to_string(i + 2) + ", " + op + ", " + std::to_string(replicas) + " replicas";
      try {
        check_case(context, strategy, cases[i], name);
      } catch (const tutti::Error &error) {
        fail_msg("%s: %s", name.c_str(), error.what());
      }
      layers.insert(op);
    }
  }
  print_message("%zu cases of %zu layers\n", cases.size(), layers.size());
  assert_true(layers.size() >= 33);
}

/// Ids [rows, 2] and lengths [rows] of bags.
struct Bags {
  std::vector<int32_t> ids, lengths;
};

/// Trained for a step on three replicas by rows of embedding, embedding_bag, or both.
std::string error_of(const Bags &bags, const tutti::Estimator::ModelFunction &build) {
  const tutti::Context context = context_of(kMostReplicas);
  const auto rows = static_cast<int64_t>(bags.lengths.size());
  tutti::Pipeline pipeline(context);
  pipeline.slices("ids", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_I32, {rows, 2}, bags.ids.data(), 8 * rows));
  pipeline.slices("lengths", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_I32, {rows}, bags.lengths.data(), 4 * rows));
  tutti::Estimator estimator(build, tutti::Options("run"), tutti::Strategy::mirrored(context), context);
  try {
    estimator.train(pipeline.batch(rows).build());
  } catch (const tutti::Error &error) {
    return error.what();
  }
  return "no error";
}

void finish(tutti::Graph g, int32_t mode, tutti_value y) {
  g.output("y", y);
  if (mode == TUTTI_MODE_PREDICT) return;
  g.loss(tutti_reduce_mean(g, y, nullptr));
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1), nullptr);
}

void embedding(tutti::Graph g, int32_t mode) {
  finish(g, mode, tutti_layer_embedding(g, g.feature("ids"), 4, 3, nullptr));
}

void embedding_bag(tutti::Graph g, int32_t mode) {
  tutti_layer_embedding_bag_attrs attrs = {};
  attrs.lengths = g.feature("lengths");
  finish(g, mode, tutti_layer_embedding_bag(g, g.feature("ids"), 4, 3, &attrs));
}

void assert_says(const std::string &text, std::initializer_list<const char *> needles) {
  for (const char *const needle : needles) {
    if (text.find(needle) == std::string::npos) fail_msg("expected \"%s\" in: %s", needle, text.c_str());
  }
}

void test_ids_out_of_range(void **) {
  const Bags good = {{0, 1, 2, 3, 0, 1, 2, 3}, {2, 2, 0, 1}};
  assert_string_equal(error_of(good, embedding).c_str(), "no error");
  assert_string_equal(error_of(good, embedding_bag).c_str(), "no error");
  for (const int32_t id : {4, -1, 1 << 30}) {
    Bags bad = good;
    bad.ids[5] = id;
    assert_says(error_of(bad, embedding), {"embedding/gather", std::to_string(id).c_str(), "row 2", "[0, 4)"});
    assert_string_equal(error_of(bad, embedding_bag).c_str(), "no error");  // behind the end of its bag
    bad.ids[5] = 0, bad.ids[2] = id;
    assert_says(error_of(bad, embedding_bag), {"embedding_bag/gather", std::to_string(id).c_str(), "row 1", "[0, 4)"});
  }
  for (const int32_t length : {3, -1}) {
    Bags bad = good;
    bad.lengths[3] = length;
    assert_says(error_of(bad, embedding_bag), {"embedding_bag/lengths", std::to_string(length).c_str(), "row 3"});
  }
}

void test_mistakes(void **) {
  const Bags good = {{0, 1, 2, 3, 0, 1, 2, 3}, {2, 2, 0, 1}};
  const auto error = [&](const tutti::Estimator::ModelFunction &build) { return error_of(good, build); };
  assert_says(error([](tutti::Graph g, int32_t mode) {
                finish(g, mode,
                       tutti_layer_embedding(g, tutti_cast(g, g.feature("ids"), TUTTI_DTYPE_F32), 4, 3, nullptr));
              }),
              {"embedding: layer_embedding", "'ids' is f32, expected integers"});
  assert_says(error([](tutti::Graph g, int32_t mode) {
                tutti_layer_embedding_attrs attrs = {};
                attrs.has_padding_id = 1, attrs.padding_id = 4;
                finish(g, mode, tutti_layer_embedding(g, g.feature("ids"), 4, 3, &attrs));
              }),
              {"padding_id is 4, expected an id below the count 4"});
  assert_says(error([](tutti::Graph g, int32_t mode) {
                finish(g, mode, tutti_layer_embedding_bag(g, g.feature("lengths"), 4, 3, nullptr));
              }),
              {"expected ids [batch, ..., length], got i32 [batch]"});
  assert_says(error([](tutti::Graph g, int32_t mode) {
                tutti_layer_embedding_bag_attrs attrs = {};
                attrs.combiner = TUTTI_LAYER_EMBEDDING_BAG_COMBINER_MAX;
                attrs.weights = tutti_cast(g, g.feature("ids"), TUTTI_DTYPE_F32);
                finish(g, mode, tutti_layer_embedding_bag(g, g.feature("ids"), 4, 3, &attrs));
              }),
              {"a maximum has no weights"});
  assert_says(error([](tutti::Graph g, int32_t mode) {
                const int64_t crops[] = {1, 1};
                const tutti_value rows = tutti_layer_embedding(g, g.feature("ids"), 4, 3, nullptr);
                finish(g, mode, tutti_layer_cropping1d(g, rows, crops));
              }),
              {"layer_cropping1d: nothing is left of axis 1 of [batch, 2, 3]"});
}

/// The row of a padding id begins with zeros, whatever the initializer makes of the others.
void test_initial_rows_of_padding(void **) {
  const tutti::Context context = context_of(2);
  const std::vector<int32_t> ids = {0, 1};
  for (const char *const initializer : {"zeros", "ones", "random_normal(1)", "glorot_uniform", "orthogonal"}) {
    const auto build = [&](tutti::Graph g, int32_t mode) {
      tutti_layer_embedding_bag_attrs attrs = {};
      attrs.has_padding_id = 1, attrs.padding_id = 2, attrs.table_initializer = initializer;
      finish(g, mode, tutti_layer_embedding_bag(g, g.feature("ids"), 4, 3, &attrs));
    };
    tutti::Pipeline pipeline(context);
    pipeline.slices("ids", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_I32, {2, 1}, ids.data(), 8));
    tutti::Estimator estimator(build, tutti::Options("run"), tutti::Strategy::mirrored(context), context);
    estimator.initialize(pipeline.batch(2).build());
    const tutti::Tensor table = estimator.read_variable("embedding_bag/table");
    for (int64_t i = 0; i < 12; ++i) {
      const bool is_zero = i / 3 == 2 || std::string(initializer) == "zeros";
      if ((table.data<float>()[i] == 0) != is_zero)
        fail_msg("%s: element %d is %g", initializer, static_cast<int>(i), table.data<float>()[i]);
    }
  }
}

/// The row of a padding id stays as it is, whatever the optimizer makes of the others.
void test_rows_of_padding(void **) {
  for (int replicas = 1; replicas <= kMostReplicas; ++replicas) {
    const tutti::Context context = context_of(replicas);
    const auto build = [](tutti::Graph g, int32_t mode) {
      tutti_layer_embedding_attrs attrs = {};
      attrs.has_padding_id = 1, attrs.padding_id = 0, attrs.table_initializer = "ones";
      const tutti_value rows = tutti_layer_embedding(g, g.feature("ids"), 3, 2, &attrs);
      g.output("rows", rows);
      if (mode == TUTTI_MODE_PREDICT) return;
      g.loss(tutti_reduce_sum(g, rows, nullptr));
      tutti_optimizer_adam(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.25), nullptr);
    };
    const std::vector<int32_t> ids = {0, 1, 0, 0, 1};
    tutti::Pipeline pipeline(context);
    pipeline.slices("ids", TUTTI_ROLE_FEATURE, tutti::Tensor(TUTTI_DTYPE_I32, {5}, ids.data(), 20));
    tutti::Estimator estimator(build, tutti::Options("run"), tutti::Strategy::mirrored(context), context);
    estimator.train(pipeline.batch(5).build());
    const tutti::Tensor table = estimator.read_variable("embedding/table");
    for (int column = 0; column < 2; ++column) {
      assert_true(table.data<float>()[column] == 0);                            // the padding
      assert_true(std::fabs(table.data<float>()[2 + column] - 0.75f) < 1e-5f);  // looked up
      assert_true(table.data<float>()[4 + column] == 1);                        // not
    }
  }
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 2) return 2;
  file_name = arguments[1];
  if (count > 2) plugin = arguments[2];
  if (!plugin.empty() && is_missing(plugin.c_str())) return TEST_IS_SKIPPED;
  const CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_ids_out_of_range),
                              cmocka_unit_test(test_mistakes), cmocka_unit_test(test_initial_rows_of_padding),
                              cmocka_unit_test(test_rows_of_padding)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
