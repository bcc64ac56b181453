// SPDX-License-Identifier: Apache-2.0
//
// A GraphRunner that interprets a handful of ops in double precision, rounding each value to its dtype; so that tests
// of datasets need no backend. It counts what it does, and refuses values on demand.
#ifndef TUTTI_TESTS_DATA_INTERPRETING_RUNNER_H_
#define TUTTI_TESTS_DATA_INTERPRETING_RUNNER_H_

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random/philox.h"
#include "data/graph/graph_runner.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace tutti::testing {

class InterpretingRunner : public impl::data::GraphRunner {
 public:
  using Status = impl::base::Status;

  std::atomic<int64_t> prepared{0};
  std::atomic<int64_t> runs{0};
  std::atomic<int64_t> largest_rows{0};
  /// An element with this value in some input makes the run fail.
  std::optional<double> refused;

  impl::base::Result<std::unique_ptr<impl::data::GraphFunction>> prepare(
      const impl::graph::SealedGraph &graph, const impl::graph::SymbolBindings &bindings) override;

 private:
  class Function;
};

class InterpretingRunner::Function : public impl::data::GraphFunction {
 public:
  using Values = std::vector<double>;

  Function(InterpretingRunner &runner, impl::graph::SealedGraph graph, impl::graph::SymbolBindings bindings)
      : runner_(runner), graph_(std::move(graph)), bindings_(std::move(bindings)) {}

  Status prepare() {
    for (const auto &[name, value] : graph_->inputs())
      TUTTI_TRY(add(inputs_, name, value));
    for (const auto &[name, value] : graph_->results())
      TUTTI_TRY(add(outputs_, name, value));
    return Status();
  }
  const std::vector<impl::data::GraphPort> &inputs() const override { return inputs_; }
  const std::vector<impl::data::GraphPort> &outputs() const override { return outputs_; }

  Status run(std::span<const void *const> inputs, std::span<void *const> outputs,
             const impl::data::GraphScalars &scalars) override {
    ++runner_.runs;
    if (scalars.rows > runner_.largest_rows) runner_.largest_rows = scalars.rows;
    for (const void *pointer : inputs) {
      if (reinterpret_cast<uintptr_t>(pointer) % 64 != 0) return impl::base::internal_error("input not aligned");
    }
    std::map<impl::graph::ValueId, Values> values;
    size_t input = 0;
    for (const auto &[name, id] : graph_->inputs()) {
      values[id] = load(inputs_[input], inputs[input]);
      ++input;
      for (const double value : values[id]) {
        if (value == runner_.refused) return impl::base::invalid_argument("the value ", value, " is refused");
      }
    }
    for (const impl::graph::NodeId node : graph_->body().nodes)
      TUTTI_TRY(compute(graph_->node(node), values, scalars));
    size_t output = 0;
    for (const auto &[name, id] : graph_->results()) {
      if (reinterpret_cast<uintptr_t>(outputs[output]) % 64 != 0) {
        return impl::base::internal_error("output not aligned");
      }
      store(outputs_[output], values[id], outputs[output]);
      ++output;
    }
    return Status();
  }

