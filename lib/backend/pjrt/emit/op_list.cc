// SPDX-License-Identifier: Apache-2.0
//
// Every op that can be written, sorted. What is not here is refused when a graph is compiled.
#include <algorithm>
#include <iterator>

#include "backend/pjrt/emit/op_emitters.h"

namespace tutti::impl::backend::pjrt {
namespace {

struct OpEntry {
  std::string_view op;
  OpEmitter emit;
};

constexpr OpEntry kOps[] = {
    {"abs", emit_unary},
    {"adam_update", emit_adam_update},
    {"add", emit_binary},
    {"all_finite", emit_all_finite},
    {"arc_cosine", emit_unary},
    {"arc_sine", emit_unary},
    {"arc_tangent", emit_unary},
    {"arc_tangent2", emit_binary},
    {"argmax", emit_arg_reduce},
    {"argmin", emit_arg_reduce},
    {"attention", emit_attention},
    {"attention_gradient", emit_attention_gradient},
    {"avg_pool2d", emit_avg_pool2d},
    {"avg_pool2d_gradient", emit_avg_pool2d_gradient},
    {"batch_norm_gradient_apply", emit_batch_norm_gradient_apply},
    {"batch_norm_gradient_moments", emit_batch_norm_gradient_moments},
    {"batch_norm_inference", emit_batch_norm_inference},
    {"batch_norm_moments", emit_batch_norm_moments},
    {"batch_norm_training", emit_batch_norm_training},
    {"batch_norm_training_gradient", emit_batch_norm_training_gradient},
    {"broadcast_to", emit_broadcast_to},
    {"call", emit_call},
    {"cast", emit_cast},
    {"ceil", emit_unary},
    {"concat", emit_concat},
    {"cond", emit_cond},
    {"constant", emit_constant},
    {"conv2d", emit_conv2d},
    {"conv2d_input_gradient", emit_conv2d_input_gradient},
    {"conv2d_kernel_gradient", emit_conv2d_kernel_gradient},
    {"cos", emit_unary},
    {"custom_gradient", emit_call},
    {"div", emit_binary},
    {"dropout", emit_dropout},
    {"dropout_attention", emit_dropout_attention},
    {"dropout_attention_gradient", emit_dropout_attention_gradient},
    {"elu", emit_unary},
    {"equal", emit_comparison},
    {"erf", emit_unary},
    {"exp", emit_unary},
    {"expm1", emit_unary},
    {"floor", emit_unary},
    {"floor_divide", emit_binary},
    {"fusion", emit_call},
    {"gather", emit_gather},
    {"gather_gradient", emit_gather_gradient},
    {"gelu", emit_unary},
    {"gelu_gradient", emit_gelu_gradient},
    {"greater", emit_comparison},
    {"greater_equal", emit_comparison},
    {"group_norm", emit_group_norm},
    {"group_norm_gradient", emit_group_norm_gradient},
    {"identity", emit_unary},
    {"in_top_k", emit_in_top_k},
    {"interpolate2d", emit_interpolate2d},
    {"iota", emit_iota},
    {"is_finite", emit_is_finite},
    {"layer_norm", emit_layer_norm},
    {"layer_norm_gradient", emit_layer_norm_gradient},
    {"leaky_relu", emit_unary},
    {"less", emit_comparison},
    {"less_equal", emit_comparison},
    {"log", emit_unary},
    {"log1p", emit_unary},
    {"log_softmax", emit_softmax},
    {"log_softmax_gradient", emit_softmax_gradient},
    {"logical_and", emit_logical},
    {"logical_not", emit_logical_not},
    {"logical_or", emit_logical},
    {"logical_xor", emit_logical},
    {"matmul", emit_matmul},
    {"max_pool2d", emit_max_pool2d},
    {"max_pool2d_gradient", emit_max_pool2d_gradient},
    {"maximum", emit_binary},
    {"merge_rows", emit_merge_rows},
    {"minimum", emit_binary},
    {"mod", emit_binary},
    {"momentum_update", emit_momentum_update},
    {"mul", emit_binary},
    {"neg", emit_unary},
    {"not_equal", emit_comparison},
    {"one_hot", emit_one_hot},
    {"pad", emit_pad},
    {"pow", emit_binary},
    {"random_normal", emit_random_normal},
    {"random_truncated_normal", emit_random_truncated_normal},
    {"random_uniform", emit_random_uniform},
    {"reciprocal", emit_unary},
    {"reduce_max", emit_reduce},
    {"reduce_mean", emit_reduce},
    {"reduce_min", emit_reduce},
    {"reduce_prod", emit_reduce},
    {"reduce_sum", emit_reduce},
    {"relu", emit_unary},
    {"relu_gradient", emit_binary},
    {"reshape", emit_reshape},
    {"reverse_axes", emit_reverse_axes},
    {"rms_norm", emit_rms_norm},
    {"rms_norm_gradient", emit_rms_norm_gradient},
    {"round", emit_unary},
    {"row_update", emit_row_update},
    {"rows_at", emit_rows_at},
    {"rsqrt", emit_unary},
    {"run_scalar", emit_run_scalar},
    {"running_product", emit_running},
    {"running_product_gradient", emit_running_product_gradient},
    {"running_sum", emit_running},
    {"scan", emit_scan},
    {"select", emit_select},
    {"sgd_update", emit_sgd_update},
    {"sigmoid", emit_unary},
    {"sigmoid_cross_entropy", emit_sigmoid_cross_entropy},
    {"sigmoid_gradient", emit_binary},
    {"sign", emit_unary},
    {"silu", emit_unary},
    {"sin", emit_unary},
    {"slice", emit_slice},
    {"slice_gradient", emit_slice_gradient},
    {"softmax", emit_softmax},
    {"softmax_cross_entropy", emit_softmax_cross_entropy},
    {"softmax_cross_entropy_gradient", emit_softmax_cross_entropy_gradient},
    {"softmax_gradient", emit_softmax_gradient},
    {"softplus", emit_unary},
    {"sparse_softmax_cross_entropy", emit_sparse_softmax_cross_entropy},
    {"sparse_softmax_cross_entropy_gradient", emit_sparse_softmax_cross_entropy_gradient},
    {"sqrt", emit_unary},
    {"square", emit_unary},
    {"stop_gradient", emit_unary},
    {"sub", emit_binary},
    {"sum_rows", emit_sum_rows},
    {"tangent", emit_unary},
    {"tanh", emit_unary},
    {"tanh_gradient", emit_binary},
    {"top_k", emit_top_k},
    {"top_k_gradient", emit_top_k_gradient},
    {"transpose", emit_transpose},
};

}  // namespace

OpEmitter find_op_emitter(std::string_view op) {
  const auto *const found =
      std::lower_bound(std::begin(kOps), std::end(kOps), op,
                       [](const OpEntry &entry, std::string_view name) { return entry.op < name; });
  return found != std::end(kOps) && found->op == op ? found->emit : nullptr;
}

std::vector<std::string_view> emitted_ops() {
  std::vector<std::string_view> names;
  for (const OpEntry &entry : kOps)
    names.push_back(entry.op);
  return names;
}

}  // namespace tutti::impl::backend::pjrt
