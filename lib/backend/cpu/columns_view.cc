// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/columns_view.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/attributes.h"

namespace tutti::impl::backend::cpu {

std::optional<ColumnsView> columns_view(const LoweredGraph &graph, const graph::Node &node) {
  if (node.op != "slice") return std::nullopt;
  const std::vector<int64_t> &all = graph.value(node.inputs[0]).dims, &part = graph.value(node.outputs[0]).dims;
  if (all.size() != 2 || part[0] != all[0]) return std::nullopt;
  const std::vector<int64_t> strides = integers(node, "strides");
  if (std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 1; })) return std::nullopt;
  const graph::Dim column = attribute<graph::Dims>(node, "begin")[1];
  // A negative constant counts from the end.
  if (column.is_constant() && column.constant() < 0)
    return ColumnsView{node.inputs[0], column.constant() + all[1], all[1]};
  const auto first = column.evaluate(graph.bindings());
  if (!first.ok()) return std::nullopt;
  return ColumnsView{node.inputs[0], *first, all[1]};
}

}  // namespace tutti::impl::backend::cpu
