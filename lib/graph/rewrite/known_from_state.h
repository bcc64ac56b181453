// SPDX-License-Identifier: Apache-2.0
//
// Which values of a forward graph are known as soon as its weights are: constants, state entries named "weight/...",
// and what pure nodes make of them. Threads: a pure function.
#ifndef TUTTI_GRAPH_REWRITE_KNOWN_FROM_STATE_H_
#define TUTTI_GRAPH_REWRITE_KNOWN_FROM_STATE_H_

#include <vector>

#include "graph/graph.h"

namespace tutti::impl::graph::rewrite {

/// By value id; values of inner regions and of symbolic shape count as unknown.
std::vector<char> known_from_state(const Graph &graph);

}  // namespace tutti::impl::graph::rewrite

#endif  // TUTTI_GRAPH_REWRITE_KNOWN_FROM_STATE_H_
