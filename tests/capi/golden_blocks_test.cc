// SPDX-License-Identifier: Apache-2.0
//
// Blocks, positions, normalized kernels and constraints through the C interface, on 1 to 3 replicas and in
// micro-batches: the first step's loss, output and gradients, and what the variables and the loss of an evaluation are
// after the last step, are those of PyTorch and of Keras' constraints (tests/conformance/golden/blocks.json, written by
// make_block_golden.py beside it).
//
// usage: golden_blocks_test FILE [BACKEND]
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tutti/tutti.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "golden_entries.h"
#include "missing_backend.h"
// Behind the four that it needs.
extern "C" {
#include <cmocka.h>
}

using nlohmann::json;

namespace {

std::string file_name, backend;

/// How a case is run.
struct Run {
  int replicas = 1;
  int64_t micro_batches = 1;
  bool is_central = false;  ///< one device updates all weights
};
constexpr Run kRuns[] = {{1, 1}, {2, 2}, {3, 1}, {1, 3}, {2, 1, true}};

tutti::Tensor adopted(tutti_tensor *tensor) { return tutti::Tensor(tensor); }

/// x times the variable front, one number for each channel.
tutti_value front_of(tutti::Graph g, const json &golden) {
  const std::vector<int64_t> dims = golden::dims_of(golden["variables"]["front"]);
  const tutti_value front = tutti_graph_variable(g, "front", TUTTI_DTYPE_F32, dims.data(), 1, "ones", 0, 1);
  return tutti_mul(g, g.feature("x"), front);
}

/// The layer's output y, and the mean over rows of the sum of (y - target)^2.
void model(tutti::Graph g, int32_t mode, const json &golden) {
  std::vector<tutti_value> inputs;
  for (const auto &input : golden["inputs"].get<std::vector<std::string>>())
    inputs.push_back(input == "x" ? front_of(g, golden) : input.empty() ? tutti_no_value() : g.feature(input.c_str()));
  tutti_graph_begin(g, golden["op"].get<std::string>().c_str(), 1);
  for (const tutti_value input : inputs)
    tutti_graph_add_input(g, input);
  for (const auto &[key, value] : golden["attributes"].items())
    golden::set_attribute(g, key, value);
  std::vector<tutti_value> more(golden["outputs"].get<size_t>());
  const tutti_value y = tutti_graph_end(g, more.data(), static_cast<int64_t>(more.size()) - 1);
  g.output("y", y);
  if (mode == TUTTI_MODE_PREDICT) return;
  const tutti_value squares = tutti_square(g, tutti_sub(g, y, g.feature("target")));
  const auto rank = static_cast<int64_t>(golden::dims_of(golden["target"]).size());
  const int64_t axes[] = {1, 2, 3, 4};
  const tutti_reduce_sum_attrs attrs = {axes, rank - 1, 0};
  g.loss(tutti_reduce_mean(g, tutti_reduce_sum(g, squares, &attrs), nullptr));
  for (const json &entry : golden["entries"])
    golden::add_entry(g, entry, {});
  golden::add_entry(g, golden["optimizer"], {tutti_schedule_constant(g, golden["rate"].get<double>())});
}

tutti::Dataset rows_of(const tutti::Context &context, const json &golden, int64_t batch) {
  tutti::Pipeline pipeline(context);
  const auto add = [&](const std::string &name, const json &text) {
    tutti_pipeline_add_slices(pipeline, name.c_str(), TUTTI_ROLE_FEATURE, adopted(golden::tensor_of(text)));
  };
  for (const auto &[name, feature] : golden["features"].items())
    add(name, feature);
  add("target", golden["target"]);
  tutti_pipeline_batch(pipeline, batch, nullptr);
  return pipeline.build();
}

[[noreturn]] void complain(const std::string &what, double number, double expected) {
  std::ostringstream text;
  text.precision(9);
  text << what << " is " << number << ", expected " << expected;
  throw std::runtime_error(text.str());
}

double largest_of(const json &tensor) {
  double largest = 0;
  for (const double value : tensor["values"].get<std::vector<double>>())
    largest = std::max(largest, std::fabs(value));
  return largest;
}

/// Within 1e-5 of the largest element, or of `size`, whichever is more.
void compare(const tutti::Tensor &got, const json &expected, const std::string &what, double size = 0) {
  const auto values = expected["values"].get<std::vector<double>>();
  const auto count = static_cast<double>(got.element_count());
  if (got.element_count() != static_cast<int64_t>(values.size()))
    complain("the number of elements of " + what, count, static_cast<double>(values.size()));
  size = std::max(size, largest_of(expected));
  for (size_t i = 0; i < values.size(); ++i) {
    const double number = got.data<float>()[i];
    if (!(std::fabs(number - values[i]) <= 1e-5 * size + 5e-7))
      complain("element " + std::to_string(i) + " of " + what, number, values[i]);
  }
}

void check_number(double got, const json &expected, const std::string &what) {
  const auto number = expected.get<double>();
  if (!(std::fabs(got - number) <= 1e-5 * number)) complain(what, got, number);
}

class CaseRun {
 public:
  CaseRun(const json &golden, const Run &run)
      : golden_(golden),
        context_(context_options(run.replicas)),
        strategy_(run.is_central ? tutti::Strategy::central_storage(nullptr, {}, context_)
                                 : tutti::Strategy::mirrored(context_)),
        rows_(rows_of(context_, golden, golden["rows"].get<int64_t>() / run.micro_batches)),
        micro_batches_(run.micro_batches) {}

