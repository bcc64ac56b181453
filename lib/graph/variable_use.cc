// SPDX-License-Identifier: Apache-2.0
#include "graph/variable_use.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "graph/batch.h"

namespace tutti::impl::graph {

namespace {

std::string describe_value(const Model &model, ValueId value) {
  const ValueInfo &info = model.graph.value(value);
  const std::string shape = base::concat(tensor::name(info.dtype), " ", to_string(info.dims));
  for (const InputSpec &feature : model.features) {
    if (feature.value == value) return base::concat("feature '", feature.name, "', ", shape);
  }
  const std::string maker = info.producer == kNoNode ? "" : model.graph.node(info.producer).scope_name;
  return base::concat("the result of node '", maker, "', ", shape);
}

}  // namespace

std::string describe_use(const Model &model, const VariableSpec &variable) {
  std::vector<ValueId> forms{variable.value};  // the variable, cast, reshaped, transposed
  for (const NodeId id : model.graph.body().nodes) {
    const Node &node = model.graph.node(id);
    const bool takes_it =
        std::ranges::any_of(node.inputs, [&](ValueId input) { return std::ranges::count(forms, input) > 0; });
    if (!takes_it || node.outputs.empty()) continue;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || batch_axis(model.graph.value(input)).kind == BatchAxis::Kind::none) continue;
      return base::concat("; node '", node.scope_name, "' takes it with ", describe_value(model, input));
    }
    if (node.inputs.size() == 1) forms.push_back(node.outputs.front());
  }
  return "";
}

}  // namespace tutti::impl::graph
