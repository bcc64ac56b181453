// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/product_sums.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/gpu/library/library.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

bool is_alias(const Node &node) { return node.op == "reshape" || node.op == "identity" || node.op == "stop_gradient"; }

class SumFinder {
 public:
  explicit SumFinder(const LoweredGraph &lowered) : lowered_(lowered) {
    const size_t values = lowered.values().size();
    users_.resize(values);
    memory_of_.resize(values);
    producer_.assign(values, -1);
    is_state_.assign(values, 0);
    for (int32_t step = 0; step < lowered.step_count(); ++step) {
      const Node &node = lowered.step(step);
      for (const ValueId input : node.inputs) {
        if (input != kNoValue) users_[static_cast<size_t>(input)].push_back(step);
      }
      for (const ValueId output : node.outputs) {
        memory_of_[static_cast<size_t>(output)] = is_alias(node) ? memory_of(node.inputs[0]) : output;
        producer_[static_cast<size_t>(output)] = step;
        is_state_[static_cast<size_t>(output)] = node.op == "state_read" ? 1 : 0;
      }
    }
  }

  /// Whether the sum is one of a factor of the product, and both can be computed at the turn of one: of the earlier,
  /// which makes nobody wait, if they can.
  /// `cast`: the step that widens the product's result and alone reads it, or -1.
  std::optional<ProductSum> match(int32_t product, int32_t cast, int32_t sum) const {
    for (const int32_t factor : {1, 0}) {
      ProductSum found{product, sum, factor, std::min(product, sum), cast};
      if (!adds_up(found)) continue;
      if (moves_to_earlier(std::max(product, sum), found.turn)) return found;
      found.turn = std::max(product, sum);
      const int32_t moved = std::min(product, sum);
      if (moves_to_later(moved, moved == sum ? sum : found.result(), found.turn)) return found;
    }
    return std::nullopt;
  }

  /// Are rows added up? Then there is one result for each element of a row.
  bool is_sum_of_rows(int32_t step) const {
    const Node &node = lowered_.step(step);
    if (node.op != "reduce_sum") return false;
    const auto attributes = graph::ops::ReduceSumAttributes::from(node);
    if (!attributes.ok()) return false;
    const auto rank = static_cast<int64_t>(lowered_.value(node.inputs[0]).dims.size());
    std::vector<char> is_reduced(static_cast<size_t>(rank), attributes->axes.empty() ? 1 : 0);
    for (const int64_t axis : attributes->axes)
      is_reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = 1;
    return rank >= 2 && is_reduced.back() == 0 && std::count(is_reduced.begin(), is_reduced.end(), 1) == rank - 1;
  }

 private:
  ValueId memory_of(ValueId value) const { return memory_of_[static_cast<size_t>(value)]; }

  /// Does the factor lie so that its rows are what the product sums over?
  bool has_rows(const Node &product, int32_t factor) const {
    if (product.op == "conv2d_kernel_gradient") return factor == 1;
    if (product.op != "matmul") return false;
    const auto attributes = graph::ops::MatmulAttributes::from(product);
    if (!attributes.ok() || lowered_.value(product.outputs[0]).dims.size() != 2) return false;
    return factor == 1 ? !attributes->transpose_b : attributes->transpose_a;
  }

  bool adds_up(const ProductSum &wanted) const {
    const Node &product = lowered_.step(wanted.product), &sum = lowered_.step(wanted.sum);
    if (!has_rows(product, wanted.factor)) return false;
    const ValueId factor = product.inputs[static_cast<size_t>(wanted.factor)];
    const LoweredValue &read = lowered_.value(factor), &made = lowered_.value(sum.outputs[0]);
    return memory_of(factor) == memory_of(sum.inputs[0]) && read.dims.back() == made.elements && read.elements > 0 &&
           read.dtype == lowered_.value(sum.inputs[0]).dtype &&
           made.dtype == lowered_.value(lowered_.step(wanted.result()).outputs[0]).dtype;
  }

