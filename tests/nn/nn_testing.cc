// SPDX-License-Identifier: Apache-2.0
#include "nn_testing.h"

#include <algorithm>
#include <utility>

#include "backend/graph_executor.h"
#include "backend/reference/reference_backend.h"
#include "tensor/dtype.h"

namespace tutti::impl::nn_testing {

using backend::RunScalar;
using base::Result;
using tensor::Tensor;

namespace {

Result<Tensor> to_tensor(DType dtype, const std::vector<int64_t> &dims, const Numbers &numbers) {
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
  if (shape.elements() != int64_t(numbers.size()))
    return base::invalid_argument(numbers.size(), " numbers given, ", shape.elements(), " needed");
  TUTTI_ASSIGN(Tensor made, Tensor::zeros(dtype, shape));
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>)
      std::transform(numbers.begin(), numbers.end(), made.mutable_data_as<T>(), [](double v) { return T(v); });
  });
  return made;
}

Numbers to_numbers(const Tensor &tensor) {
  Numbers numbers;
  tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>) numbers.assign(tensor.data_as<T>(), tensor.data_as<T>() + tensor.elements());
  });
  return numbers;
}

Result<backend::DeviceRef> reference_device() {
  TUTTI_ASSIGN(const backend::BackendRef reference,
               backend::Backend::create(&backend::reference::entry, "{}", backend::HostOptions()));
  return reference->open_device(0);
}

/// Variables become inputs: what an executor can run.
graph::Graph with_variables_as_inputs(const graph::Graph &graph) {
  graph::Graph copy = graph.clone();
  for (const graph::NodeId id : copy.body().nodes) {
    if (copy.node(id).op == "variable") copy.mutable_node(id).op = "input";
  }
  return copy;
}

}  // namespace

ValueId Bench::input(const std::string &name, Numbers numbers, const std::vector<int64_t> &rest, DType dtype) {
  graph::Dims dims = graph::to_dims(rest);
  dims.insert(dims.begin(), GraphBuilder::batch());
  inputs_[name] = std::move(numbers);
  return builder.feature(name, dtype, std::move(dims));
}

ValueId Bench::expand(const std::string &entry, const std::vector<ValueId> &inputs, Attributes attributes,
                      bool training) {
  return nn::expand(builder, entry, 1, inputs, std::move(attributes), {.training = training});
}

Result<Numbers> Bench::evaluate(ValueId value, const Variables &variables, int64_t step) const {
  GraphBuilder copy = builder;
  copy.set_result("value", value);
  TUTTI_ASSIGN(const graph::Graph built, copy.finish_graph());
  const graph::Graph graph = with_variables_as_inputs(built);
  int64_t rows = 0;
  std::vector<Tensor> tensors;
  for (const auto &[name, id] : graph.inputs()) {
    const graph::ValueInfo &info = graph.value(id);
    const auto given = variables.find(name);
    const Numbers &numbers = given != variables.end() ? given->second : inputs_.at(name);
    graph::SymbolBindings bindings;
    if (given == variables.end()) {
      TUTTI_ASSIGN(const int64_t row, graph::element_count(info.dims).evaluate({{"batch", 1}}));
      rows = int64_t(numbers.size()) / std::max<int64_t>(row, 1);
      bindings.emplace("batch", rows);
    }
    TUTTI_ASSIGN(const std::vector<int64_t> dims, graph::evaluate(info.dims, bindings));
    TUTTI_ASSIGN(Tensor tensor, to_tensor(info.dtype, dims, numbers));
    tensors.push_back(std::move(tensor));
  }
  TUTTI_ASSIGN(backend::DeviceRef device, reference_device());
  TUTTI_ASSIGN(const backend::GraphExecutorRef executor, backend::GraphExecutor::create(std::move(device), graph));
  backend::RunScalars scalars;
  scalars.set(RunScalar::step, step).set(RunScalar::local_rows, rows).set(RunScalar::step_rows, rows);
  TUTTI_ASSIGN(const std::vector<Tensor> results, executor->run(tensors, scalars));
  return to_numbers(results.at(0));
}

int64_t first_difference(const Numbers &actual, const Numbers &expected, double tolerance) {
  for (size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
    const double scale = std::max({1.0, std::abs(actual[i]), std::abs(expected[i])});
    if (!(std::abs(actual[i] - expected[i]) <= tolerance * scale)) return int64_t(i);
  }
  return -1;
}

}  // namespace tutti::impl::nn_testing
