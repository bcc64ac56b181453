// SPDX-License-Identifier: Apache-2.0
//
// The nodes of a region as multi-output fusion sees them (region_fusion.h): what each is, over which rows and columns
// it works, and who reads what it makes.
#ifndef TUTTI_BACKEND_GPU_FUSION_REGION_NODES_H_
#define TUTTI_BACKEND_GPU_FUSION_REGION_NODES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "backend/lowered_graph.h"
#include "graph/graph.h"

namespace tutti::impl::backend::gpu {

/// Columns are the last axis, rows all others.
struct Space {
  int64_t rows = 1, columns = 1;
  bool operator==(const Space &other) const = default;
};

enum class NodeKind {
  call,         ///< a launch of its own, or several
  elementwise,  ///< each element is made of one of each operand
  narrowed,     ///< elementwise, and slices of columns alone read it: computed for each of these
  view,         ///< elements of its input at other columns, or repeated
  concat,       ///< of inputs of the same width, along the columns
};

class RegionNodes {
 public:
  /// `calls`: nodes that are calls, whatever they could be. Constants are no nodes here.
  RegionNodes(const LoweredGraph &lowered, const graph::Region &region, const std::set<graph::NodeId> &calls);

  const LoweredGraph &lowered() const { return lowered_; }
  const graph::Region &region() const { return region_; }
  size_t count() const { return ids_.size(); }
  graph::NodeId id(size_t at) const { return ids_[at]; }
  const graph::Node &node(size_t at) const { return lowered_.graph().node(ids_[at]); }
  NodeKind kind(size_t at) const { return kinds_[at]; }
  /// Of what is not a call.
  graph::ValueId output(size_t at) const { return node(at).outputs[0]; }
  /// Over which it is computed: that of the result, of a concat that of each part.
  Space space(size_t at) const;
  Space space_of(graph::ValueId value) const;
  /// Of a view: the column of its input where its first one is.
  int64_t first_column(size_t at) const { return first_columns_[at]; }

  /// None for parameters and constants.
  std::optional<size_t> producer(graph::ValueId value) const;
  bool is_result(graph::ValueId value) const { return results_.count(value) != 0; }
  bool is_read_by_call(graph::ValueId value) const;
  /// Has the value to exist for someone who is not in a group?
  bool is_wanted(graph::ValueId value) const { return is_result(value) || is_read_by_call(value); }
  /// Can programs read it?
  bool is_readable(graph::ValueId value) const;
  /// Calls, elementwise nodes, concats and views that are wanted, which read it as it is or through views and what is
  /// narrowed.
  std::vector<size_t> readers(graph::ValueId value) const;

 private:
  NodeKind kind_of(const graph::Node &node, int64_t &first_column) const;
  bool is_elementwise_over(const graph::Node &node) const;
  bool is_concat_of_columns(const graph::Node &node) const;
  /// The first column, if it is a view.
  std::optional<int64_t> view_of(const graph::Node &node) const;
  std::optional<int64_t> slice_of(const graph::Node &node) const;
  /// Is it the operand's column, or the same for all; is it its row, or the same for all?
  bool broadcasts(graph::ValueId operand, graph::ValueId result) const;
  void narrow(size_t at);

  const LoweredGraph &lowered_;
  const graph::Region &region_;
  std::vector<graph::NodeId> ids_;
  std::vector<NodeKind> kinds_;
  std::vector<int64_t> first_columns_;
  std::map<graph::ValueId, size_t> producers_;
  std::map<graph::ValueId, std::vector<size_t>> users_;
  std::set<graph::ValueId> results_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_REGION_NODES_H_
