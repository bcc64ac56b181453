// SPDX-License-Identifier: Apache-2.0
#include "backend/running_lines.h"

#include "graph/ops/running.h"

namespace tutti::impl::backend {

base::Result<RunningLines> RunningLines::of(const LoweredGraph &lowered, const graph::Node &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::running_of(node));
  const std::vector<int64_t> &dims = lowered.value(node.inputs[0]).dims;
  const auto axis =
      static_cast<size_t>(attributes.axis < 0 ? attributes.axis + static_cast<int64_t>(dims.size()) : attributes.axis);
  RunningLines lines;
  lines.is_exclusive = attributes.exclusive;
  lines.is_backward = attributes.backward;
  lines.length = dims[axis];
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i < axis) lines.outer *= dims[i];
    if (i > axis) lines.inner *= dims[i];
  }
  return lines;
}

}  // namespace tutti::impl::backend
