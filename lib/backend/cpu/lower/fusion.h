// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a graph are computed, and which of them together. A group is one or more nodes that one kernel
// computes; values between nodes of a group are never stored.
//
//   dense            matmul [+ add of a bias] [+ relu], or matmul + relu_gradient, or [slice of columns +] matmul + the
//                    update of the variable whose gradient it is
//   convolution      conv2d [+ add of a bias] [+ add of another image] [+ relu]
//   batch_norm       batch_norm_training or batch_norm_inference [+ add] [+ relu]
//   norm_gradient    relu_gradient + batch_norm_training_gradient, or relu_gradient + batch_norm_gradient_apply: then
//                    batch_norm_gradient_moments, which comes before, makes the same mask
//   pool_gradient    max_pool2d_gradient + relu_gradient
//   update           adds of gradients of several contributors, as they lie in state + the update of their variable
//   kernel_gradient  conv2d_kernel_gradient + reduce_sum that is the bias's gradient
//   sum_of_squares   [mul by a constant scalar +] square + reduce_sum over all elements, or square + reduce_sum of rows
//                    or columns, but for level `invariant`
//   concat           slices that nothing else reads + their concat
//   elementwise      any tree of elementwise f32 and boolean nodes, with slices of columns and broadcasts that nothing
//                    else reads
//   single           anything else
//
// Nodes that nobody needs belong to no group. Groups never span an all_reduce, nor a state_write that would change what
// they read. Immutable once made.
#ifndef TUTTI_BACKEND_CPU_LOWER_FUSION_H_
#define TUTTI_BACKEND_CPU_LOWER_FUSION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/lowered_graph.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

enum class GroupKind : uint8_t {
  single,
  elementwise,
  dense,
  convolution,
  batch_norm,
  norm_gradient,
  pool_gradient,
  kernel_gradient,
  update,
  sum_of_squares,
  concat,
};

struct Group {
  GroupKind kind = GroupKind::single;
  std::vector<int32_t> steps;  ///< in execution order
  int32_t emit_at = 0;         ///< the step at whose turn the group is computed
};

class FusionPlan {
 public:
  static FusionPlan make(const LoweredGraph &graph);

  /// Null for a node that nobody needs.
  const Group *group_of(int32_t step) const {
    const int32_t index = group_index_[static_cast<size_t>(step)];
    return index < 0 ? nullptr : &groups_[static_cast<size_t>(index)];
  }
  /// The step at whose turn a node is computed.
  int32_t position(int32_t step) const { return group_of(step)->emit_at; }
  /// Steps of the needed nodes that use a value, one for each use.
  const std::vector<int32_t> &uses(graph::ValueId id) const { return uses_[static_cast<size_t>(id)]; }
  /// Number of uses, a named result counting as one.
  int32_t use_count(graph::ValueId id) const {
    return static_cast<int32_t>(uses(id).size()) + is_result_[static_cast<size_t>(id)];
  }
  bool is_result(graph::ValueId id) const { return is_result_[static_cast<size_t>(id)] != 0; }
  /// Step of the node that defines a value, -1 for none.
  int32_t producer(graph::ValueId id) const { return producer_[static_cast<size_t>(id)]; }
  /// The relu_gradient that makes a value and waits in a norm_gradient group, so that whoever reads the value earlier
  /// has to mask what it is made of; -1 if there is none.
  int32_t waiting_mask(graph::ValueId id) const;
  /// Is a value defined and used inside one group only, so that it is never stored?
  bool is_internal(graph::ValueId id) const;

 private:
  friend class Fuser;
  std::vector<Group> groups_;
  std::vector<int32_t> group_index_;
  std::vector<std::vector<int32_t>> uses_;
  std::vector<int32_t> is_result_;
  std::vector<int32_t> producer_;
};

/// Is a node of an elementwise group one whose input is read in its place: a slice, or a broadcast?
bool is_read_in_place(const graph::Node &node);

/// Can run_elementwise compute this node (apart from its shapes)?
bool is_elementwise(const LoweredGraph &graph, const graph::Node &node);

/// `factor` times a value.
struct ScaledValue {
  graph::ValueId value = graph::kNoValue;
  float factor = 1;
};
/// What a node computes if it multiplies an f32 value by a constant of one element.
std::optional<ScaledValue> scaled_value(const LoweredGraph &graph, const FusionPlan &plan, const graph::Node &node);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_FUSION_H_