  /// May the node be computed at an earlier turn? What it reads has to be there.
  bool moves_to_earlier(int32_t step, int32_t turn) const {
    const std::vector<ValueId> &inputs = lowered_.step(step).inputs;
    return may_move(step, turn, step) && std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
             return producer_[static_cast<size_t>(memory_of(input))] < turn;
           });
  }

  /// May it at a later one? What reads its result, which `result` makes, has to come behind.
  bool moves_to_later(int32_t step, int32_t result, int32_t turn) const {
    const std::vector<int32_t> &users = users_[static_cast<size_t>(lowered_.step(result).outputs[0])];
    return may_move(step, step, turn) &&
           std::all_of(users.begin(), users.end(), [&](int32_t user) { return user > turn; });
  }

  /// Whether between the steps nothing is sent, and the node reads nothing that may change.
  bool may_move(int32_t step, int32_t begin, int32_t end) const {
    for (const ValueId input : lowered_.step(step).inputs) {
      if (input == kNoValue || is_state_[static_cast<size_t>(memory_of(input))] != 0) return false;
    }
    for (int32_t between = begin; between < end; ++between) {
      if (lowered_.step(between).op == "all_reduce") return false;
    }
    return true;
  }

  const LoweredGraph &lowered_;
  std::vector<std::vector<int32_t>> users_;  // by value: steps
  std::vector<ValueId> memory_of_;           // by value: the value whose memory it is
  std::vector<int32_t> producer_;            // by value: its step
  std::vector<char> is_state_;               // by value: lies in an arena
};

}  // namespace

std::vector<int32_t> ProductSum::other_steps() const {
  std::vector<int32_t> steps;
  for (const int32_t step : {result(), sum}) {
    if (step != turn) steps.push_back(step);
  }
  return steps;
}

WidenedProducts find_widened_products(const LoweredGraph &lowered, const std::vector<ProductEpilogue> &tails) {
  WidenedProducts found;
  for (const ProductEpilogue &tail : tails) {
    const Node &root = lowered.step(tail.root());
    if (tail.steps.size() == 1 && !tail.is_early && root.op == "cast" &&
        lowered.value(root.outputs[0]).dtype == DType::f32)
      found.emplace(tail.product, tail);
  }
  return found;
}

std::vector<ProductSum> find_product_sums(const LoweredGraph &lowered,
                                          const std::function<bool(int32_t step)> &is_alone,
                                          const WidenedProducts &widened) {
  const SumFinder finder(lowered);
  std::vector<int32_t> products;
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    const std::string_view op = lowered.step(step).op;
    if ((op == "matmul" || op == "conv2d_kernel_gradient") && is_alone(step)) products.push_back(step);
  }
  std::vector<ProductSum> found;
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    if (!finder.is_sum_of_rows(step) || !is_alone(step)) continue;
    for (auto product = products.begin(); product != products.end(); ++product) {
      const auto cast = widened.find(*product);
      const std::optional<ProductSum> match =
          finder.match(*product, cast == widened.end() ? -1 : cast->second.root(), step);
      if (!match) continue;
      found.push_back(*match);
      products.erase(product);
      break;
    }
  }
  return found;
}

Result<KernelCall> make_sum_call(const LoweredGraph &lowered, const ProductSum &sum, const ProductEpilogue *tail,
                                 Library &library, AlgorithmTrials &trials, std::vector<BoundedIntegers> &faults,
                                 int64_t *scratch_bytes) {
  const Node &product = lowered.step(sum.product);
  KernelRequest request{lowered, product, &library, faults};
  request.trials = &trials;
  request.sum = &sum;
  request.tail = tail;
  Result<Kernel> kernel = find_between_launches(library, request);
  if (!kernel.ok()) return kernel.status().wrap(base::concat(describe(product), ": cannot be compiled"));
  *scratch_bytes = request.scratch_bytes;
  KernelCall call;
  call.kernel = std::move(kernel).value();
  call.inputs = product.inputs;
  call.outputs = {lowered.step(sum.result()).outputs[0], lowered.step(sum.sum).outputs[0]};
  call.trace_name = product.scope_name.empty() ? product.op : product.scope_name;  // what takes the time
  call.kernel_name = base::concat(request.kernel_name, sum.cast < 0 ? "(2)" : "(3)");
  call.other_steps = sum.other_steps();
  return call;
}

}  // namespace tutti::impl::backend::gpu
