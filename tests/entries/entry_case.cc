// SPDX-License-Identifier: Apache-2.0
#include "entries/entry_case.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <set>
#include <type_traits>

#include "base/text.h"
#include "data/pipeline/sources.h"
#include "graph/op_registry.h"
#include "nn/registry.h"

namespace tutti::testing::entries {

namespace base = impl::base;
namespace data = impl::data;
namespace graph = impl::graph;
namespace nn = impl::nn;

using graph::GraphBuilder;
using graph::ValueId;
using impl::tensor::DType;
using impl::tensor::Shape;
using impl::tensor::Tensor;
using Values = GraphBuilder::Values;

namespace {

constexpr int64_t kWidth = 3, kUnits = 2;

/// Of the small network, and of all cases: how much each row counts.
const std::vector<std::pair<std::string, Port>> &shared_ports() {
  static const std::vector<std::pair<std::string, Port>> ports = {{"shared", given({kWidth})},
                                                                  {"row_weight", given({}, Fill::positive)}};
  return ports;
}

/// In (0, 1): a fixed function without a pattern.
double fraction(int64_t row, int64_t element, size_t port) {
  const double number = std::sin(static_cast<double>(row) * 12.9898 + static_cast<double>(element) * 78.233 +
                                 static_cast<double>(port) * 37.719 + 1) *
                        43758.5453;
  return number - std::floor(number);
}

double number_of(const Port &port, int64_t row, int64_t element, size_t index) {
  const double part = fraction(row, element, index);
  switch (port.fill) {
    case Fill::real:
      return 2 * part - 1;
    case Fill::positive:
    case Fill::shares:
      return 0.5 + part;
    case Fill::unit:
      return 0.1 + 0.8 * part;
    case Fill::signs:
      return part < 0.5 ? -1 : 1;
    case Fill::binary:
    case Fill::flags:
      return part < 0.5 ? 0 : 1;
    case Fill::numbers:
      return std::floor(part * static_cast<double>(port.bound));
    case Fill::lengths:
      return 1 + std::floor(part * static_cast<double>(port.bound));
  }
  return 0;
}

DType dtype_of(const Port &port, DType real) {
  if (port.fill == Fill::flags) return DType::boolean;
  return port.fill == Fill::numbers || port.fill == Fill::lengths ? DType::i32 : real;
}

int64_t elements_of(const Ints &dims) {
  int64_t count = 1;
  for (const int64_t dim : dims)
    count *= dim;
  return count;
}

/// The numbers of a port: of `count` rows, or those that have none.
base::Result<Tensor> filled(const Port &port, size_t index, DType real, int64_t count) {
  const int64_t size = elements_of(port.dims);
  std::vector<double> values;
  for (int64_t at = 0; at < count * size; ++at)
    values.push_back(number_of(port, at / size, at % size, index));
  const int64_t last = port.dims.empty() ? 1 : port.dims.back();
  for (int64_t at = 0; port.fill == Fill::shares && at < count * size; at += last) {
    double sum = 0;
    for (int64_t i = at; i < at + last; ++i)
      sum += values[static_cast<size_t>(i)];
    for (int64_t i = at; i < at + last; ++i)
      values[static_cast<size_t>(i)] /= sum;
  }
  Ints dims = port.dims;
  if (port.kind == Port::Kind::rows) dims.insert(dims.begin(), count);
  TUTTI_ASSIGN(const Shape shape, Shape::make(dims));
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(dtype_of(port, real), shape));
  impl::tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_arithmetic_v<T>) tensor.mutable_data_as<T>()[i] = static_cast<T>(values[i]);
    }
  });
  return tensor;
}

/// "rows[6, 2]"
std::string describe(const Port &port) {
  static constexpr const char *kinds[] = {"none", "rows", "weights", "fixed", "carried"};
  std::vector<std::string> dims;
  for (const int64_t dim : port.dims)
    dims.push_back(std::to_string(dim));
  return base::concat(
      port.kind == Port::Kind::rows && !port.is_trained ? "given" : kinds[static_cast<size_t>(port.kind)], "[",
      base::join(dims, ", "), "]");
}

