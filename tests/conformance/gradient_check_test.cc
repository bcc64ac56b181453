// SPDX-License-Identifier: Apache-2.0
//
// The gradient rules of all differentiable ops against central differences, in f64 on the reference backend:
//   loss = sum over results of <result, fixed random weights>;  d loss / d x_i ~ (loss(x_i + h) - loss(x_i - h)) / 2h
// The cases are those of backend_ops_test that are f64, with a few more where its own are of another kind.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/graph_executor.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "graph/autodiff.h"
#include "graph/op_registry.h"
#include "testing.h"

using namespace tutti::impl;
using conformance::OpCase;
using conformance::Operand;
using conformance::ShapeDims;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

namespace {

constexpr int64_t kMostElements = 150;
conformance::BackendUnderTest *tested = nullptr;

bool is_usable(const OpCase &one) {
  const graph::OpDefinition *const definition = graph::find_op(one.op);
  if (definition == nullptr || definition->differentiability != graph::Differentiability::differentiable) return false;
  if (one.build) return false;
  const auto dtype = one.attributes.find("dtype");
  if (dtype != one.attributes.end() && std::get<DType>(dtype->second) != DType::f64) return false;
  int64_t elements = 0;
  for (const Operand &input : one.inputs) {
    int64_t count = 1;
    for (const int64_t dim : input.dims)
      count *= dim;
    if (input.dtype == DType::f64) elements += count;
    if (tensor::is_floating(input.dtype) && input.dtype != DType::f64) return false;
  }
  return elements > 0 && elements <= kMostElements;
}

/// Results "loss" and, for each input that has one, "d<i>".
base::Result<graph::Graph> make_graph(const OpCase &one, const std::vector<Tensor> &inputs) {
  GraphBuilder b;
  std::vector<ValueId> values, wrt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Ints dims(inputs[i].shape().begin(), inputs[i].shape().end());
    values.push_back(b.input("i" + std::to_string(i), inputs[i].dtype(), graph::to_dims(dims)));
    if (inputs[i].dtype() == DType::f64) wrt.push_back(values.back());
  }
  std::vector<ValueId> results = b.op_n(one.op, values, one.attributes);
  // The statistics of normalisation are by-products that carry no gradient.
  if (one.op.find("norm") != std::string::npos) results.resize(1);
  std::vector<ValueId> targets, seeds;
  ValueId loss = b.constant(0, DType::f64);
  for (size_t i = 0; i < results.size() && b.ok(); ++i) {
    if (b.dtype(results[i]) != DType::f64) continue;
    const ShapeDims dims = *graph::constant_shape(b.dims(results[i]));
    TUTTI_ASSIGN(const Tensor weights, conformance::make_operand({DType::f64, dims, 0.5, 1.5}, 7 + i));
    targets.push_back(results[i]);
    seeds.push_back(b.constant(weights));
    loss = b.add(loss, b.reduce_sum(b.mul(results[i], seeds.back())));
  }
  TUTTI_TRY(b.status());
  TUTTI_ASSIGN(const std::vector<ValueId> gradients, graph::gradients(b, targets, seeds, wrt));
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == graph::kNoValue) continue;
    for (size_t j = 0; j < values.size(); ++j) {
      if (values[j] == wrt[i]) b.set_result("d" + std::to_string(j), gradients[i]);
    }
  }
  b.set_result("loss", loss);
  return b.finish_graph();
}

class Differences {
 public:
  base::Status check(const OpCase &one) {
    inputs_.clear();
    for (size_t i = 0; i < one.inputs.size(); ++i) {
      TUTTI_ASSIGN(Tensor input, conformance::make_operand(one.inputs[i], 200 + i));
      inputs_.push_back(std::move(input));
    }
    TUTTI_ASSIGN(const graph::Graph graph, make_graph(one, inputs_));
    TUTTI_ASSIGN(executor_, backend::GraphExecutor::create(tested->device, graph));
    TUTTI_ASSIGN(const std::vector<Tensor> analytic, executor_->run(inputs_, scalars_));
    const std::vector<std::string> &names = executor_->output_names();
    for (size_t result = 0; result < names.size(); ++result) {
      if (names[result] == "loss") loss_ = result;
    }
    for (size_t result = 0; result < names.size(); ++result) {
      if (result != loss_) TUTTI_TRY(check_input(std::stoul(names[result].substr(1)), analytic[result]));
    }
    return base::Status();
  }

 private:
  base::Result<double> loss_at(size_t input, int64_t element, double value) {
    double &place = inputs_[input].mutable_data_as<double>()[element];
    const double kept = std::exchange(place, value);
    const auto results = executor_->run(inputs_, scalars_);
    place = kept;
    TUTTI_TRY(results);
    return (*results)[loss_].scalar_value<double>();
  }

