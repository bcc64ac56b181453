// SPDX-License-Identifier: Apache-2.0
#include "distribute/weights/initial_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/executable.h"
#include "base/hash/checksum.h"
#include "base/name_suggestions.h"
#include "base/text.h"
#include "distribute/weights/matrix_values.h"
#include "graph/builder.h"
#include "graph/initializer.h"
#include "graph/serialize.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using graph::VariableSpec;
using tensor::Tensor;

double number(const VariableSpec &variable, std::string_view name, double otherwise) {
  const auto found = variable.initializer.attributes.find(name);
  if (found == variable.initializer.attributes.end()) return otherwise;
  if (const auto *value = std::get_if<double>(&found->second)) return *value;
  if (const auto *value = std::get_if<int64_t>(&found->second)) return static_cast<double>(*value);
  return otherwise;
}

std::string choice(const VariableSpec &variable, std::string_view name, std::string_view otherwise) {
  const auto found = variable.initializer.attributes.find(name);
  const auto *const text =
      found == variable.initializer.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text != nullptr ? *text : std::string(otherwise);
}

struct Fans {
  double in = 1, out = 1;
};

/// Inputs and outputs of one unit: the last two axes, times the window in front of them.
Fans fans_of(const std::vector<int64_t> &dims) {
  if (dims.empty()) return {};
  if (dims.size() == 1) return {static_cast<double>(dims[0]), static_cast<double>(dims[0])};
  double window = 1;
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    window *= static_cast<double>(dims[i]);
  return {window * static_cast<double>(dims[dims.size() - 2]), window * static_cast<double>(dims.back())};
}

/// The deviation of a normal distribution shrinks by this factor when it is cut at two standard deviations.
constexpr double truncation_shrink = 0.87962566103423978;

/// Writes the random values of one graph.
class ValueGraph {
 public:
  /// Nothing for values that need no graph.
  Result<ValueId> add(const VariableSpec &variable) {
    const std::string &kind = variable.initializer.name;
    if (kind == "uniform") return uniform(variable, number(variable, "low", -0.05), number(variable, "high", 0.05));
    if (kind == "normal") return normal(variable, "random_normal", number(variable, "stddev", 0.05));
    if (kind == "truncated_normal") {
      return normal(variable, "random_truncated_normal", number(variable, "stddev", 0.05));
    }
    if (kind == "orthogonal") return normal(variable, "random_normal", 1);
    if (kind == "variance_scaling") return scaled(variable);
    const Fans fans = fans_of(variable.dims);
    double variance = 0;
    if (kind.rfind("glorot_", 0) == 0) variance = 2 / std::max(fans.in + fans.out, 1.0);
    if (kind.rfind("he_", 0) == 0) variance = 2 / std::max(fans.in, 1.0);
    if (kind.rfind("lecun_", 0) == 0) variance = 1 / std::max(fans.in, 1.0);
    if (kind.ends_with("_uniform")) return uniform(variable, -std::sqrt(3 * variance), std::sqrt(3 * variance));
    return normal(variable, "random_truncated_normal", std::sqrt(variance) / truncation_shrink);
  }
  GraphBuilder &builder() { return builder_; }

