// SPDX-License-Identifier: Apache-2.0
//
// Elementwise graphs on components of one byte per element (images): each result has only 256 possible values, so it is
// a table, made by running the graph itself on all of them; exactly the bits that the graph gives, for any chain of
// elementwise ops, on any backend. Looking up costs about as much as the copy into the batch that happens anyway.
//
// Threads: tables are immutable.
#ifndef TUTTI_DATA_GRAPH_BYTE_TABLE_H_
#define TUTTI_DATA_GRAPH_BYTE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "data/graph/graph_plan.h"
#include "data/graph/graph_runner.h"

namespace tutti::impl::data {

/// One result of a graph as a function of one component.
struct ByteTable {
  int32_t input = -1;  ///< position in GraphPlan::inputs
  int64_t value_bytes = 0;
  std::vector<std::byte> values;  ///< 256 of them

  /// Looks up `count` bytes.
  void apply(const std::byte *input_bytes, int64_t count, std::byte *output) const;
};

/// One table for each result of the plan's graph, or none at all when some result is no function of single bytes.
base::Result<std::vector<ByteTable>> make_byte_tables(const GraphPlan &plan, GraphRunner &runner);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_BYTE_TABLE_H_
