// SPDX-License-Identifier: Apache-2.0
//
// NodeCloner: copies parts of one graph into a builder, node by node, keeping scope names and stable ids. The tool of
// rewrites, inlining and step graphs.
//
//   NodeCloner cloner(source, builder);
//   cloner.map(old_weight, new_weight);             // this value is already there under another id
//   TUTTI_ASSIGN(ValueId loss, cloner.clone_value(old_loss));   // with everything it needs
//
// The source may be the graph under construction of the same builder. Threads: as the builder.
#ifndef TUTTI_GRAPH_CLONE_H_
#define TUTTI_GRAPH_CLONE_H_

#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "graph/builder.h"
#include "graph/graph.h"

namespace tutti::impl::graph {

class NodeCloner {
 public:
  /// Both are borrowed.
  NodeCloner(const Graph &source, GraphBuilder &destination) : source_(source), destination_(destination) {}

  /// From now on `from` of the source is `to` of the destination.
  void map(ValueId from, ValueId to) { map_[from] = to; }
  bool is_mapped(ValueId from) const { return map_.count(from) != 0; }
  /// kNoValue when it is not mapped.
  ValueId mapped(ValueId from) const;

  /// Copies one node; all its inputs must be mapped. Maps and returns its outputs.
  base::Result<std::vector<ValueId>> clone_node(const Node &node);
  /// Copies whatever of the source's top region `value` needs and is not mapped yet.
  base::Result<ValueId> clone_value(ValueId value);
  /// Copies the nodes of a region into the region under construction, its parameters standing for `arguments`; gives
  /// the results' new values.
  base::Result<std::vector<ValueId>> inline_region(const Region &region, std::span<const ValueId> arguments);

 private:
  const Graph &source_;
  GraphBuilder &destination_;
  std::unordered_map<ValueId, ValueId> map_;
};

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_CLONE_H_
