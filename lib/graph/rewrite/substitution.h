// SPDX-License-Identifier: Apache-2.0
//
// What rewrites share: values that are replaced by others, a walk over all regions, and the compaction that drops what
// is no longer used. Rewrites work on a copy of the graph in place and compact it at the end.
//
// Threads: as any value.
#ifndef TUTTI_GRAPH_REWRITE_SUBSTITUTION_H_
#define TUTTI_GRAPH_REWRITE_SUBSTITUTION_H_

#include <functional>
#include <unordered_map>

#include "graph/graph.h"

namespace tutti::impl::graph::rewrite {

class Substitution {
 public:
  /// From now on `from` is `to`; both are values of one region, or `to` is visible wherever `from` is.
  void replace(ValueId from, ValueId to) { map_[from] = to; }
  /// What a value has become, through any number of replacements.
  ValueId resolve(ValueId value) const;
  bool empty() const { return map_.empty(); }
  /// Rewrites inputs and results of the whole graph.
  void apply(Graph &graph) const;

 private:
  std::unordered_map<ValueId, ValueId> map_;
};

/// Calls `visit` for every region, inner ones before the one that contains them. `visit` must not add nodes.
void for_each_region(Graph &graph, const std::function<void(Region &)> &visit);

/// The same graph without nodes and values that no region mentions, numbered in execution order.
Graph compact(const Graph &graph);

}  // namespace tutti::impl::graph::rewrite

#endif  // TUTTI_GRAPH_REWRITE_SUBSTITUTION_H_