 private:
  Attributes common(const VariableSpec &variable) {
    // Key 0 would mean the node's own id.
    const auto key = static_cast<int64_t>(base::fnv1a64(variable.name) >> 1 | 1);
    return {{"dims", graph::to_dims(variable.dims)}, {"dtype", variable.dtype}, {"key", key}};
  }
  /// Glorot, He and LeCun in general: a variance of scale / fan.
  ValueId scaled(const VariableSpec &variable) {
    const Fans fans = fans_of(variable.dims);
    const std::string mode = choice(variable, "mode", "fan_in");
    const double fan = mode == "fan_in" ? fans.in : mode == "fan_out" ? fans.out : (fans.in + fans.out) / 2;
    const double deviation = std::sqrt(number(variable, "scale", 1) / std::max(fan, 1.0));
    const std::string distribution = choice(variable, "distribution", "truncated_normal");
    if (distribution == "uniform") return uniform(variable, -std::sqrt(3.0) * deviation, std::sqrt(3.0) * deviation);
    if (distribution == "normal") return normal(variable, "random_normal", deviation);
    return normal(variable, "random_truncated_normal", deviation / truncation_shrink);
  }
  ValueId uniform(const VariableSpec &variable, double low, double high) {
    Attributes attributes = common(variable);
    attributes["low"] = low;
    attributes["high"] = high;
    return builder_.op("random_uniform", GraphBuilder::Values{}, std::move(attributes));
  }
  ValueId normal(const VariableSpec &variable, std::string_view op, double stddev) {
    Attributes attributes = common(variable);
    attributes["mean"] = number(variable, "mean", 0);
    attributes["stddev"] = stddev;
    return builder_.op(op, GraphBuilder::Values{}, std::move(attributes));
  }

  GraphBuilder builder_;
};

/// Zeros in the row that the initializer names, if it does.
Status clear_row(const VariableSpec &variable, Tensor &value) {
  const auto found = variable.initializer.attributes.find(graph::kZeroRow);
  if (found == variable.initializer.attributes.end()) return Status();
  const auto *const row = std::get_if<int64_t>(&found->second);
  const int64_t rows = variable.dims.empty() ? 0 : variable.dims[0];
  if (row == nullptr || *row < 0 || *row >= rows) {
    return base::invalid_argument("variable '", variable.name, "' has no row ", row == nullptr ? -1 : *row,
                                  ", which its initializer sets to zero: expected one below ", rows);
  }
  const int64_t bytes = value.size_bytes() / rows;
  std::memset(static_cast<char *>(value.mutable_data()) + *row * bytes, 0, static_cast<size_t>(bytes));
  return Status();
}

/// Runs a graph without inputs or state once; outputs by name.
Status run_values(const graph::Graph &graph, int64_t seed, backend::Device &device,
                  const std::function<void *(const std::string &, int64_t)> &destination) {
  const std::string text = graph::to_json_text(graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  request.level = backend::Level::repeatable;
  TUTTI_ASSIGN(const backend::ExecutableRef executable, backend::Executable::compile(device, request));
  const backend::ExecutableDescription &description = executable->description();
  TUTTI_ASSIGN(backend::Buffer workspace, device.allocate(std::max<int64_t>(description.workspace_bytes, 64),
                                                          std::max<int64_t>(description.workspace_alignment, 64)));
  std::vector<backend::Buffer> buffers;
  std::vector<void *> outputs;
  for (const backend::PortDescription &port : description.outputs) {
    TUTTI_ASSIGN(backend::Buffer buffer, device.allocate(std::max<int64_t>(port.bytes, 64)));
    outputs.push_back(buffer.device_pointer());
    buffers.push_back(std::move(buffer));
  }
  TUTTI_ASSIGN(backend::Program program, executable->bind(device, {}, workspace.device_pointer()));
  TUTTI_ASSIGN(backend::Stream stream, device.create_stream());
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::seed, seed);
  TUTTI_TRY(stream.finish(program.run(0, {nullptr, outputs.data(), scalars.data()}, stream)));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const backend::PortDescription &port = description.outputs[i];
    TUTTI_TRY(buffers[i].read(0, destination(port.name, port.bytes), port.bytes));
  }
  return Status();
}

/// A copy: what a model has is its own.
Result<Tensor> given_values(const VariableSpec &variable) {
  const auto found = variable.initializer.attributes.find(graph::kGivenValues);
  const auto *const given =
      found == variable.initializer.attributes.end() ? nullptr : std::get_if<Tensor>(&found->second);
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(variable.dims));
  if (given == nullptr || given->dtype() != variable.dtype || !(given->shape() == shape)) {
    return base::invalid_argument("variable '", variable.name, "' has initializer '", variable.initializer.name,
                                  "' without values of its dtype and shape");
  }
  return Tensor::copy_of(variable.dtype, shape, given->data(), given->size_bytes());
}

