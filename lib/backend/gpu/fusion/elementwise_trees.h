// SPDX-License-Identifier: Apache-2.0
//
// Which elementwise nodes of a graph are computed in one launch: trees whose inner values nobody else reads. A tree is
// computed at the turn of its root; its inner values are never stored. Trees never span an all_reduce, nor a write to
// the state that they read. The root may be a reduction of the tree, where there is a kernel for that.
#ifndef TUTTI_BACKEND_GPU_FUSION_ELEMENTWISE_TREES_H_
#define TUTTI_BACKEND_GPU_FUSION_ELEMENTWISE_TREES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/lowered_graph.h"

namespace tutti::impl::backend::gpu {

/// Reductions that can be the root of a tree.
bool reduces_trees(std::string_view op);

/// Products: what follows them may be computed while their results are stored.
bool multiplies(std::string_view op);

/// Batch normalisations: what follows them is computed at their turn, as others wait for their statistics.
bool normalizes(std::string_view op);

class ElementwiseTrees {
 public:
  /// `reduced_bytes`: reductions are roots of trees of at least so many bytes; none: they are not.
  static ElementwiseTrees make(const LoweredGraph &lowered, std::optional<int64_t> reduced_bytes = {});

  /// By step: at whose turn it is computed; the step itself unless it is inside a tree.
  const std::vector<int32_t> &turns() const { return turns_; }
  bool is_inner(int32_t step) const { return turns_[static_cast<size_t>(step)] != step; }
  /// Steps of the tree with this root in order, the root last; empty for a node that is alone.
  const std::vector<int32_t> &tree(int32_t root) const { return trees_[static_cast<size_t>(root)]; }
  /// The step of a product that may be computed at the root's turn, or of a batch normalisation at whose turn the tree
  /// may be computed, for nothing outside of the tree (or the node that is alone) reads it; the last of several, -1 for
  /// none.
  int32_t product(int32_t root) const { return products_[static_cast<size_t>(root)]; }
  /// Roots of trees, or nodes that are alone, in order, that read nothing but the step's first result, whoever else
  /// does: each may be computed at the step's turn.
  const std::vector<int32_t> &followers(int32_t step) const { return followers_[static_cast<size_t>(step)]; }

 private:
  std::vector<int32_t> turns_;
  std::vector<std::vector<int32_t>> trees_;
  std::vector<int32_t> products_;
  std::vector<std::vector<int32_t>> followers_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_ELEMENTWISE_TREES_H_
