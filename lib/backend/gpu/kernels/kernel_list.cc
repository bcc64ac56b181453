// SPDX-License-Identifier: Apache-2.0
//
// Every op with a kernel, sorted. What is not here is refused when a graph is compiled.
#include <algorithm>
#include <iterator>

#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/gpu/kernel/program_maker.h"
#include "backend/gpu/library/library.h"
#include "base/text.h"

namespace tutti::impl::backend::gpu {

using base::Result;

namespace {

struct KernelEntry {
  std::string_view op;
  KernelFactory factory;
};

/// But for the elementwise ones (elementwise.cc).
constexpr KernelEntry kKernels[] = {
    {"adam_update", make_adam_update},
    {"all_finite", make_all_finite},
    {"argmax", make_arg_reduce},
    {"argmin", make_arg_reduce},
    {"attention", make_attention},
    {"attention_gradient", make_attention_gradient},
    {"avg_pool2d", make_avg_pool2d},
    {"avg_pool2d_gradient", make_avg_pool2d_gradient},
    {"batch_norm_gradient_apply", make_batch_norm_gradient_apply},
    {"batch_norm_gradient_moments", make_batch_norm_gradient_moments},
    {"batch_norm_inference", make_batch_norm_inference},
    {"batch_norm_moments", make_batch_norm_moments},
    {"batch_norm_training", make_batch_norm_training},
    {"batch_norm_training_gradient", make_batch_norm_training_gradient},
    {"broadcast_to", make_broadcast_to},
    {"call", make_call_region},
    {"concat", make_concat},
    {"cond", make_cond},
    {"conv2d", make_conv2d},
    {"conv2d_input_gradient", make_conv2d_input_gradient},
    {"conv2d_kernel_gradient", make_conv2d_kernel_gradient},
    {"custom_gradient", make_call_region},
    {"dropout", make_dropout},
    {"dropout_attention", make_dropout_attention},
    {"dropout_attention_gradient", make_dropout_attention_gradient},
    {"fusion", make_call_region},
    {"gather", make_gather},
    {"gather_gradient", make_gather_gradient},
    {"group_norm", make_group_norm},
    {"group_norm_gradient", make_group_norm_gradient},
    {"in_top_k", make_in_top_k},
    {"interpolate2d", make_interpolate2d},
    {"iota", make_iota},
    {"layer_norm", make_layer_norm},
    {"layer_norm_gradient", make_layer_norm_gradient},
    {"log_softmax", make_softmax},
    {"log_softmax_gradient", make_softmax_gradient},
    {"matmul", make_matmul},
    {"max_pool2d", make_max_pool2d},
    {"max_pool2d_gradient", make_max_pool2d_gradient},
    {"merge_rows", make_merge_rows},
    {"momentum_update", make_momentum_update},
    {"one_hot", make_one_hot},
    {"pad", make_pad},
    {"random_normal", make_random_normal},
    {"random_truncated_normal", make_random_truncated_normal},
    {"random_uniform", make_random_uniform},
    {"reduce_max", make_reduce},
    {"reduce_mean", make_reduce},
    {"reduce_min", make_reduce},
    {"reduce_prod", make_reduce},
    {"reduce_sum", make_reduce},
    {"reverse_axes", make_reverse_axes},
    {"rms_norm", make_rms_norm},
    {"rms_norm_gradient", make_rms_norm_gradient},
    {"row_update", make_row_update},
    {"rows_at", make_rows_at},
    {"run_scalar", make_run_scalar},
    {"running_product", make_running},
    {"running_product_gradient", make_running_product_gradient},
    {"running_sum", make_running},
    {"scan", make_scan},
    {"sgd_update", make_sgd_update},
    {"slice", make_slice},
    {"slice_gradient", make_slice_gradient},
    {"softmax", make_softmax},
    {"softmax_cross_entropy", make_softmax_cross_entropy},
    {"softmax_cross_entropy_gradient", make_softmax_cross_entropy_gradient},
    {"softmax_gradient", make_softmax_gradient},
    {"sparse_softmax_cross_entropy", make_sparse_softmax_cross_entropy},
    {"sparse_softmax_cross_entropy_gradient", make_sparse_softmax_cross_entropy_gradient},
    {"sum_rows", make_sum_rows},
    {"top_k", make_top_k},
    {"top_k_gradient", make_top_k_gradient},
    {"transpose", make_transpose},
};

/// "f32, i64 -> f32": the dtypes of a node, for messages.
std::string signature(const LoweredGraph &lowered, const graph::Node &node) {
  std::vector<std::string_view> inputs, outputs;
  for (const graph::ValueId value : node.inputs)
    inputs.push_back(value == graph::kNoValue ? std::string_view("-") : name(lowered.value(value).dtype));
  for (const graph::ValueId value : node.outputs)
    outputs.push_back(name(lowered.value(value).dtype));
  return base::join(inputs, ", ") + " -> " + base::join(outputs, ", ");
}

bool has_bytes(const LoweredGraph &lowered, const std::vector<graph::ValueId> &values) {
  return std::any_of(values.begin(), values.end(), [&](graph::ValueId value) {
    return value != graph::kNoValue && lowered.value(value).dtype == tensor::DType::bytes;
  });
}

Result<Kernel> find(KernelRequest &request) {
  if (request.library != nullptr) {
    TUTTI_ASSIGN(Kernel kernel, find_between_launches(*request.library, request));
    if (kernel) return kernel;
    request.scratch_bytes = 0;
  }
  const KernelFactory factory = find_kernel(request.node.op);
  if (factory == nullptr || has_bytes(request.lowered, request.node.inputs) ||
      has_bytes(request.lowered, request.node.outputs))
    return base::unimplemented("there is no kernel for op '", request.node.op, "' (",
                               signature(request.lowered, request.node), ")");
  return factory(request);
}

/// An empty kernel where the tail is better left alone: whoever computes the product is not changed for it.
Result<Kernel> find_with_tail(KernelRequest &request) {
  if (request.tail->keeps())
    return request.library == nullptr ? Kernel() : find_between_launches(*request.library, request);
  if (request.library == nullptr) return find_kernel(request.node.op)(request);
  TUTTI_ASSIGN(Kernel kernel, find_between_launches(*request.library, request));
  if (kernel) return kernel;
  KernelRequest plain{request.lowered, request.node, request.library, request.faults};
  plain.trials = request.trials;
  TUTTI_ASSIGN(const Kernel without, find_between_launches(*request.library, plain));
  if (without) return Kernel();
  request.scratch_bytes = 0;
  return find_kernel(request.node.op)(request);
}

}  // namespace

KernelFactory find_kernel(std::string_view op) {
  const auto *const found =
      std::lower_bound(std::begin(kKernels), std::end(kKernels), op,
                       [](const KernelEntry &entry, std::string_view name) { return entry.op < name; });
  if (found != std::end(kKernels) && found->op == op) return found->factory;
  return is_elementwise(op) ? make_elementwise : nullptr;
}

Result<KernelCall> make_call(KernelRequest &request) {
  const graph::Node &node = request.node;
  Result<Kernel> kernel = find(request);
  if (!kernel.ok()) return kernel.status().wrap(base::concat(describe(node), ": cannot be compiled"));
  KernelCall call;
  call.kernel = std::move(kernel).value();
  call.inputs = node.inputs;
  call.outputs = node.outputs;
  call.trace_name = node.scope_name.empty() ? node.op : node.scope_name;
  call.kernel_name = request.kernel_name.empty() ? "gpu" : request.kernel_name;
  call.generated = request.generated;
  call.joinable = request.joinable;
  return call;
}

Result<KernelCall> make_epilogue_call(const LoweredGraph &lowered, const ProductEpilogue &tail, Library *library,
                                      AlgorithmTrials *trials, AlgorithmProbes *probes,
                                      std::vector<BoundedIntegers> &faults, int64_t *scratch_bytes) {
  const graph::Node &product = lowered.step(tail.product), &root = lowered.step(tail.root());
  KernelRequest request{lowered, product, library, faults, nullptr, &tail, trials};
  request.probes = probes;
  Result<Kernel> kernel = find_with_tail(request);
  if (!kernel.ok()) return kernel.status().wrap(base::concat(describe(product), ": cannot be compiled"));
  *scratch_bytes = request.scratch_bytes;
  KernelCall call;
  call.kernel = std::move(kernel).value();
  call.inputs = product.inputs;
  call.inputs.insert(call.inputs.end(), tail.reads.begin(), tail.reads.end());
  call.outputs = root.outputs;
  call.outputs.insert(call.outputs.end(), product.outputs.begin() + 1, product.outputs.end());
  if (tail.keeps()) call.outputs.push_back(lowered.step(tail.kept).outputs[0]);
  if (tail.turn() != tail.root()) call.other_steps = {tail.root()};
  call.trace_name = product.scope_name.empty() ? product.op : product.scope_name;  // what takes the time
  call.kernel_name =
      base::concat(request.kernel_name.empty() ? product.op : request.kernel_name, "(", tail.steps.size() + 1, ")");
  return call;
}

}  // namespace tutti::impl::backend::gpu