  void check_first_step() {
    tutti::Estimator estimator = begin(true);
    tutti::Options train("train");
    const tutti::Result result = estimator.train(rows_, train.set("max_steps", 1));
    check_number(result.loss(), golden_["loss"], "the loss");
    compare(estimator.read_output("y"), golden_["output"], "y");
    // Some gradients are small differences of large numbers, as the others tell.
    double size = 0;
    for (const json &gradient : golden_["gradients"])
      size = std::max(size, largest_of(gradient));
    for (const auto &[variable, gradient] : golden_["gradients"].items())
      compare(estimator.read_gradient(variable), gradient, "the gradient of " + variable, size);
    const auto trained = static_cast<double>(estimator.trainable_names().size());
    check_number(trained, golden_["gradients"].size(), "the number of trained variables");
  }

  void check_training() {
    tutti::Estimator estimator = begin(false);
    const tutti::Result result = estimator.train(rows_);
    check_number(static_cast<double>(result.step()), golden_["steps"], "the number of steps");
    for (const auto &[variable, value] : golden_["after"].items())
      compare(estimator.read_variable(variable), value, variable);
    check_number(estimator.evaluate(rows_).loss(), golden_["evaluated"], "the loss of the evaluation");
  }

 private:
  static tutti::Options context_options(int replicas) {
    tutti::Options options("context");
    options.set("logical_devices", replicas);
    options.set("backend", backend);
    return options;
  }

  tutti::Estimator begin(bool keeps) {
    tutti::Options run("run");
    run.set("accumulation_steps", micro_batches_);
    if (keeps) run.set("keep_gradients", true).set("keep_outputs", true);
    tutti::Estimator estimator([this](tutti::Graph g, int32_t mode) { model(g, mode, golden_); }, run, strategy_,
                               context_);
    estimator.initialize(rows_);
    for (const auto &[variable, value] : golden_["variables"].items())
      estimator.write_variable(variable, adopted(golden::tensor_of(value)));
    return estimator;
  }

  const json &golden_;
  const tutti::Context context_;
  const tutti::Strategy strategy_;
  const tutti::Dataset rows_;
  const int64_t micro_batches_;
};

/// What is wrong with a run of a case; empty where nothing is.
std::string wrong_with(const json &golden, const Run &run) {
  try {
    CaseRun one(golden, run);
    one.check_first_step();
    one.check_training();
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

void test_blocks(void **) {
  const json cases = json::parse(std::ifstream(file_name));
  assert_true(cases.size() >= 70);
  int wrong = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const Run &run : kRuns) {
      if (run.micro_batches > 1 && cases[i]["whole_batch"].get<bool>()) continue;
      const std::string what = wrong_with(cases[i], run);
      if (what.empty()) continue;
      print_error("line %zu, %s, %d replicas%s, %d micro-batches: %s\n", i + 2,
                  cases[i]["name"].get<std::string>().c_str(), run.replicas,
                  run.is_central ? " with central storage" : "", static_cast<int>(run.micro_batches), what.c_str());
      ++wrong;
    }
  }
  assert_int_equal(wrong, 0);
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 2) return 2;
  file_name = arguments[1];
  if (count > 2) backend = arguments[2];
  if (!backend.empty() && is_missing(backend.c_str())) return TEST_IS_SKIPPED;
  const CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
