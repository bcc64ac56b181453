// SPDX-License-Identifier: Apache-2.0
//
// The functions that write ops, by file (node_emitter.h). Which op each of them is for: op_list.cc.
#ifndef TUTTI_BACKEND_PJRT_EMIT_OP_EMITTERS_H_
#define TUTTI_BACKEND_PJRT_EMIT_OP_EMITTERS_H_

#include "backend/pjrt/emit/node_emitter.h"

namespace tutti::impl::backend::pjrt {

// elementwise_unary.cc
base::Status emit_unary(NodeEmitter &node);
base::Status emit_is_finite(NodeEmitter &node);
base::Status emit_logical_not(NodeEmitter &node);
// cast.cc
base::Status emit_cast(NodeEmitter &node);
// elementwise_binary.cc
base::Status emit_binary(NodeEmitter &node);
base::Status emit_comparison(NodeEmitter &node);
base::Status emit_logical(NodeEmitter &node);
base::Status emit_gelu_gradient(NodeEmitter &node);
base::Status emit_select(NodeEmitter &node);
// reductions.cc
base::Status emit_reduce(NodeEmitter &node);
base::Status emit_arg_reduce(NodeEmitter &node);
base::Status emit_all_finite(NodeEmitter &node);
base::Status emit_top_k(NodeEmitter &node);
base::Status emit_top_k_gradient(NodeEmitter &node);
// shapes.cc
base::Status emit_reshape(NodeEmitter &node);
base::Status emit_transpose(NodeEmitter &node);
base::Status emit_broadcast_to(NodeEmitter &node);
base::Status emit_reverse_axes(NodeEmitter &node);
base::Status emit_concat(NodeEmitter &node);
base::Status emit_slice(NodeEmitter &node);
base::Status emit_slice_gradient(NodeEmitter &node);
base::Status emit_pad(NodeEmitter &node);
base::Status emit_iota(NodeEmitter &node);
// gather.cc
base::Status emit_gather(NodeEmitter &node);
base::Status emit_gather_gradient(NodeEmitter &node);
base::Status emit_merge_rows(NodeEmitter &node);
base::Status emit_one_hot(NodeEmitter &node);
// running.cc
base::Status emit_running(NodeEmitter &node);
base::Status emit_running_product_gradient(NodeEmitter &node);
// interpolation.cc
base::Status emit_interpolate2d(NodeEmitter &node);
// matmul.cc
base::Status emit_matmul(NodeEmitter &node);
// convolution.cc
base::Status emit_conv2d(NodeEmitter &node);
base::Status emit_conv2d_input_gradient(NodeEmitter &node);
base::Status emit_conv2d_kernel_gradient(NodeEmitter &node);
// pooling.cc
base::Status emit_max_pool2d(NodeEmitter &node);
base::Status emit_max_pool2d_gradient(NodeEmitter &node);
base::Status emit_avg_pool2d(NodeEmitter &node);
base::Status emit_avg_pool2d_gradient(NodeEmitter &node);
// batch_norm.cc
base::Status emit_batch_norm_training(NodeEmitter &node);
base::Status emit_batch_norm_training_gradient(NodeEmitter &node);
base::Status emit_batch_norm_inference(NodeEmitter &node);
base::Status emit_batch_norm_moments(NodeEmitter &node);
base::Status emit_batch_norm_gradient_moments(NodeEmitter &node);
base::Status emit_batch_norm_gradient_apply(NodeEmitter &node);
// row_norms.cc
base::Status emit_layer_norm(NodeEmitter &node);
base::Status emit_layer_norm_gradient(NodeEmitter &node);
base::Status emit_rms_norm(NodeEmitter &node);
base::Status emit_rms_norm_gradient(NodeEmitter &node);
base::Status emit_group_norm(NodeEmitter &node);
base::Status emit_group_norm_gradient(NodeEmitter &node);
// attention.cc
base::Status emit_attention(NodeEmitter &node);
base::Status emit_attention_gradient(NodeEmitter &node);
base::Status emit_dropout_attention(NodeEmitter &node);
base::Status emit_dropout_attention_gradient(NodeEmitter &node);
// softmax.cc
base::Status emit_softmax(NodeEmitter &node);
base::Status emit_softmax_gradient(NodeEmitter &node);
base::Status emit_sparse_softmax_cross_entropy(NodeEmitter &node);
base::Status emit_sparse_softmax_cross_entropy_gradient(NodeEmitter &node);
base::Status emit_softmax_cross_entropy(NodeEmitter &node);
base::Status emit_softmax_cross_entropy_gradient(NodeEmitter &node);
base::Status emit_sigmoid_cross_entropy(NodeEmitter &node);
base::Status emit_in_top_k(NodeEmitter &node);
// random.cc
base::Status emit_dropout(NodeEmitter &node);
base::Status emit_random_uniform(NodeEmitter &node);
base::Status emit_random_normal(NodeEmitter &node);
base::Status emit_random_truncated_normal(NodeEmitter &node);
// rows.cc
base::Status emit_sum_rows(NodeEmitter &node);
base::Status emit_rows_at(NodeEmitter &node);
base::Status emit_row_update(NodeEmitter &node);
// updates.cc
base::Status emit_sgd_update(NodeEmitter &node);
base::Status emit_momentum_update(NodeEmitter &node);
base::Status emit_adam_update(NodeEmitter &node);
// control.cc
base::Status emit_constant(NodeEmitter &node);
base::Status emit_run_scalar(NodeEmitter &node);
base::Status emit_call(NodeEmitter &node);
base::Status emit_scan(NodeEmitter &node);
base::Status emit_cond(NodeEmitter &node);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_EMIT_OP_EMITTERS_H_
