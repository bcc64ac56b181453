// SPDX-License-Identifier: Apache-2.0
//
// Region ops lowered to the nodes they contain, for graphs that must be flat: every node of a step graph stands in the
// top region, where placements and gradients see it. A pure function.
#ifndef TUTTI_GRAPH_REWRITE_INLINE_REGIONS_H_
#define TUTTI_GRAPH_REWRITE_INLINE_REGIONS_H_

#include <utility>

#include "base/status.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::graph {

/// Without call, fusion and custom_gradient, at any depth; scan and cond stay. Never fails; a Result for use in chains.
inline base::Result<Graph> inline_regions(Graph graph) { return rewrite::inline_regions(std::move(graph)); }

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_REWRITE_INLINE_REGIONS_H_
