// SPDX-License-Identifier: Apache-2.0
//
// How running_sum, running_product and its gradient go through an array: lines along the axis, from their first element
// or from their last.
#ifndef TUTTI_BACKEND_RUNNING_LINES_H_
#define TUTTI_BACKEND_RUNNING_LINES_H_

#include <cstdint>

#include "backend/lowered_graph.h"
#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::backend {

/// An array [outer, length, inner]; a line is along the length, of elements `inner` apart.
struct RunningLines {
  int64_t outer = 1, length = 0, inner = 1;
  bool is_exclusive = false, is_backward = false;

  /// Of a node of such an op.
  static base::Result<RunningLines> of(const LoweredGraph &lowered, const graph::Node &node);

  int64_t lines() const { return outer * inner; }
  /// Where line i begins that walks by step().
  int64_t first(int64_t line) const {
    return (line / inner * length + (is_backward ? length - 1 : 0)) * inner + line % inner;
  }
  int64_t step() const { return is_backward ? -inner : inner; }
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_RUNNING_LINES_H_
