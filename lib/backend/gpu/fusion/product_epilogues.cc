// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/product_epilogues.h"

#include <algorithm>
#include <map>

#include "backend/gpu/kernel/program_maker.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

bool is_narrow_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

class TailMaker {
 public:
  TailMaker(const LoweredGraph &lowered, int32_t product, std::vector<int32_t> steps, int32_t kept = -1)
      : lowered_(lowered) {
    begin_with(lowered.step(product).outputs[0], std::move(steps));
    tail_.product = product;
    tail_.kept = kept;
    tail_.is_early = normalizes(lowered.step(product).op);
  }

  /// Of a value in memory.
  static TailMaker of_value(const LoweredGraph &lowered, ValueId first, std::vector<int32_t> steps) {
    TailMaker maker(lowered);
    maker.begin_with(first, std::move(steps));
    return maker;
  }

  /// Whether the nodes are a chain that fits.
  bool make() {
    const bool is_made = tail_.product >= 0;
    if (!is_narrow_float(lowered_.value(value_).dtype) || (is_made && !round(value_))) return false;
    note_kept(tail_.product);
    for (const int32_t step : tail_.steps) {
      const Node &node = lowered_.step(step);
      if (!widens(node) && !add(node, step == tail_.root())) return false;
      note_kept(step);
    }
    tail_.epilogue.dtype = lowered_.value(value_).dtype;
    return true;
  }

  ProductEpilogue take() { return std::move(tail_); }

 private:
  explicit TailMaker(const LoweredGraph &lowered) : lowered_(lowered) {}

  void begin_with(ValueId first, std::vector<int32_t> steps) {
    first_ = value_ = first;
    tail_.steps = std::move(steps);
  }

  void note_kept(int32_t step) {
    if (step == tail_.kept) tail_.kept_after = tail_.epilogue.step_count;
  }

  /// A cast to f32 of what comes from outside is part of reading it.
  bool widens(const Node &node) {
    if (node.op != "cast" || is_inside(node.inputs[0])) return false;
    const DType from = lowered_.value(node.inputs[0]).dtype;
    if (!is_narrow_float(from) || lowered_.value(node.outputs[0]).dtype != DType::f32) return false;
    widened_[node.outputs[0]] = node.inputs[0];
    return true;
  }

  /// Is it a result of the product or the epilogue?
  bool is_inside(ValueId value) const {
    return value == first_ || std::any_of(tail_.steps.begin(), tail_.steps.end(),
                                          [&](int32_t step) { return lowered_.step(step).outputs[0] == value; });
  }

  bool add(const Node &node, bool is_root) {
    ValueId other = kNoValue;
    size_t at = node.inputs.size();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == value_) {
        if (at != node.inputs.size()) return false;
        at = i;
      } else if (other == kNoValue) {
        other = node.inputs[i];
      } else {
        return false;
      }
    }
    const DType dtype = lowered_.value(node.outputs[0]).dtype;
    if (at == node.inputs.size() || !is_narrow_float(dtype)) return false;
    if (node.op != "cast" && !add_step(node, other, at == 1)) return false;
    value_ = node.outputs[0];
    return is_root || round(value_);
  }

  bool add_step(const Node &node, ValueId other, bool is_reversed) {
    const Result<ElementInstruction> instruction = element_instruction(node);
    if (!instruction.ok() || !has_epilogue(instruction->op)) return false;
    int32_t operand = -1;
    if (other != kNoValue && !add_operand(other, operand)) return false;
    return push({instruction->op, operand, is_reversed ? 1 : 0, static_cast<float>(instruction->number)});
  }

  bool push(const EpilogueStep &step) {
    Epilogue &epilogue = tail_.epilogue;
    if (epilogue.step_count == Epilogue::kSteps) return false;
    epilogue.steps[epilogue.step_count++] = step;
    return true;
  }

  /// A value of 16 bits is rounded although it is not stored: with and without the epilogue results are the same.
  bool round(ValueId value) {
    const DType dtype = lowered_.value(value).dtype;
    if (dtype == DType::f32) return true;
    return push({dtype == DType::f16 ? ElementOp::to_f16 : ElementOp::to_bf16, -1, 0, 0});
  }

  bool add_operand(ValueId value, int32_t &operand) {
    const auto narrow = widened_.find(value);
    if (narrow != widened_.end()) value = narrow->second;
    if (is_inside(value)) return false;  // is not stored, or while this is read
    const auto known = std::find(tail_.reads.begin(), tail_.reads.end(), value);
    operand = static_cast<int32_t>(known - tail_.reads.begin());
    if (known != tail_.reads.end()) return true;
    EpilogueAccess access;
    const LoweredValue &info = lowered_.value(value);
    if (!is_narrow_float(info.dtype) || operand == Epilogue::kOperands || !find_access(info, access)) return false;
    tail_.epilogue.operands[operand] = {nullptr, info.dtype, access, 0};
    tail_.reads.push_back(value);
    return true;
  }

  bool find_access(const LoweredValue &operand, EpilogueAccess &access) const {
    const LoweredValue &result = lowered_.value(value_);
    access = operand.elements == result.elements ? EpilogueAccess::dense
             : operand.elements == 1             ? EpilogueAccess::scalar
                                                 : EpilogueAccess::column;
    return access != EpilogueAccess::column ||
           (operand.dims.back() == result.dims.back() && operand.elements == operand.dims.back());
  }

  const LoweredGraph &lowered_;
  ProductEpilogue tail_;
  ValueId first_ = kNoValue;            // of the product, or in memory
  ValueId value_ = kNoValue;            // made so far
  std::map<ValueId, ValueId> widened_;  // what is cast to f32, and of what
};

