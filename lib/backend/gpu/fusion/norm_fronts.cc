// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/norm_fronts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/kernel/program_maker.h"
#include "backend/gpu/runtime/launch_gate.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

bool is_gradient(std::string_view op) {
  return op == "batch_norm_training_gradient" || op == "batch_norm_gradient_moments";
}

/// Where it is not said, the op's own.
std::optional<double> epsilon_of(const Node &node) {
  const auto found = node.attributes.find("epsilon");
  if (found == node.attributes.end()) return std::nullopt;
  const auto *const epsilon = std::get_if<double>(&found->second);
  return epsilon == nullptr ? std::nullopt : std::optional(*epsilon);
}

bool has_usual_steps(const Epilogue &epilogue) {
  return std::all_of(epilogue.steps, epilogue.steps + epilogue.step_count,
                     [](const EpilogueStep &step) { return is_usual(step); });
}

class FrontFinder {
 public:
  FrontFinder(const LoweredGraph &lowered, const ElementwiseTrees &trees) : lowered_(lowered), trees_(trees) {
    producer_.assign(lowered.values().size(), -1);
    users_.resize(lowered.values().size());
    for (int32_t step = 0; step < lowered.step_count(); ++step) {
      for (const ValueId input : lowered.step(step).inputs) {
        if (input != kNoValue) users_[static_cast<size_t>(input)].push_back(step);
      }
      for (const ValueId output : lowered.step(step).outputs)
        producer_[static_cast<size_t>(output)] = step;
    }
    for (const LoweredPort &port : lowered.outputs())
      users_[static_cast<size_t>(port.value)].push_back(lowered.step_count());
  }

  std::optional<NormFront> find(int32_t norm) const {
    const Node &node = lowered_.step(norm);
    const int32_t root = producer_of(node.inputs[0]);
    const LoweredValue &dy = lowered_.value(node.inputs[0]);
    const bool is_narrow = dy.dtype == DType::f32 || dy.dtype == DType::f16 || dy.dtype == DType::bf16;
    if (root < 0 || !is_narrow || dy.elements == 0 || trees_.is_inner(root) || !fuses(lowered_, lowered_.step(root)))
      return std::nullopt;
    std::vector<int32_t> steps = trees_.tree(root);
    if (steps.empty()) steps = {root};
    for (const ValueId first : operands_of(steps, dy)) {
      std::optional<ProductEpilogue> chain = make_chain(lowered_, first, steps);
      if (!chain || !has_usual_steps(chain->epilogue)) continue;
      NormFront front{norm, steps, first, chain->epilogue, std::move(chain->reads)};
      front.offset = offset_of_relu(front);
      if (front.is_of_relu() || may_come_early(front)) return front;
    }
    return std::nullopt;
  }

 private:
  int32_t producer_of(ValueId value) const { return value == kNoValue ? -1 : producer_[static_cast<size_t>(value)]; }

  /// What the nodes read from outside that lies as dy does.
  std::vector<ValueId> operands_of(const std::vector<int32_t> &steps, const LoweredValue &dy) const {
    std::vector<ValueId> found;
    for (const int32_t step : steps) {
      for (const ValueId input : lowered_.step(step).inputs) {
        const bool is_inside = std::find(steps.begin(), steps.end(), producer_of(input)) != steps.end();
        if (input == kNoValue || is_inside) continue;
        const LoweredValue &value = lowered_.value(input);
        if (value.dtype == dy.dtype && value.dims == dy.dims) found.push_back(input);
      }
    }
    return found;
  }

  /// The offset of the normalisation whose gradient follows, if the front is that of relu of its results alone.
  ValueId offset_of_relu(const NormFront &front) const {
    const Node &node = lowered_.step(front.norm);
    const Epilogue &epilogue = front.epilogue;
    const bool is_relu = epilogue.step_count == 1 && epilogue.steps[0].op == ElementOp::relu_gradient;
    const bool is_read_here = users_[static_cast<size_t>(node.inputs[0])].size() == 1;
    if (node.op != "batch_norm_training_gradient" || !is_relu || !is_read_here || epilogue.steps[0].operand < 0)
      return kNoValue;
    const int32_t relu = producer_without_casts(front.reads[static_cast<size_t>(epilogue.steps[0].operand)]);
    if (relu < 0 || lowered_.step(relu).op != "relu") return kNoValue;
    const int32_t forward = producer_without_casts(lowered_.step(relu).inputs[0]);
    return forward >= 0 && is_gradient_of(node, lowered_.step(forward)) ? lowered_.step(forward).inputs[2] : kNoValue;
  }

