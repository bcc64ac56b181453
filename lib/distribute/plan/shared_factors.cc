// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/shared_factors.h"

#include <algorithm>

namespace tutti::impl::distribute {

using graph::Dim;
using graph::Graph;
using graph::GraphBuilder;
using graph::Node;
using graph::ValueId;

namespace {

/// What one replica writes of a factor begins on a cache line of its own.
constexpr int64_t kWidthUnit = 16;

bool is_set(const Node &node, std::string_view attribute) {
  const auto found = node.attributes.find(attribute);
  return found != node.attributes.end() && std::get<bool>(found->second);
}

/// Elements of a row of [batch, width]; 0 for anything else.
int64_t width_of(const Graph &graph, ValueId value) {
  const graph::ValueInfo &info = graph.value(value);
  const bool fits = info.dtype == tensor::DType::f32 && info.dims.size() == 2 &&
                    info.dims[0] == GraphBuilder::batch() && info.dims[1].is_constant();
  return fits ? info.dims[1].constant() : 0;
}

/// The feature that a value is, perhaps in another shape; kNoValue if it is none.
ValueId feature_behind(const Graph &graph, ValueId value) {
  const Node *node = &graph.node(graph.value(value).producer);
  while (node->op == "reshape") {
    value = node->inputs[0];
    node = &graph.node(graph.value(value).producer);
  }
  return node->op == "input" ? value : graph::kNoValue;
}

}  // namespace

std::string rows_symbol(const std::string &variable) { return "rows." + variable; }

std::string first_row_symbol(const std::string &variable) { return "first." + variable; }

bool FactoredGradients::take(GraphBuilder &step, const std::string &variable, ValueId gradient) {
  if (rule_.rows == 0 || !step.ok()) return false;
  const Node &product = step.graph().node(step.info(gradient).producer);
  if (product.op != "matmul" || !is_set(product, "transpose_a") || is_set(product, "transpose_b")) return false;
  const ValueId x = product.inputs[0], dy = product.inputs[1];
  const int64_t in = width_of(step.graph(), x), out = width_of(step.graph(), dy);
  if (in % kWidthUnit != 0 || out % kWidthUnit != 0 || in * out < std::max<int64_t>(rule_.elements, 1)) return false;
  if (rule_.rows * (in / slices_ + out) > in * out) return false;
  const size_t left = factor_of(step, x), right = factor_of(step, dy);
  products_[variable] = {left, right};
  return true;
}

size_t FactoredGradients::factor_of(GraphBuilder &step, ValueId value) {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].step == value) return i;
  }
  const ValueId feature = feature_behind(step.graph(), value);
  SharedFactor factor{"factor/" + std::to_string(factors_.size()), tensor::DType::f32, step.dims(value)};
  if (feature != graph::kNoValue) {
    factor.is_feature = true;
    factor.dims = step.dims(feature);
    factor.name = std::get<std::string>(step.graph().node(step.info(feature).producer).attributes.at("name"));
  } else {
    step.set_result(factor.name, value);
  }
  values_.push_back({value, graph::kNoValue, width_of(step.graph(), value)});
  factors_.push_back(std::move(factor));
  return factors_.size() - 1;
}

ValueId FactoredGradients::read(GraphBuilder &finish, size_t factor) {
  ValueId &value = values_[factor].finish;
  const std::string &name = factors_[factor].name;
  // Two shapes of a feature are one input.
  for (size_t i = 0; i < values_.size() && value == graph::kNoValue; ++i) {
    if (factors_[i].name == name) value = values_[i].finish;
  }
  if (value == graph::kNoValue) value = finish.input(name, tensor::DType::f32, factors_[factor].dims);
  return finish.reshape(value, {GraphBuilder::batch(), Dim(values_[factor].width)});
}

ValueId FactoredGradients::product(GraphBuilder &finish, const std::string &variable) {
  const auto [left, right] = products_.find(variable)->second;
  const Dim first = Dim::symbol(first_row_symbol(variable)), rows = Dim::symbol(rows_symbol(variable));
  const ValueId x = finish.slice(read(finish, left), {Dim(0), first}, {GraphBuilder::batch(), rows});
  return finish.matmul(x, read(finish, right), true, false);
}

graph::Dims FactoredGradients::slice_dims(const std::string &variable) const {
  return {Dim::symbol(rows_symbol(variable)), Dim(values_[products_.find(variable)->second.second].width)};
}

std::vector<std::string> FactoredGradients::variables() const {
  std::vector<std::string> names;
  for (const auto &[name, factors] : products_)
    names.push_back(name);
  return names;
}

}  // namespace tutti::impl::distribute