std::string numbered(const char *what, size_t index) { return what + std::to_string(index); }

/// Each port of a case and its name: those of all cases first, then its own.
void for_each_port(const EntryCase &one, const std::function<void(const std::string &, const Port &, size_t)> &visit) {
  size_t index = 0;
  for (const auto &[name, port] : shared_ports())
    visit(name, port, index++);
  for (size_t i = 0; i < one.inputs.size(); ++i)
    visit(numbered("input", i), one.inputs[i], index++);
  for (const auto &[name, port] : one.named)
    visit(name, port, index++);
}

ValueId feature(const GraphBuilder &b, const std::string &name) { return b.model().find_feature(name)->value; }

/// Builds the model of one case.
class CaseBuilder {
 public:
  CaseBuilder(GraphBuilder &builder, const EntryCase &one, DType dtype, bool is_training)
      : b_(builder), one_(one), dtype_(dtype), mode_{.training = is_training} {}

  void build() {
    for_each_port(one_, [&](const std::string &name, const Port &port, size_t index) {
      values_.push_back(value_of(name, port, index));
    });
    if (!b_.ok()) return;
    ValueId loss = network();
    b_.set_output("y", loss_free_output_);
    const std::string &entry = one_.entry;
    bool has_optimizer = false;
    ValueId rate = b_.constant(0.02, DType::f32);
    if (entry.starts_with("schedule_")) {
      rate = expand();
    } else if (entry.starts_with("optimizer_")) {
      has_optimizer = true;
    } else if (entry.starts_with("metric_") || entry.starts_with("parameter_")) {
      expand();
    } else if (entry.starts_with("loss_")) {
      loss = b_.add(loss, mean_of(expand(), 0));
    } else {
      loss = add_results(loss);
    }
    b_.set_loss(loss);
    if (!mode_.training) return;
    if (has_optimizer) {
      nn::expand(b_, entry, 1, {rate}, one_.attributes, mode_);
    } else {
      nn::expand(b_, "optimizer_sgd", 1, {rate}, {{"momentum", 0.5}}, mode_);
    }
  }

 private:
  ValueId value_of(const std::string &name, const Port &port, size_t index) {
    switch (port.kind) {
      case Port::Kind::none:
        return graph::kNoValue;
      case Port::Kind::rows: {
        const ValueId given = feature(b_, name);
        if (!port.is_trained) return given;
        return b_.add(given, b_.variable(name + "_shift", dtype_, port.dims));
      }
      case Port::Kind::weights: {
        const ValueId variable = b_.variable(name, dtype_, port.dims);
        set_initial(name, port, index);
        return variable;
      }
      case Port::Kind::fixed:
        return constant(port, index);
      case Port::Kind::carried:
        return carried_state(name, port);
    }
    return graph::kNoValue;
  }

  void set_initial(const std::string &name, const Port &port, size_t index) {
    const base::Result<Tensor> tensor = filled(port, index, dtype_, 1);
    if (!tensor.ok()) b_.fail(tensor.status());
    if (tensor.ok()) b_.set_initial_value(name, *tensor);
  }

  ValueId constant(const Port &port, size_t index) {
    const base::Result<Tensor> tensor = filled(port, index, dtype_, 1);
    return tensor.ok() ? b_.constant(*tensor) : b_.fail(tensor.status());
  }

  ValueId carried_state(const std::string &name, const Port &port) {
    carried_ = name + "_state";
    const ValueId state = b_.variable(carried_, dtype_, port.dims, {},
                                      {.trainable = false, .aggregation = graph::Aggregation::aggregated});
    graph::Dims dims = {GraphBuilder::batch()};
    dims.insert(dims.end(), port.dims.begin(), port.dims.end());
    return b_.broadcast_to(state, dims);
  }

