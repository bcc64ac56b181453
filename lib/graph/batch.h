// SPDX-License-Identifier: Apache-2.0
//
// Batch tracking. A value carries the batch when the symbol "batch" stands in its shape: on one axis, alone or times a
// constant factor (rows merged with faster axes: [batch, 28, c] → [batch · 28, c]). Shapes alone say it; there is no
// flag.
//
// Threads: pure functions.
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
  int64_t factor = 1;
};

BatchAxis batch_axis(const Dims &dims);
inline BatchAxis batch_axis(const ValueInfo &info) { return batch_axis(info.dims); }
/// The axis when the batch is carried, else -1.
int32_t carried_axis(const Dims &dims);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_BATCH_H_
