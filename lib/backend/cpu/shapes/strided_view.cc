// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/shapes/strided_view.h"

#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/strided_copy.h"

namespace tutti::impl::backend::cpu {

bool view_of(const LoweredGraph &graph, const graph::Node &node, const std::vector<int64_t> &whole, StridedView &view) {
  std::vector<int64_t> steps = integers(node, "strides");
  if (steps.empty()) steps.assign(whole.size(), 1);
  std::vector<int64_t> begin;
  // A negative constant counts from the end and is no dimension to evaluate.
  for (const graph::Dim &dim : attribute<graph::Dims>(node, "begin")) {
    if (dim.is_constant()) {
      begin.push_back(dim.constant());
    } else {
      const auto at = dim.evaluate(graph.bindings());
      if (!at.ok()) return false;
      begin.push_back(*at);
    }
  }
  if (begin.size() != whole.size() || steps.size() != whole.size()) return false;
  view.strides = dense_strides(whole);
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    const int64_t at = begin[axis] < 0 ? begin[axis] + whole[axis] : begin[axis];
    view.offset += at * view.strides[axis];
    view.strides[axis] *= steps[axis];
  }
  return true;
}

std::optional<SubmatrixView> submatrix_view(const LoweredGraph &graph, const graph::Node &node) {
  if (node.op != "slice") return std::nullopt;
  const std::vector<int64_t> &all = graph.value(node.inputs[0]).dims, &part = graph.value(node.outputs[0]).dims;
  StridedView view;
  const bool has_all_rows = all.size() == 2 && part[0] == all[0] && view_of(graph, node, all, view);
  if (!has_all_rows || view.strides != dense_strides(all)) return std::nullopt;
  return SubmatrixView{node.inputs[0], view.offset, all[1]};
}

}  // namespace tutti::impl::backend::cpu
