// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/norm_sources.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backend/gpu/library/library.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

bool takes_sums(std::string_view op) { return op == "batch_norm_training" || op == "batch_norm_moments"; }

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
    if (!takes_sums(lowered.step(step).op)) continue;
    const int32_t source = finder.source_of(step);
    if (source >= 0 && is_alone(source)) sources[step] = source;
  }
  return sources;
}

Result<KernelCall> make_norm_call(const LoweredGraph &lowered, int32_t norm, int32_t source,
                                  const ProductEpilogue *tail, Library &library, AlgorithmTrials &trials,
                                  std::vector<BoundedIntegers> &faults, int64_t *scratch_bytes) {
  const Node &node = lowered.step(norm), &convolution = lowered.step(source);
  KernelRequest request{lowered, node, &library, faults, nullptr, tail, &trials};
  request.source = &convolution;
  Result<Kernel> kernel = find_between_launches(library, request);
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

Result<NormOfSums> NormOfSums::make(KernelRequest &request) {
  NormOfSums norm(request);
  BatchNormWork &work = norm.work_;
  const LoweredValue &x = request.input(0);
  work.dtype = x.dtype;
  work.channels = x.dims.back();
  work.rows = work.channels == 0 ? 0 : x.elements / work.channels;
  norm.is_of_moments_ = request.node.op == "batch_norm_moments";
  if (!norm.is_of_moments_) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormTrainingAttributes::from(request.node));
    work.epsilon = attributes.epsilon;
    work.parameter = request.input(1).dtype;
    work.statistics = request.output(1).dtype;
  }
  const size_t reads = request.tail == nullptr ? 0 : request.tail->reads.size();
  norm.image_ = static_cast<int32_t>(request.input_count() + reads);
  norm.result_ = static_cast<int32_t>(request.node.outputs.size());
  norm.sums_at_ = request.reserve_scratch(2 * squares_at(work.channels) * static_cast<int64_t>(sizeof(float)));
  norm.scratch_at_ = request.reserve_scratch(batch_norm_scratch_bytes(work));
  return norm;
}

Status NormOfSums::issue(const Frame &frame) const {
  BatchNormWork issued = work_;
  const float *const sums_of_x = sums(frame), *const squares = sums_of_x + squares_at(work_.channels);
  if (is_of_moments_) {
    issued.first = frame.output(0);
    issued.second = frame.output(1);
    return status_of(launch_batch_norm_moments_of_sums(issued, sums_of_x, squares, frame.stream()),
                     "launching the moments of a batch");
  }
  Epilogue epilogue;
  issued.epilogue = tail_.place(frame, epilogue);
  issued.x = result(frame);
  issued.scale = frame.input(1);
  issued.offset = frame.input(2);
  issued.y = frame.output(0);
  issued.first = frame.output(1);
  issued.second = frame.output(2);
  issued.scratch = frame.scratch_as<char>(scratch_at_);
  return status_of(launch_batch_norm_of_sums(issued, sums_of_x, squares, frame.stream()),
                   "launching a batch normalisation");
}

}  // namespace tutti::impl::backend::gpu
