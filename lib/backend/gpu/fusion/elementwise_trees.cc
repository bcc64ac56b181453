// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/elementwise_trees.h"

#include <algorithm>

#include "backend/gpu/kernel/program_maker.h"

namespace tutti::impl::backend::gpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

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

  /// The tree of a root: producers are taken in, one after the other, as long as everything fits. It is computed at
  /// `turn`.
  std::vector<int32_t> grow(int32_t root, int32_t turn, const std::vector<int32_t> &turns, ProgramResult result) const {
    std::vector<int32_t> tree{root};
    if (!fuses(lowered_, lowered_.step(root))) return tree;
    for (size_t next = 0; next < tree.size(); ++next) {
      // `tree` grows in front of the root only by what the nodes in it read.
      const std::vector<ValueId> inputs = lowered_.step(tree[next]).inputs;
      for (const ValueId input : inputs) {
        const int32_t producer = input == kNoValue ? -1 : producer_[static_cast<size_t>(input)];
        if (producer < 0 || turns[static_cast<size_t>(producer)] != producer) continue;
        if (std::find(tree.begin(), tree.end(), producer) != tree.end()) continue;
        if (!joins(producer, tree, root, turn)) continue;
        std::vector<int32_t> larger = tree;
        larger.push_back(producer);
        std::vector<int32_t> in_order = larger;
        std::sort(in_order.begin(), in_order.end());
        if (make_tree_program(lowered_, in_order, result).ok()) tree = std::move(larger);
      }
    }
    std::sort(tree.begin(), tree.end());
    return tree;
  }

  /// A reduction with the tree that it reduces, if nobody else reads that; else empty.
  std::vector<int32_t> grow_reduction(int32_t root, const std::vector<int32_t> &turns, int64_t least_bytes) const {
    const Node &node = lowered_.step(root);
    if (!reduces_trees(node.op)) return {};
    const LoweredValue &value = lowered_.value(node.inputs[0]);
    const int32_t producer = producer_[static_cast<size_t>(node.inputs[0])];
    const bool is_float = value.dtype == DType::f32 || value.dtype == DType::f16 || value.dtype == DType::bf16;
    if (!is_float || producer < 0 || turns[static_cast<size_t>(producer)] != producer) return {};
    if (value.bytes == 0 || value.bytes < least_bytes) return {};
    if (!joins(producer, {root}, producer, root) ||
        segments_[static_cast<size_t>(producer)] != segments_[static_cast<size_t>(root)])
      return {};
    const int32_t alone[] = {producer};
    if (!make_tree_program(lowered_, alone, ProgramResult::consumed).ok()) return {};
    std::vector<int32_t> tree = grow(producer, root, turns, ProgramResult::consumed);
    tree.push_back(root);
    return tree;
  }

  /// The last product that only the tree reads; -1 for none.
  int32_t product_of(int32_t root, const std::vector<int32_t> &tree) const {
    int32_t found = -1;
    const bool writes = is_written(lowered_.step(root).outputs.empty() ? kNoValue : lowered_.step(root).outputs[0]);
    for (const int32_t step : tree) {
      if (!fuses(lowered_, lowered_.step(step))) continue;
      for (const ValueId input : lowered_.step(step).inputs) {
        const int32_t producer = input == kNoValue ? -1 : producer_[static_cast<size_t>(input)];
        if (producer <= found) continue;
        const Node &node = lowered_.step(producer);
        // Every block reads all of a factor: an entry cannot be written meanwhile.
        const bool is_product_of_tree =
            multiplies(node.op) && !(writes && reads_state(node)) && moves(producer, tree, root, root);
        if (is_product_of_tree || (normalizes(node.op) && !writes && is_followed(producer, tree, root)))
          found = producer;
      }
    }
    return found;
  }

  /// The step at whose turn the tree may be computed, for it reads nothing but the first result of that; -1 for none.
  int32_t source_of(int32_t root, const std::vector<int32_t> &tree) const {
    const Node &last = lowered_.step(root);
    // An entry cannot be written while all of it is read.
    if (!fuses(lowered_, last) || is_written(last.outputs[0])) return -1;
    ValueId source = kNoValue;
    for (const int32_t step : tree) {
      for (const ValueId input : lowered_.step(step).inputs) {
        const int32_t producer = input == kNoValue ? -1 : producer_[static_cast<size_t>(input)];
        if (producer < 0) return -1;
        if (std::find(tree.begin(), tree.end(), producer) != tree.end() || input == source) continue;
        if (source != kNoValue || input != lowered_.step(producer).outputs[0]) return -1;
        source = input;
      }
    }
    if (source == kNoValue || lowered_.value(source).dims != lowered_.value(last.outputs[0]).dims) return -1;
    const int32_t producer = producer_[static_cast<size_t>(source)];
    return segments_[static_cast<size_t>(producer)] == segments_[static_cast<size_t>(root)] ? producer : -1;
  }

 private:
  static bool is_alias(const Node &node) {
    return node.op == "reshape" || node.op == "identity" || node.op == "stop_gradient";
  }

  bool reads_state(const Node &node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId input) { return input != kNoValue && is_state_[static_cast<size_t>(input)] != 0; });
  }

  /// Does the value go to state as it is?
  bool is_written(ValueId value) const {
    if (value == kNoValue) return false;
    const std::vector<int32_t> &users = users_[static_cast<size_t>(value)];
    return std::any_of(users.begin(), users.end(), [&](int32_t user) {
      if (user == lowered_.step_count()) return false;
      const Node &node = lowered_.step(user);
      return node.op == "state_write" || (is_alias(node) && is_written(node.outputs[0]));
    });
  }

  void note_values(int32_t step, const Node &node) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) users_[static_cast<size_t>(input)].push_back(step);
    }
    for (const ValueId output : node.outputs) {
      producer_[static_cast<size_t>(output)] = step;
      is_state_[static_cast<size_t>(output)] =
          node.op == "state_read" || (is_alias(node) && is_state_[static_cast<size_t>(node.inputs[0])] != 0) ? 1 : 0;
    }
  }

  /// Inside a tree nobody else may read the value.
  bool joins(int32_t step, const std::vector<int32_t> &tree, int32_t root, int32_t turn) const {
    return fuses(lowered_, lowered_.step(step)) && moves(step, tree, root, turn);
  }

  /// May the node be computed at `turn`, as far as its readers and its operands go?
  bool moves(int32_t step, const std::vector<int32_t> &tree, int32_t root, int32_t turn) const {
    return is_between(step, tree, root) && !reads_changing_state(lowered_.step(step), step, turn);
  }

  /// Does only the tree read the node's first result, which is as large as the root's?
  bool is_between(int32_t step, const std::vector<int32_t> &tree, int32_t root) const {
    const Node &node = lowered_.step(step);
    if (segments_[static_cast<size_t>(step)] != segments_[static_cast<size_t>(root)]) return false;
    const ValueId value = node.outputs[0];
    if (lowered_.value(value).dims != lowered_.value(lowered_.step(root).outputs[0]).dims) return false;
    for (const int32_t user : users_[static_cast<size_t>(value)]) {
      if (std::find(tree.begin(), tree.end(), user) == tree.end()) return false;
    }
    return true;
  }

  /// May the tree be computed at the turn of the node, which only it reads? All else that it reads has to be there.
  bool is_followed(int32_t step, const std::vector<int32_t> &tree, int32_t root) const {
    if (!is_between(step, tree, root)) return false;
    for (const int32_t inner : tree) {
      for (const ValueId input : lowered_.step(inner).inputs) {
        const int32_t producer = input == kNoValue ? -1 : producer_[static_cast<size_t>(input)];
        const bool is_inside = std::find(tree.begin(), tree.end(), producer) != tree.end();
        if (is_inside || producer == step || producer < 0) continue;
        if (producer > step || is_state_[static_cast<size_t>(input)] != 0) return false;
      }
    }
    return true;
  }

  /// Would the node read state later than something that changes state?
  bool reads_changing_state(const Node &node, int32_t step, int32_t turn) const {
    return reads_state(node) &&
           std::find(changes_state_.begin() + step, changes_state_.begin() + turn, 1) != changes_state_.begin() + turn;
  }

  const LoweredGraph &lowered_;
  std::vector<int32_t> producer_;            // by value: its step
  std::vector<std::vector<int32_t>> users_;  // by value: steps; the step count for results
  std::vector<char> is_state_;               // by value: lies in an arena
  std::vector<int32_t> segments_;            // by step
  std::vector<char> changes_state_;          // by step
};

}  // namespace