/// Of a node that is alone: it.
std::vector<int32_t> tree_of(const ElementwiseTrees &trees, int32_t root) {
  const std::vector<int32_t> &tree = trees.tree(root);
  return tree.empty() ? std::vector<int32_t>{root} : tree;
}

}  // namespace

KeptEpilogue::KeptEpilogue(const KernelRequest &request) : exists_(request.tail != nullptr) {
  if (!exists_) return;
  first_ = static_cast<int32_t>(request.input_count());
  count_ = static_cast<int32_t>(request.tail->reads.size());
  epilogue_ = request.tail->epilogue;
}

const Epilogue *KeptEpilogue::place(const Frame &frame, Epilogue &place) const {
  if (!exists_) return nullptr;
  place = epilogue_;
  for (int32_t i = 0; i < count_; ++i)
    place.operands[i].data = frame.input(first_ + i);
  return &place;
}

std::vector<ProductEpilogue> find_product_epilogues(const LoweredGraph &lowered, const ElementwiseTrees &trees) {
  std::vector<ProductEpilogue> tails;
  for (int32_t root = 0; root < lowered.step_count(); ++root) {
    const int32_t product = trees.product(root);
    if (product < 0) continue;
    TailMaker maker(lowered, product, tree_of(trees, root));
    if (maker.make()) tails.push_back(maker.take());
  }
  return tails;
}

std::optional<ProductEpilogue> make_chain(const LoweredGraph &lowered, ValueId first, std::vector<int32_t> steps) {
  TailMaker maker = TailMaker::of_value(lowered, first, std::move(steps));
  return maker.make() ? std::optional(maker.take()) : std::nullopt;
}

std::vector<ProductEpilogue> find_keeping_epilogues(const LoweredGraph &lowered, const ElementwiseTrees &trees,
                                                    const std::vector<ProductEpilogue> &tails) {
  std::vector<ProductEpilogue> keeping;
  const auto add = [&](int32_t product, const std::vector<int32_t> &steps, int32_t kept) {
    for (const int32_t root : trees.followers(kept)) {
      std::vector<int32_t> longer = steps;
      const std::vector<int32_t> behind = tree_of(trees, root);
      longer.insert(longer.end(), behind.begin(), behind.end());
      TailMaker maker(lowered, product, std::move(longer), kept);
      if (maker.make()) keeping.push_back(maker.take());
    }
  };
  std::vector<char> has_tail(static_cast<size_t>(lowered.step_count()), 0);
  for (const ProductEpilogue &tail : tails) {
    has_tail[static_cast<size_t>(tail.product)] = 1;
    if (!tail.is_early) add(tail.product, tail.steps, tail.root());
  }
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    if (multiplies(lowered.step(step).op) && has_tail[static_cast<size_t>(step)] == 0) add(step, {}, step);
  }
  return keeping;
}

}  // namespace tutti::impl::backend::gpu