  /// The mean loss of a small network that every case has.
  ValueId network() {
    const ValueId kernel = b_.variable("kernel", dtype_, {kWidth, kUnits}, {"glorot_uniform", {}});
    const ValueId bias = b_.variable("bias", dtype_, {kUnits});
    loss_free_output_ = b_.unary("tanh", b_.add(b_.matmul(values_[0], kernel), bias));
    const ValueId squares = b_.reduce_sum(b_.unary("square", b_.add_scalar(loss_free_output_, -0.25)), {1});
    return b_.reduce_mean(b_.mul(squares, values_[1]));
  }

  /// The inputs of the entry, in the order of the registry.
  Values inputs() {
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(shared_ports().size());
    const auto last = first + static_cast<std::ptrdiff_t>(one_.inputs.size());
    Values inputs(first, last);
    const nn::Definition *const definition = nn::find_definition(one_.entry, 1);
    const graph::OpDefinition *const op = graph::find_op(one_.entry);
    for (size_t i = 0; i < one_.named.size(); ++i) {
      const auto &definitions = definition != nullptr ? definition->inputs : op->inputs;
      size_t at = 0;
      while (at < definitions.size() && definitions[at].name != one_.named[i].first)
        ++at;
      if (at == definitions.size()) {
        b_.fail(base::invalid_argument(one_.entry, " has no input '", one_.named[i].first, "'"));
        return inputs;
      }
      if (inputs.size() <= at) inputs.resize(at + 1, graph::kNoValue);
      inputs[at] = *(last + static_cast<std::ptrdiff_t>(i));
    }
    return inputs;
  }

  ValueId expand() {
    further_.clear();
    graph::Attributes attributes = one_.attributes;
    if (one_.entry.starts_with("metric_")) attributes.insert_or_assign("name", text("measured"));
    return nn::expand(b_, one_.entry, 1, inputs(), attributes, mode_, &further_);
  }

  Values results() {
    if (nn::find_definition(one_.entry, 1) == nullptr) return b_.op_n(one_.entry, inputs(), one_.attributes);
    Values results = {expand()};
    results.insert(results.end(), further_.begin(), further_.end());
    return results;
  }

  ValueId add_results(ValueId loss) {
    const Values all = results();
    const size_t count = one_.results == 0 ? all.size() : one_.results;
    for (size_t i = 0; i < count && b_.ok(); ++i)
      loss = b_.add(loss, mean_of(all[i], i));
    if (b_.ok() && !carried_.empty() && mode_.training) b_.assign(carried_, b_.reduce_mean(all[1], {0}));
    return loss;
  }

  /// The mean of a result, each element times a weight of its own.
  ValueId mean_of(ValueId result, size_t index) {
    if (!b_.ok()) return graph::kNoValue;
    result = b_.cast(result, dtype_);
    const graph::Dims dims = b_.dims(result);
    const bool has_rows = !dims.empty() && dims[0] == GraphBuilder::batch();
    Port weights = {.kind = Port::Kind::fixed};
    for (size_t axis = has_rows ? 1 : 0; axis < dims.size(); ++axis)
      weights.dims.push_back(dims[axis].is_constant() ? dims[axis].constant() : 1);
    result = b_.mul(result, constant(weights, 100 + index));
    if (has_rows) {
      graph::Dims ones(dims.size(), graph::Dim(1));
      ones[0] = GraphBuilder::batch();
      result = b_.mul(result, b_.reshape(values_[1], ones));
    }
    return b_.reduce_mean(result);
  }

  GraphBuilder &b_;
  const EntryCase &one_;
  const DType dtype_;
  const nn::ExpansionMode mode_;
  Values values_;  // of all ports
  Values further_;
  ValueId loss_free_output_ = graph::kNoValue;
  std::string carried_;
};

}  // namespace