 private:
  Status add(std::vector<impl::data::GraphPort> &ports, const std::string &name, impl::graph::ValueId value) {
    const impl::graph::ValueInfo &info = graph_->value(value);
    TUTTI_ASSIGN(std::vector<int64_t> dims, impl::graph::evaluate(info.dims, bindings_));
    int64_t bytes = static_cast<int64_t>(impl::tensor::size_bytes(info.dtype));
    for (const int64_t extent : dims)
      bytes *= extent;
    ports.push_back({name, info.dtype, std::move(dims), bytes});
    return Status();
  }
  int64_t elements(impl::graph::ValueId id) const {
    int64_t count = 1;
    const auto shape = impl::graph::evaluate(graph_->value(id).dims, bindings_);
    for (const int64_t extent : *shape)
      count *= extent;
    return count;
  }
  static Values load(const impl::data::GraphPort &port, const void *data) {
    Values values;
    impl::tensor::visit_dtype(port.dtype, [&]<typename T>(T) {
      const auto *typed = static_cast<const T *>(data);
      for (size_t i = 0; i < port.bytes / sizeof(T); ++i)
        values.push_back(static_cast<double>(static_cast<float>(typed[i])));
    });
    return values;
  }
  static void store(const impl::data::GraphPort &port, const Values &values, void *data) {
    impl::tensor::visit_dtype(port.dtype, [&]<typename T>(T) {
      auto *typed = static_cast<T *>(data);
      for (size_t i = 0; i < values.size(); ++i)
        typed[i] = static_cast<T>(static_cast<float>(values[i]));
    });
  }
  static double round_to(impl::tensor::DType dtype, double value) {
    if (dtype == impl::tensor::DType::f64) return value;
    if (dtype == impl::tensor::DType::boolean) return value != 0 ? 1 : 0;
    return impl::tensor::is_integer(dtype) ? std::trunc(value) : static_cast<double>(static_cast<float>(value));
  }
  static double apply(const std::string &op, double a, double b) {
    if (op == "add") return a + b;
    if (op == "sub") return a - b;
    if (op == "mul") return a * b;
    if (op == "div") return a / b;
    return a < b ? 1 : 0;  // less
  }

  Status compute(const impl::graph::Node &node, std::map<impl::graph::ValueId, Values> &values,
                 const impl::data::GraphScalars &scalars) {
    if (node.op == "input") return Status();
    const impl::graph::ValueId id = node.outputs[0];
    const impl::tensor::DType dtype = graph_->value(id).dtype;
    Values result;
    if (node.op == "constant") {
      const auto &tensor = std::get<impl::tensor::Tensor>(node.attributes.find("value")->second);
      result = load({"", tensor.dtype(), {}, tensor.size_bytes()}, tensor.data());
    } else if (node.op == "cast") {
      result = values[node.inputs[0]];
    } else if (node.op == "random_uniform") {
      const auto key =
          impl::base::RandomKey::of(static_cast<uint64_t>(scalars.seed), static_cast<uint64_t>(node.stable_id),
                                    static_cast<uint64_t>(scalars.epoch));
      const int64_t row_elements = elements(id) / scalars.rows;
      for (int64_t i = 0; i < elements(id); ++i) {
        const auto words = key.words(static_cast<uint64_t>(scalars.row_offset + i / row_elements),
                                     static_cast<uint64_t>(i % row_elements / 4));
        result.push_back(impl::base::uniform_float(words[static_cast<size_t>(i % row_elements % 4)]));
      }
    } else if (node.op == "reduce_sum") {
      // Over everything but the first axis.
      const Values &x = values[node.inputs[0]];
      result.assign(static_cast<size_t>(elements(id)), 0);
      for (size_t i = 0; i < x.size(); ++i)
        result[i / (x.size() / result.size())] += x[i];
    } else if (node.op == "add" || node.op == "sub" || node.op == "mul" || node.op == "div" || node.op == "less") {
      const Values &a = values[node.inputs[0]], &b = values[node.inputs[1]];
      for (size_t i = 0; i < static_cast<size_t>(elements(id)); ++i) {
        result.push_back(apply(node.op, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]));
      }
    } else {
      return impl::base::unimplemented("op ", node.op);
    }
    for (double &value : result)
      value = round_to(dtype, value);
    values[id] = std::move(result);
    return Status();
  }

  InterpretingRunner &runner_;
  impl::graph::SealedGraph graph_;
  impl::graph::SymbolBindings bindings_;
  std::vector<impl::data::GraphPort> inputs_, outputs_;
};

inline impl::base::Result<std::unique_ptr<impl::data::GraphFunction>> InterpretingRunner::prepare(
    const impl::graph::SealedGraph &graph, const impl::graph::SymbolBindings &bindings) {
  ++prepared;
  auto function = std::make_unique<Function>(*this, graph, bindings);
  TUTTI_TRY(function->prepare());
  return std::unique_ptr<impl::data::GraphFunction>(std::move(function));
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_INTERPRETING_RUNNER_H_
