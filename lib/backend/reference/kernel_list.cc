// SPDX-License-Identifier: Apache-2.0
//
// Every op with a kernel, sorted. What is not here is refused when a graph is compiled.
#include <algorithm>
#include <iterator>

#include "backend/reference/kernels.h"

namespace tutti::impl::backend::reference {
namespace {

struct KernelEntry {
  std::string_view op;
  KernelFactory factory;
};

constexpr KernelEntry kKernels[] = {
    {"abs", make_unary},
    {"adam_update", make_adam_update},
    {"add", make_binary},
    {"all_finite", make_all_finite},
    {"arc_cosine", make_unary},
    {"arc_sine", make_unary},
    {"arc_tangent", make_unary},
    {"arc_tangent2", make_binary},
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
    {"cast", make_cast},
    {"ceil", make_unary},
    {"concat", make_concat},
    {"cond", make_cond},
    {"conv2d", make_conv2d},
    {"conv2d_input_gradient", make_conv2d_input_gradient},
    {"conv2d_kernel_gradient", make_conv2d_kernel_gradient},
    {"cos", make_unary},
    {"custom_gradient", make_call_region},
    {"div", make_binary},
    {"dropout", make_dropout},
    {"dropout_attention", make_dropout_attention},
    {"dropout_attention_gradient", make_dropout_attention_gradient},
    {"elu", make_unary},
    {"equal", make_binary},
    {"erf", make_unary},
    {"exp", make_unary},
    {"expm1", make_unary},
    {"floor", make_unary},
    {"floor_divide", make_binary},
    {"fusion", make_call_region},
    {"gather", make_gather},
    {"gather_gradient", make_gather_gradient},
    {"gelu", make_unary},
    {"gelu_gradient", make_gelu_gradient},
    {"greater", make_binary},
    {"greater_equal", make_binary},
    {"group_norm", make_group_norm},
    {"group_norm_gradient", make_group_norm_gradient},
    {"identity", make_unary},
    {"in_top_k", make_in_top_k},
    {"interpolate2d", make_interpolate2d},
    {"iota", make_iota},
    {"is_finite", make_is_finite},
    {"layer_norm", make_layer_norm},
    {"layer_norm_gradient", make_layer_norm_gradient},
    {"leaky_relu", make_unary},
    {"less", make_binary},
    {"less_equal", make_binary},
    {"log", make_unary},
    {"log1p", make_unary},
    {"log_softmax", make_softmax},
    {"log_softmax_gradient", make_softmax_gradient},
    {"logical_and", make_binary},
    {"logical_not", make_logical_not},
    {"logical_or", make_binary},
    {"logical_xor", make_binary},
    {"matmul", make_matmul},
    {"max_pool2d", make_max_pool2d},
    {"max_pool2d_gradient", make_max_pool2d_gradient},
    {"maximum", make_binary},
    {"merge_rows", make_merge_rows},
    {"minimum", make_binary},
    {"mod", make_binary},
    {"momentum_update", make_momentum_update},
    {"mul", make_binary},
    {"neg", make_unary},
    {"not_equal", make_binary},
    {"one_hot", make_one_hot},
    {"pad", make_pad},
    {"pow", make_binary},
    {"random_normal", make_random_normal},
    {"random_truncated_normal", make_random_normal},
    {"random_uniform", make_random_uniform},
    {"reciprocal", make_unary},
    {"reduce_max", make_reduce},
    {"reduce_mean", make_reduce},
    {"reduce_min", make_reduce},
    {"reduce_prod", make_reduce},
    {"reduce_sum", make_reduce},
    {"relu", make_unary},
    {"relu_gradient", make_binary},
    {"reshape", make_reshape},
    {"reverse_axes", make_reverse_axes},
    {"rms_norm", make_rms_norm},
    {"rms_norm_gradient", make_rms_norm_gradient},
    {"round", make_unary},
    {"row_update", make_row_update},
    {"rows_at", make_rows_at},
    {"rsqrt", make_unary},
    {"run_scalar", make_run_scalar},
    {"running_product", make_running},
    {"running_product_gradient", make_running_product_gradient},
    {"running_sum", make_running},
    {"scan", make_scan},
    {"select", make_select},
    {"sgd_update", make_sgd_update},
    {"sigmoid", make_unary},
    {"sigmoid_cross_entropy", make_sigmoid_cross_entropy},
    {"sigmoid_gradient", make_binary},
    {"sign", make_unary},
    {"silu", make_unary},
    {"sin", make_unary},
    {"slice", make_slice},
    {"slice_gradient", make_slice_gradient},
    {"softmax", make_softmax},
    {"softmax_cross_entropy", make_softmax_cross_entropy},
    {"softmax_cross_entropy_gradient", make_softmax_cross_entropy_gradient},
    {"softmax_gradient", make_softmax_gradient},
    {"softplus", make_unary},
    {"sparse_softmax_cross_entropy", make_sparse_softmax_cross_entropy},
    {"sparse_softmax_cross_entropy_gradient", make_sparse_softmax_cross_entropy_gradient},
    {"sqrt", make_unary},
    {"square", make_unary},
    {"stop_gradient", make_unary},
    {"sub", make_binary},
    {"sum_rows", make_sum_rows},
    {"tangent", make_unary},
    {"tanh", make_unary},
    {"tanh_gradient", make_binary},
    {"top_k", make_top_k},
    {"top_k_gradient", make_top_k_gradient},
    {"transpose", make_transpose},
};

}  // namespace

KernelFactory find_kernel(std::string_view op) {
  const auto *const found =
      std::lower_bound(std::begin(kKernels), std::end(kKernels), op,
                       [](const KernelEntry &entry, std::string_view name) { return entry.op < name; });
  return found != std::end(kKernels) && found->op == op ? found->factory : nullptr;
}

std::vector<std::string_view> kernel_ops() {
  std::vector<std::string_view> names;
  for (const KernelEntry &entry : kKernels)
    names.push_back(entry.op);
  return names;
}

}  // namespace tutti::impl::backend::reference