  /// Of casts to dtypes that keep what is positive so.
  int32_t producer_without_casts(ValueId value) const {
    int32_t step = producer_of(value);
    while (step >= 0 && lowered_.step(step).op == "cast" && is_wide_or(value, lowered_.step(step).inputs[0])) {
      value = lowered_.step(step).inputs[0];
      step = producer_of(value);
    }
    return step;
  }
  /// Of two values, is one f32 and the other of 16 bits, or are they alike? What was rounded to 16 bits and is not 0 is
  /// not 0 in these 16 bits again.
  bool is_wide_or(ValueId a, ValueId b) const {
    const DType first = lowered_.value(a).dtype, second = lowered_.value(b).dtype;
    const auto is_float = [](DType dtype) {
      return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
    };
    return is_float(first) && is_float(second) && (first == second || first == DType::f32 || second == DType::f32);
  }

  /// With the statistics as they were computed with: f32.
  bool is_gradient_of(const Node &gradient, const Node &forward) const {
    if (forward.op != "batch_norm_training") return false;
    const bool are_same = gradient.inputs[1] == forward.inputs[0] && gradient.inputs[2] == forward.inputs[1] &&
                          gradient.inputs[3] == forward.outputs[1] && gradient.inputs[4] == forward.outputs[2];
    return are_same && epsilon_of(gradient) == epsilon_of(forward) &&
           lowered_.value(forward.outputs[0]).dtype == lowered_.value(gradient.inputs[0]).dtype &&
           lowered_.value(forward.outputs[1]).dtype == DType::f32 &&
           lowered_.value(forward.inputs[2]).dtype == lowered_.value(forward.inputs[1]).dtype;
  }

  /// May the gradient be computed when the front is? All else that it reads has to be there, and stay as it is.
  bool may_come_early(const NormFront &front) const {
    const Node &node = lowered_.step(front.norm);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (producer_of(node.inputs[i]) > front.root()) return false;
    }
    for (int32_t between = front.root(); between < front.norm; ++between) {
      if (lowered_.step(between).op == "all_reduce" || changes_operand(between, node)) return false;
    }
    return true;
  }
  /// Does the step write to an entry that the node reads?
  bool changes_operand(int32_t step, const Node &node) const {
    const Node &change = lowered_.step(step);
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      if (change.op.ends_with("_update")) return change.inputs[0] == input;
      const int32_t read = producer_of(input);
      return change.op == "state_write" && read >= 0 && lowered_.access(read).entry >= 0 &&
             lowered_.access(read).entry == lowered_.access(step).entry;
    });
  }

  const LoweredGraph &lowered_;
  const ElementwiseTrees &trees_;
  std::vector<int32_t> producer_;            // by value: its step
  std::vector<std::vector<int32_t>> users_;  // by value: steps; the step count for results
};

}  // namespace

std::vector<NormFront> find_norm_fronts(const LoweredGraph &lowered, const ElementwiseTrees &trees) {
  const FrontFinder finder(lowered, trees);
  std::vector<NormFront> fronts;
  std::set<int32_t> roots;
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    if (!is_gradient(lowered.step(step).op)) continue;
    std::optional<NormFront> front = finder.find(step);
    if (front && roots.insert(front->root()).second) fronts.push_back(std::move(*front));
  }
  return fronts;
}

KeptFront::KeptFront(const KernelRequest &request) : exists_(request.front != nullptr) {
  if (!exists_) return;
  is_of_relu_ = request.front->is_of_relu();
  first_ = static_cast<int32_t>(request.input_count());
  count_ = static_cast<int32_t>(request.front->reads.size());
  made_ = static_cast<int32_t>(request.node.outputs.size());
  epilogue_ = request.front->epilogue;
}

void KeptFront::put(const Frame &frame, Epilogue &place, BatchNormWork &work) const {
  if (!exists_) return;
  if (is_of_relu_) {
    work.offset = frame.input(first_);
    return;
  }
  place = epilogue_;
  for (int32_t i = 0; i < count_; ++i)
    place.operands[i].data = frame.input(first_ + i);
  work.epilogue = &place;
  work.made_dy = frame.output(made_);
}

Result<KernelCall> make_front_call(const LoweredGraph &lowered, const NormFront &front,
                                   std::vector<BoundedIntegers> &faults, int64_t *scratch_bytes) {
  const Node &node = lowered.step(front.norm);
  KernelRequest request{lowered, node, nullptr, faults};
  request.front = &front;
  Result<Kernel> kernel = find_kernel(node.op)(request);
  if (!kernel.ok()) return kernel.status().wrap(base::concat(describe(node), ": cannot be compiled"));
  *scratch_bytes = request.scratch_bytes;
  KernelCall call;
  call.kernel = std::move(kernel).value();
  call.inputs = node.inputs;
  call.inputs[0] = front.first;
  call.outputs = node.outputs;
  if (front.is_of_relu()) {
    call.inputs.push_back(front.offset);
  } else {
    call.inputs.insert(call.inputs.end(), front.reads.begin(), front.reads.end());
    call.outputs.push_back(lowered.step(front.root()).outputs[0]);
    call.other_steps.push_back(front.norm);
  }
  call.trace_name = node.scope_name.empty() ? node.op : node.scope_name;
  call.kernel_name = base::concat(node.op, "(", front.steps.size() + 1, ")");
  return call;
}

}  // namespace tutti::impl::backend::gpu