/// Of the initial values of other variables, which are there.
Status derive_values(const std::vector<VariableSpec> &variables, std::vector<Tensor> &values) {
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!graph::is_derived(variables[i].initializer.name)) continue;
    const std::string name = choice(variables[i], graph::kOfVariable, "");
    const auto source = std::ranges::find(variables, name, &VariableSpec::name);
    if (source == variables.end()) {
      return base::invalid_argument("variable '", variables[i].name, "' has initializer '",
                                    variables[i].initializer.name, "' of variable '", name, "', which does not exist");
    }
    TUTTI_TRY(make_derived(variables[i], values[static_cast<size_t>(source - variables.begin())], values[i]));
  }
  return Status();
}

}  // namespace

Result<Tensor> filled(tensor::DType dtype, const std::vector<int64_t> &dims, double value) {
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
  TUTTI_ASSIGN(Tensor tensor, Tensor::zeros(dtype, shape));
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>) {
      std::fill_n(tensor.mutable_data_as<T>(), tensor.elements(), static_cast<T>(value));
    } else {
      std::fill_n(tensor.mutable_data_as<T>(), tensor.elements(), T(static_cast<float>(value)));
    }
  });
  return tensor;
}

namespace {

/// Without the rows of zeros.
Result<std::vector<Tensor>> whole_values(const std::vector<VariableSpec> &variables, int64_t seed,
                                         backend::Device &device) {
  ValueGraph graph;
  std::vector<Tensor> values;
  bool any_random = false;
  for (size_t i = 0; i < variables.size(); ++i) {
    const VariableSpec &variable = variables[i];
    const std::string &kind = variable.initializer.name;
    if (!graph::is_initializer(kind)) {
      return base::invalid_argument("variable '", variable.name, "' has initializer '", kind, "', which does not exist",
                                    base::but_there_are(kind, graph::initializer_names()));
    }
    if (kind == graph::kGivenValues) {
      TUTTI_ASSIGN(Tensor given, given_values(variable));
      values.push_back(std::move(given));
      continue;
    }
    const double constant = kind == "ones" ? 1 : kind == "constant" ? number(variable, "value", 0) : 0;
    TUTTI_ASSIGN(Tensor value, filled(variable.dtype, variable.dims, constant));
    values.push_back(std::move(value));
    if (kind == "zeros" || kind == "ones" || kind == "constant" || graph::is_derived(kind)) continue;
    if (kind == "identity") {
      TUTTI_TRY(make_identity(variable, number(variable, "gain", 1), values.back()));
      continue;
    }
    TUTTI_ASSIGN(const ValueId random, graph.add(variable));
    graph.builder().set_result(std::to_string(i), random);
    any_random = true;
  }
  if (any_random) {
    TUTTI_ASSIGN(const graph::Graph sealed, graph.builder().finish_graph());
    TUTTI_TRY(run_values(sealed, seed, device, [&](const std::string &name, int64_t) {
      return values[static_cast<size_t>(std::stoll(name))].mutable_data();
    }));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].initializer.name != "orthogonal") continue;
    TUTTI_TRY(make_orthogonal(variables[i], number(variables[i], "gain", 1), values[i]));
  }
  TUTTI_TRY(derive_values(variables, values));
  return values;
}

}  // namespace

Result<std::vector<Tensor>> initial_values(const std::vector<VariableSpec> &variables, int64_t seed,
                                           backend::Device &device) {
  TUTTI_ASSIGN(std::vector<Tensor> values, whole_values(variables, seed, device));
  for (size_t i = 0; i < variables.size(); ++i)
    TUTTI_TRY(clear_row(variables[i], values[i]));
  return values;
}

}  // namespace tutti::impl::distribute
