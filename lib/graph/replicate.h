// SPDX-License-Identifier: Apache-2.0
//
// Replication: from a graph over the global batch to the graph that each of several contributors (replicas, or logical
// replicas) runs on its own rows.
//
// Every value has a placement:
//   sharded      carries the batch axis: a contributor holds its rows
//   replicated   equal on all contributors
//   partial_*    the true value is the sum (maximum, minimum) of the contributors' values
//   varying      a statistic that was declared per replica: differs, and is not meant to be combined
// It follows from shapes (the symbol "batch"), the op and the placements of its inputs. Ops that contract the batch
// axis give partial values; linear ops keep them; any other use of a partial value goes through one `all_reduce` node,
// shared by all such uses; a maximum or minimum of floats through two, the second for NaNs. batch_norm_training becomes
// moments, one all_reduce and an inference form. What has no meaning for a batch in pieces is refused by op and scoped
// node name.
//
//   TUTTI_ASSIGN(graph::Graph local, graph::replicate(global, {.contributors = 2}));
//
// state_write takes a partial sum as it is (the reader of the entry adds up); a replicated value written to state must
// first be multiplied with run_scalar "first_flag", which itself is partial (1 on one contributor, 0 on the others).
//
// Threads: functions without state.
#ifndef TUTTI_GRAPH_REPLICATE_H_
#define TUTTI_GRAPH_REPLICATE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::graph {

enum class Placement : uint8_t { replicated, sharded, partial_sum, partial_max, partial_min, varying };

std::string_view to_string(Placement placement);
inline bool is_partial(Placement placement) {
  return placement == Placement::partial_sum || placement == Placement::partial_max ||
         placement == Placement::partial_min;
}

/// What one node does to placements.
struct NodePlacement {
  std::vector<Placement> outputs;
  /// Positions of partial inputs whose true value the node needs.
  std::vector<int32_t> reduced_inputs;
};

/// The rule of one node of the top region. INVALID_ARGUMENT naming op and node when it has no meaning on a batch in
/// pieces.
base::Result<NodePlacement> place_node(const Graph &graph, const Node &node, const std::vector<Placement> &placements);

/// Of a batch in pieces, does the node, which has inputs with rows, give the rows of each piece, and nothing else? Of
/// any region.
bool gives_rows(const Graph &graph, const Node &node);

/// Placement of every value of the top region (nodes are not changed; a reduced input counts as replicated for its
/// node). With `several` false nothing is refused: one contributor has the whole batch.
base::Result<std::vector<Placement>> place(const Graph &graph, bool several);

struct ReplicateOptions {
  /// Contributors in all. 1: no all_reduce is inserted and nothing is refused.
  int32_t contributors = 1;
  /// Micro-batches per step. Above 1 a node that needs a sum over the rows of the step in mid-step is refused by name.
  int32_t accumulation = 1;
};

/// The graph for one contributor. Named results and stable ids are kept. The result is an ordinary graph: it
/// serialises, and running it with one contributor gives what `global` gives.
base::Result<Graph> replicate(const Graph &global, const ReplicateOptions &options);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_REPLICATE_H_
