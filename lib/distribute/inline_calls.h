// SPDX-License-Identifier: Apache-2.0
//
// Takes the regions of call, fusion and custom_gradient nodes into the graph around them, once gradients are there, so
// that placements see every op. Internal to this folder; function without state.
#ifndef TUTTI_DISTRIBUTE_INLINE_CALLS_H_
#define TUTTI_DISTRIBUTE_INLINE_CALLS_H_

#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::distribute {

base::Result<graph::Graph> inline_calls(const graph::Graph &graph);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INLINE_CALLS_H_
