// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/elementwise_trees.h"

#include <algorithm>

#include "backend/gpu/elementwise.h"

namespace tutti::impl::backend::gpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

class TreeMaker {
 public:
  explicit TreeMaker(const LoweredGraph &lowered) : lowered_(lowered) {
    const size_t values = lowered.values().size();
    producer_.assign(values, -1);
    users_.resize(values);
    is_state_.assign(values, 0);
    int32_t segment = 0;
    for (int32_t step = 0; step < lowered.step_count(); ++step) {
      const Node &node = lowered.step(step);
      note_values(step, node);
      if (node.op == "all_reduce") ++segment;
      segments_.push_back(segment);
      changes_state_.push_back(node.op == "state_write" || node.op.ends_with("_update") ? 1 : 0);
    }
    for (const LoweredPort &port : lowered.outputs())
      users_[static_cast<size_t>(port.value)].push_back(lowered.step_count());
  }

  /// The tree of a root: producers are taken in, one after the other, as long as everything fits.
  std::vector<int32_t> grow(int32_t root, const std::vector<int32_t> &turns) const {
    std::vector<int32_t> tree{root};
    if (!fuses(lowered_, lowered_.step(root))) return tree;
    for (size_t next = 0; next < tree.size(); ++next) {
      // `tree` grows in front of the root only by what the nodes in it read.
      const std::vector<ValueId> inputs = lowered_.step(tree[next]).inputs;
      for (const ValueId input : inputs) {
        const int32_t producer = input == kNoValue ? -1 : producer_[static_cast<size_t>(input)];
        if (producer < 0 || turns[static_cast<size_t>(producer)] != producer) continue;
        if (std::find(tree.begin(), tree.end(), producer) != tree.end()) continue;
        if (!joins(producer, tree, root)) continue;
        std::vector<int32_t> larger = tree;
        larger.push_back(producer);
        std::vector<int32_t> in_order = larger;
        std::sort(in_order.begin(), in_order.end());
        if (fits_program(lowered_, in_order)) tree = std::move(larger);
      }
    }
    std::sort(tree.begin(), tree.end());
    return tree;
  }

 private:
  void note_values(int32_t step, const Node &node) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) users_[static_cast<size_t>(input)].push_back(step);
    }
    for (const ValueId output : node.outputs) {
      producer_[static_cast<size_t>(output)] = step;
      const bool is_alias = node.op == "reshape" || node.op == "identity" || node.op == "stop_gradient";
      is_state_[static_cast<size_t>(output)] =
          node.op == "state_read" || (is_alias && is_state_[static_cast<size_t>(node.inputs[0])] != 0) ? 1 : 0;
    }
  }

  bool joins(int32_t step, const std::vector<int32_t> &tree, int32_t root) const {
    const Node &node = lowered_.step(step);
    if (!fuses(lowered_, node) || segments_[static_cast<size_t>(step)] != segments_[static_cast<size_t>(root)])
      return false;
    const ValueId value = node.outputs[0];
    if (lowered_.value(value).dims != lowered_.value(lowered_.step(root).outputs[0]).dims) return false;
    for (const int32_t user : users_[static_cast<size_t>(value)]) {
      if (std::find(tree.begin(), tree.end(), user) == tree.end()) return false;
    }
    return !reads_changing_state(node, step, root);
  }

  /// Would the node read state later than something that changes state?
  bool reads_changing_state(const Node &node, int32_t step, int32_t root) const {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return input != kNoValue && is_state_[static_cast<size_t>(input)] != 0;
    });
    return reads &&
           std::find(changes_state_.begin() + step, changes_state_.begin() + root, 1) != changes_state_.begin() + root;
  }

  const LoweredGraph &lowered_;
  std::vector<int32_t> producer_;            // by value: its step
  std::vector<std::vector<int32_t>> users_;  // by value: steps; the step count for results
  std::vector<char> is_state_;               // by value: lies in an arena
  std::vector<int32_t> segments_;            // by step
  std::vector<char> changes_state_;          // by step
};

}  // namespace

ElementwiseTrees ElementwiseTrees::make(const LoweredGraph &lowered) {
  const TreeMaker maker(lowered);
  ElementwiseTrees trees;
  const auto steps = static_cast<size_t>(lowered.step_count());
  trees.trees_.resize(steps);
  for (int32_t step = 0; step < lowered.step_count(); ++step)
    trees.turns_.push_back(step);
  // Roots from the last on, so that a tree is as large as it can be.
  for (int32_t root = lowered.step_count() - 1; root >= 0; --root) {
    if (trees.is_inner(root)) continue;
    std::vector<int32_t> tree = maker.grow(root, trees.turns_);
    if (tree.size() == 1) continue;
    for (const int32_t step : tree)
      trees.turns_[static_cast<size_t>(step)] = root;
    trees.trees_[static_cast<size_t>(root)] = std::move(tree);
  }
  return trees;
}

}  // namespace tutti::impl::backend::gpu
