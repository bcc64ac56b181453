// SPDX-License-Identifier: Apache-2.0
#include "golden_case.h"

#include <utility>

#include "base/file.h"
#include "graph/serialize.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::conformance {

using base::Json;
using base::JsonReader;
using base::Result;
using tensor::Tensor;

namespace {

// Texts are hexadecimal.
Result<Tensor> read_texts(const JsonReader &reader, const tensor::Shape &shape) {
  TUTTI_ASSIGN(const JsonReader list, reader.get("texts"));
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, list.elements());
  std::vector<std::string> texts;
  for (const JsonReader &element : elements) {
    const std::string &digits = element.json().string();
    texts.emplace_back();
    for (size_t i = 0; i + 1 < digits.size(); i += 2)
      texts.back().push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return tensor::make_bytes_tensor(shape, texts);
}

Result<Tensor> read_tensor(const JsonReader &reader) {
  TUTTI_ASSIGN(const std::string dtype_name, reader.get_string("dtype"));
  TUTTI_ASSIGN(const tensor::DType dtype, tensor::parse_dtype(dtype_name));
  TUTTI_ASSIGN(const std::vector<int64_t> dims, reader.get_integers("dims"));
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
  if (dtype == tensor::DType::bytes) return read_texts(reader, shape);
  TUTTI_ASSIGN(const std::vector<double> values, reader.get_doubles("values"));
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
  if (tensor.elements() != static_cast<int64_t>(values.size()))
    return base::invalid_argument(reader.path(), ": ", values.size(), " values for ", shape);
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_arithmetic_v<T>) tensor.mutable_data_as<T>()[i] = static_cast<T>(values[i]);
    }
  });
  return tensor;
}

Result<std::vector<Tensor>> read_tensors(const JsonReader &parent, std::string_view key) {
  TUTTI_ASSIGN(const JsonReader list, parent.get(key));
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, list.elements());
  std::vector<Tensor> tensors;
  for (const JsonReader &element : elements) {
    TUTTI_ASSIGN(Tensor tensor, read_tensor(element));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<graph::Attributes> read_attributes(const JsonReader &parent) {
  TUTTI_ASSIGN(const JsonReader attributes, parent.get("attributes"));
  return graph::attributes_from_json(attributes.json());
}

Result<GoldenGradient> read_gradient(const JsonReader &parent) {
  GoldenGradient golden;
  TUTTI_ASSIGN(const JsonReader upstream, parent.get("upstream"));
  TUTTI_ASSIGN(golden.upstream, read_tensor(upstream));
  TUTTI_ASSIGN(const JsonReader gradient, parent.get("gradient"));
  TUTTI_ASSIGN(golden.gradient, read_tensor(gradient));
  TUTTI_ASSIGN(golden.relative, parent.get_double("gradient_relative"));
  TUTTI_ASSIGN(golden.absolute, parent.get_double("gradient_absolute"));
  return golden;
}

Result<std::vector<GoldenRate>> read_rates(const JsonReader &parent) {
  TUTTI_ASSIGN(const JsonReader list, parent.get("rates"));
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, list.elements());
  std::vector<GoldenRate> rates;
  for (const JsonReader &element : elements) {
    GoldenRate rate;
    TUTTI_ASSIGN(rate.op, element.get_string("op"));
    TUTTI_ASSIGN(rate.attributes, read_attributes(element));
    TUTTI_ASSIGN(rate.rates, read_rates(element));
    rates.push_back(std::move(rate));
  }
  return rates;
}

Result<GoldenCase> read_case(const JsonReader &reader) {
  GoldenCase golden;
  TUTTI_ASSIGN(golden.op, reader.get_string("op"));
  TUTTI_ASSIGN(golden.attributes, read_attributes(reader));
  TUTTI_ASSIGN(golden.inputs, read_tensors(reader, "inputs"));
  TUTTI_ASSIGN(golden.outputs, read_tensors(reader, "outputs"));
  TUTTI_ASSIGN(golden.relative, reader.get_double("relative"));
  TUTTI_ASSIGN(golden.absolute, reader.get_double("absolute"));
  if (reader.has("gradient")) {
    TUTTI_ASSIGN(golden.gradient, read_gradient(reader));
  }
  if (reader.has("gradients")) {
    TUTTI_ASSIGN(golden.gradients, read_tensors(reader, "gradients"));
  }
  if (reader.has("wrt")) {
    TUTTI_ASSIGN(golden.upstreams, read_tensors(reader, "upstreams"));
    TUTTI_ASSIGN(golden.differentiated, reader.get_integers("wrt"));
  }
  if (reader.has("rates")) {
    TUTTI_ASSIGN(golden.rates, read_rates(reader));
  }
  if (reader.has("ports")) {
    TUTTI_ASSIGN(golden.ports, reader.get_integers("ports"));
    TUTTI_ASSIGN(const JsonReader variables, reader.get("variables"));
    for (const auto &[name, place] : variables.json().object())
      golden.variables[name] = place.integer();
  }
  return golden;
}

Result<TrajectoryStep> read_step(const JsonReader &reader) {
  TrajectoryStep step;
  TUTTI_ASSIGN(const JsonReader gradient, reader.get("gradient"));
  TUTTI_ASSIGN(step.gradient, read_tensor(gradient));
  TUTTI_ASSIGN(step.rate, reader.get_double("rate"));
  TUTTI_ASSIGN(step.ok, reader.get_boolean("ok"));
  TUTTI_ASSIGN(step.iteration, reader.get_integer("iteration"));
  TUTTI_ASSIGN(step.state, read_tensors(reader, "state"));
  return step;
}

Result<Trajectory> read_trajectory(const JsonReader &reader) {
  Trajectory trajectory;
  TUTTI_ASSIGN(trajectory.op, reader.get_string("op"));
  TUTTI_ASSIGN(trajectory.attributes, read_attributes(reader));
  TUTTI_ASSIGN(trajectory.state, read_tensors(reader, "state"));
  trajectory.absolute.assign(trajectory.state.size(), 2e-6);
  if (reader.has("absolute")) {
    TUTTI_ASSIGN(trajectory.absolute, reader.get_doubles("absolute"));
  }
  TUTTI_ASSIGN(const JsonReader list, reader.get("steps"));
  TUTTI_ASSIGN(const std::vector<JsonReader> steps, list.elements());
  for (const JsonReader &element : steps) {
    TUTTI_ASSIGN(TrajectoryStep step, read_step(element));
    trajectory.steps.push_back(std::move(step));
  }
  return trajectory;
}

template <typename T>
Result<std::vector<T>> read_list(const std::string &path, Result<T> (*read)(const JsonReader &)) {
  TUTTI_ASSIGN(const std::string text, base::read_file(path));
  TUTTI_ASSIGN(const Json json, Json::parse(text));
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, JsonReader(json, path).elements());
  std::vector<T> list;
  for (const JsonReader &element : elements) {
    TUTTI_ASSIGN(T one, read(element));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

Result<std::vector<GoldenCase>> read_golden(const std::string &path) { return read_list(path, read_case); }
Result<std::vector<Trajectory>> read_trajectories(const std::string &path) { return read_list(path, read_trajectory); }

}  // namespace tutti::impl::conformance