bool reduces_trees(std::string_view op) {
  return op == "reduce_sum" || op == "reduce_mean" || op == "reduce_max" || op == "reduce_min";
}

bool multiplies(std::string_view op) { return op == "matmul" || op == "conv2d" || op == "conv2d_input_gradient"; }

bool normalizes(std::string_view op) { return op == "batch_norm_training" || op == "batch_norm_inference"; }

ElementwiseTrees ElementwiseTrees::make(const LoweredGraph &lowered, std::optional<int64_t> reduced_bytes) {
  const TreeMaker maker(lowered);
  ElementwiseTrees trees;
  const auto steps = static_cast<size_t>(lowered.step_count());
  trees.trees_.resize(steps);
  trees.products_.assign(steps, -1);
  trees.followers_.resize(steps);
  for (int32_t step = 0; step < lowered.step_count(); ++step)
    trees.turns_.push_back(step);
  // Roots from the last on, so that a tree is as large as it can be.
  for (int32_t root = lowered.step_count() - 1; root >= 0; --root) {
    if (trees.is_inner(root)) continue;
    std::vector<int32_t> tree = maker.grow(root, root, trees.turns_, ProgramResult::stored);
    trees.products_[static_cast<size_t>(root)] = maker.product_of(root, tree);
    if (const int32_t followed = maker.source_of(root, tree); followed >= 0) {
      std::vector<int32_t> &followers = trees.followers_[static_cast<size_t>(followed)];
      followers.insert(followers.begin(), root);
    }
    if (tree.size() == 1 && reduced_bytes.has_value()) tree = maker.grow_reduction(root, trees.turns_, *reduced_bytes);
    if (tree.size() <= 1) continue;
    for (const int32_t step : tree)
      trees.turns_[static_cast<size_t>(step)] = root;
    trees.trees_[static_cast<size_t>(root)] = std::move(tree);
  }
  return trees;
}

}  // namespace tutti::impl::backend::gpu