std::string EntryCase::name() const {
  std::vector<std::string> parts, ports;
  for (const auto &[key, value] : attributes)
    parts.push_back(base::concat(key, "=", graph::to_string(value)));
  for (const Port &port : inputs)
    ports.push_back(describe(port));
  for (const auto &[key, port] : named)
    ports.push_back(base::concat(key, " ", describe(port)));
  return base::concat(entry, parts.empty() ? "" : base::concat("(", base::join(parts, ", "), ")"),
                      ports.empty() ? "" : " of ", base::join(ports, ", "));
}

Cases without_rows(const Cases &cases) {
  Cases others;
  for (EntryCase one : cases) {
    const bool names_batch = std::ranges::any_of(
        one.attributes, [](const auto &attribute) { return std::get_if<graph::Dims>(&attribute.second) != nullptr; });
    if (names_batch) continue;
    bool has_rows = false;
    const auto fix = [&](Port &port) {
      if (port.kind != Port::Kind::rows) return;
      has_rows = true;
      port.kind = port.is_trained ? Port::Kind::weights : Port::Kind::fixed;
      port.is_trained = false;
      port.dims.insert(port.dims.begin(), 3);
    };
    std::ranges::for_each(one.inputs, fix);
    for (auto &[name, port] : one.named)
      fix(port);
    one.in_pieces = one.in_micro_batches = "";
    // Statistics are of the same rows then.
    one.is_by_micro_batch = one.entry == "dropout_attention";
    // What is drawn for each micro-batch is not linear in the whole.
    if (one.entry == "dropout") one.in_micro_batches = kInPieces;
    if (has_rows) others.push_back(std::move(one));
  }
  return others;
}

Cases chosen_cases() {
  const Cases all = all_cases();
  if (std::getenv("TUTTI_TEST_ALL_CASES") != nullptr) return all;
  Cases chosen;
  std::set<std::string> entries;
  for (const EntryCase &one : all) {
    if (entries.insert(one.entry).second) chosen.push_back(one);
  }
  return chosen;
}

Cases all_cases() {
  Cases all;
  for (const auto &list : {op_cases, function_cases, layer_cases, loss_cases, metric_cases, rule_cases}) {
    append(all, list());
  }
  append(all, without_rows(op_cases()));
  append(all, without_rows(function_cases()));
  return all;
}

void declare_features(GraphBuilder &builder, const EntryCase &one, DType dtype) {
  for_each_port(one, [&](const std::string &name, const Port &port, size_t) {
    if (port.kind != Port::Kind::rows) return;
    graph::Dims dims = {GraphBuilder::batch()};
    dims.insert(dims.end(), port.dims.begin(), port.dims.end());
    builder.feature(name, dtype_of(port, dtype), dims);
  });
}

void build(GraphBuilder &builder, const EntryCase &one, DType dtype, bool is_training) {
  CaseBuilder(builder, one, dtype, is_training).build();
}

std::vector<std::string> trained_through(const EntryCase &one) {
  std::vector<std::string> names;
  for_each_port(one, [&](const std::string &name, const Port &port, size_t) {
    if (port.is_trained) names.push_back(name + "_shift");
    if (port.kind == Port::Kind::weights) names.push_back(name);
  });
  return names;
}

base::Result<data::DatasetRef> make_rows(const EntryCase &one, DType dtype, int64_t count) {
  std::vector<data::NamedTensor> tensors;
  base::Status status;
  for_each_port(one, [&](const std::string &name, const Port &port, size_t index) {
    if (port.kind != Port::Kind::rows || !status.ok()) return;
    base::Result<Tensor> tensor = filled(port, index, dtype, count);
    status = tensor.status();
    if (tensor.ok()) tensors.push_back({name, tensor.take(), data::Role::feature});
  });
  TUTTI_TRY(status);
  return data::from_slices(std::move(tensors));
}

}  // namespace tutti::testing::entries
