// SPDX-License-Identifier: Apache-2.0
//
// Batch tracking. A value carries the batch when the symbol "batch" stands in its shape: on one axis, alone or times a
// factor (rows merged with faster axes: [batch, 28, c] → [batch · 28, c], and [batch, unknown, c] → [batch · unknown,
// c]). Shapes alone say it; there is no flag.
//
// Threads: pure functions, but for positions_of, which adds to a graph.
#ifndef TUTTI_GRAPH_BATCH_H_
#define TUTTI_GRAPH_BATCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::graph {

struct BatchAxis {
  enum class Kind {
    none,     // the symbol does not occur
    carried,  // on one axis as factor · batch
    mixed,    // on several axes, or inside another expression: cannot be split by rows
  };
  Kind kind = Kind::none;
  int32_t axis = -1;
  Dim factor = 1;  // does not mention the batch
};

BatchAxis batch_axis(const Dims &dims);
inline BatchAxis batch_axis(const ValueInfo &info) { return batch_axis(info.dims); }
/// The axis when the batch is carried, else -1.
int32_t carried_axis(const Dims &dims);

class GraphBuilder;
/// A number of rows times the factor, which only a run may tell.
ValueId positions_of(GraphBuilder &builder, ValueId rows, const Dim &factor);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_BATCH_H_
