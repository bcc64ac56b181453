// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/norm_sources.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backend/gpu/library.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

/// Convolutions that wait, step by step.
class SourceFinder {
 public:
  explicit SourceFinder(const LoweredGraph &lowered) : lowered_(lowered) {
    producer_.assign(lowered.values().size(), -1);
    first_user_.assign(lowered.values().size(), lowered.step_count());
    for (int32_t step = lowered.step_count() - 1; step >= 0; --step) {
      const Node &node = lowered.step(step);
      for (const ValueId input : node.inputs) {
        if (input != kNoValue) first_user_[static_cast<size_t>(input)] = step;
      }
      for (const ValueId output : node.outputs)
        producer_[static_cast<size_t>(output)] = step;
    }
  }

  /// The step of the convolution, or -1.
  int32_t source_of(int32_t norm) const {
    const ValueId x = lowered_.step(norm).inputs[0];
    const int32_t step = producer_[static_cast<size_t>(x)];
    if (step < 0 || lowered_.step(step).op != "conv2d" || first_user_[static_cast<size_t>(x)] != norm) return -1;
    const std::vector<ValueId> &inputs = lowered_.step(step).inputs;
    const bool has_bias = inputs.size() > 2 && inputs[2] != kNoValue;
    return !has_bias && may_wait(step, norm) ? step : -1;
  }

 private:
  /// Does nothing between the steps send, or change what the convolution may read?
  bool may_wait(int32_t step, int32_t turn) const {
    for (int32_t between = step; between < turn; ++between) {
      const std::string_view op = lowered_.step(between).op;
      if (op == "all_reduce" || op == "state_write" || op.ends_with("_update")) return false;
    }
    return true;
  }

  const LoweredGraph &lowered_;
  std::vector<int32_t> producer_, first_user_;  // by value: steps
};

}  // namespace

std::map<int32_t, int32_t> find_norm_sources(const LoweredGraph &lowered,
                                             const std::function<bool(int32_t step)> &is_alone) {
  const SourceFinder finder(lowered);
  std::map<int32_t, int32_t> sources;
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    if (lowered.step(step).op != "batch_norm_training") continue;
    const int32_t source = finder.source_of(step);
    if (source >= 0 && is_alone(source)) sources[step] = source;
  }
  return sources;
}

Result<KernelCall> make_norm_call(const LoweredGraph &lowered, int32_t norm, int32_t source, const ProductTail *tail,
                                  Library &library, AlgorithmTrials &trials, std::vector<FaultText> &fault_texts,
                                  int64_t *scratch_bytes) {
  const Node &node = lowered.step(norm), &convolution = lowered.step(source);
  KernelRequest request{lowered, node, &library, fault_texts, nullptr, tail, &trials};
  request.source = &convolution;
  Result<Kernel> kernel = library.find(request);
  if (!kernel.ok()) return kernel.status().wrap(base::concat(describe(convolution), ": cannot be compiled"));
  *scratch_bytes = request.scratch_bytes;
  KernelCall call;
  call.kernel = std::move(kernel).value();
  call.inputs = node.inputs;
  call.outputs = node.outputs;
  call.other_steps = {source};
  size_t nodes = 2;
  if (tail != nullptr) {
    call.inputs.insert(call.inputs.end(), tail->reads.begin(), tail->reads.end());
    call.outputs[0] = lowered.step(tail->root()).outputs[0];
    call.other_steps.push_back(tail->root());
    nodes += tail->steps.size();
  }
  call.inputs.insert(call.inputs.end(), convolution.inputs.begin(), convolution.inputs.begin() + 2);
  call.outputs.push_back(convolution.outputs[0]);
  call.trace_name = convolution.scope_name.empty() ? convolution.op : convolution.scope_name;  // what takes the time
  call.kernel_name = base::concat(request.kernel_name, "(", nodes, ")");
  return call;
}

}  // namespace tutti::impl::backend::gpu