  base::Status check_input(size_t input, const Tensor &analytic) {
    for (int64_t i = 0; i < analytic.elements(); ++i) {
      const double x = inputs_[input].data_as<double>()[i], step = 1e-5;
      TUTTI_ASSIGN(const double above, loss_at(input, i, x + step));
      TUTTI_ASSIGN(const double below, loss_at(input, i, x - step));
      const double expected = (above - below) / (2 * step), got = analytic.data_as<double>()[i];
      if (std::fabs(got - expected) > 1e-5 * (1 + std::fabs(expected)))
        return base::internal_error("gradient of input ", input, " element ", i, " is ", got, ", differences say ",
                                    expected);
    }
    return base::Status();
  }

  backend::GraphExecutorRef executor_;
  backend::RunScalars scalars_;
  std::vector<Tensor> inputs_;
  size_t loss_ = 0;
};

std::vector<OpCase> further_cases() {
  const auto x = [](ShapeDims dims) { return Operand{DType::f64, std::move(dims)}; };
  const std::string same = "same", valid = "valid", explicit_ = "explicit";
  return {
      {"conv2d", {x({1, 4, 5, 2}), x({3, 3, 2, 2}), x({2})}, {{"stride", Ints{2, 1}}}},
      {"conv2d", {x({1, 5, 4, 2}), x({2, 3, 2, 1})}, {{"padding", valid}, {"dilation", Ints{2, 1}}}},
      {"conv2d", {x({1, 4, 4, 4}), x({3, 3, 2, 2})}, {{"groups", int64_t{2}}}},
      {"conv2d",
       {x({2, 3, 3, 3}), x({2, 2, 1, 3})},
       {{"groups", int64_t{3}}, {"padding", explicit_}, {"pads", Ints{1, 0, 0, 1}}}},
      {"max_pool2d", {x({1, 6, 6, 2})}, {{"window", Ints{2, 2}}}},
      {"max_pool2d", {x({1, 5, 5, 2})}, {{"window", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", same}}},
      {"avg_pool2d", {x({1, 6, 6, 2})}, {{"window", Ints{2, 2}}}},
      {"avg_pool2d", {x({1, 5, 5, 2})}, {{"window", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", same}}},
      {"avg_pool2d", {x({1, 5, 5, 2})}, {{"window", Ints{3, 3}}, {"padding", same}, {"count_include_padding", true}}},
      {"avg_pool2d_gradient", {x({1, 2, 2, 3})}, {{"window", Ints{2, 2}}, {"input_dims", graph::Dims{1, 4, 4, 3}}}},
      {"conv2d_input_gradient", {x({1, 4, 4, 2}), x({3, 3, 3, 2})}, {{"input_dims", graph::Dims{1, 4, 4, 3}}}},
      {"conv2d_kernel_gradient", {x({1, 4, 4, 3}), x({1, 4, 4, 2})}, {{"kernel_dims", graph::Dims{3, 3, 3, 2}}}},
      {"transpose", {x({2, 3, 4})}, {{"permutation", Ints{1, 2, 0}}}},
      {"dropout", {x({4, 7})}, {{"rate", 0.4}, {"key", int64_t{3}}}},
      {"batch_norm_training", {x({5, 2, 3}), x({3}), x({3})}},
      {"layer_norm", {x({5, 2, 3}), x({3}), x({3})}},
      {"matmul", {x({2, 1, 3, 4}), x({3, 4, 2})}},
      {"matmul", {x({2, 4, 3}), x({2, 5, 4})}, {{"transpose_a", true}, {"transpose_b", true}}},
      {"select", {conformance::whole(DType::boolean, {3, 4}, 0, 2), x({4}), x({3, 1})}},
  };
}

void every_gradient_matches_differences(void **) {
  std::map<std::string, int> checked;
  int failures = 0;
  std::vector<OpCase> cases = further_cases();
  for (const auto make : {conformance::elementwise_cases, conformance::reduction_cases, conformance::shape_cases,
                          conformance::product_cases, conformance::normalization_cases, conformance::loss_cases}) {
    for (OpCase &one : make())
      cases.push_back(std::move(one));
  }
  for (const OpCase &one : cases) {
    if (!is_usable(one)) continue;
    ++checked[one.op];
    const base::Status status = Differences().check(one);
    if (status.ok()) continue;
    if (++failures <= 20) print_error("%s: %s\n", one.describe().c_str(), status.to_string().c_str());
  }
  for (const graph::OpDefinition &definition : graph::all_ops()) {
    const bool is_expected = definition.differentiability == graph::Differentiability::differentiable &&
                             definition.effect != graph::Effect::region;
    if (!is_expected || checked.count(std::string(definition.name)) != 0) continue;
    print_error("op '%s' is differentiable and has no case\n", std::string(definition.name).c_str());
    ++failures;
  }
  print_message("%zu ops checked\n", checked.size());
  assert_int_equal(failures, 0);
}

}  // namespace

int main(int, char **argv) {
  static char reference[] = "reference";
  char *arguments[] = {argv[0], reference, nullptr};
  auto opened = conformance::open_backend_under_test(2, arguments);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.status().to_string().c_str());
    return 1;
  }
  tested = &*opened;
  const CMUnitTest tests[] = {cmocka_unit_test(every_gradient_matches_differences)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
