// SPDX-License-Identifier: Apache-2.0
//
// What a slice takes: a strided block, or columns of a matrix that a kernel reads where the matrix lies, so that the
// slice need not be copied.
#ifndef TUTTI_BACKEND_CPU_SHAPES_STRIDED_VIEW_H_
#define TUTTI_BACKEND_CPU_SHAPES_STRIDED_VIEW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/lowered_graph.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

/// Where a strided block begins, and its strides, in elements of the row-major whole.
struct StridedView {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

/// The block that a slice takes of `whole`, or that its gradient fills; false where that is not known.
bool view_of(const LoweredGraph &graph, const graph::Node &node, const std::vector<int64_t> &whole, StridedView &view);

/// In elements of a row-major matrix.
struct SubmatrixView {
  graph::ValueId source = graph::kNoValue;
  int64_t first = 0;
  int64_t pitch = 0;  ///< from a row to the next
};

/// What a node takes, if it is a slice of whole columns, one beside the other; else nullopt.
std::optional<SubmatrixView> submatrix_view(const LoweredGraph &graph, const graph::Node &node);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SHAPES_STRIDED_VIEW_H_
