// SPDX-License-Identifier: Apache-2.0
//
// The kernel factories, by file. kernel_list.cc says which op takes which.
#ifndef TUTTI_BACKEND_REFERENCE_KERNELS_H_
#define TUTTI_BACKEND_REFERENCE_KERNELS_H_

#include "backend/reference/kernel.h"

namespace tutti::impl::backend::reference {

// unary_kernels.cc
base::Result<Kernel> make_unary(KernelRequest &request);
base::Result<Kernel> make_cast(KernelRequest &request);
base::Result<Kernel> make_logical_not(KernelRequest &request);
base::Result<Kernel> make_is_finite(KernelRequest &request);

// binary_kernels.cc
base::Result<Kernel> make_binary(KernelRequest &request);
base::Result<Kernel> make_gelu_gradient(KernelRequest &request);
base::Result<Kernel> make_select(KernelRequest &request);

// reduce_kernels.cc
base::Result<Kernel> make_reduce(KernelRequest &request);
base::Result<Kernel> make_arg_reduce(KernelRequest &request);
base::Result<Kernel> make_all_finite(KernelRequest &request);

// shape_kernels.cc
base::Result<Kernel> make_reshape(KernelRequest &request);
base::Result<Kernel> make_transpose(KernelRequest &request);
base::Result<Kernel> make_broadcast_to(KernelRequest &request);
base::Result<Kernel> make_reverse_axes(KernelRequest &request);
base::Result<Kernel> make_concat(KernelRequest &request);
base::Result<Kernel> make_slice(KernelRequest &request);
base::Result<Kernel> make_slice_gradient(KernelRequest &request);
base::Result<Kernel> make_pad(KernelRequest &request);
base::Result<Kernel> make_iota(KernelRequest &request);

// gather_kernels.cc
base::Result<Kernel> make_gather(KernelRequest &request);
base::Result<Kernel> make_gather_gradient(KernelRequest &request);
base::Result<Kernel> make_merge_rows(KernelRequest &request);
base::Result<Kernel> make_one_hot(KernelRequest &request);

// row_kernels.cc
base::Result<Kernel> make_sum_rows(KernelRequest &request);
base::Result<Kernel> make_rows_at(KernelRequest &request);
base::Result<Kernel> make_row_update(KernelRequest &request);

// running_kernels.cc
base::Result<Kernel> make_running(KernelRequest &request);
base::Result<Kernel> make_running_product_gradient(KernelRequest &request);

// interpolate_kernels.cc
base::Result<Kernel> make_interpolate2d(KernelRequest &request);

// matmul_kernels.cc
base::Result<Kernel> make_matmul(KernelRequest &request);

// conv2d_kernels.cc
base::Result<Kernel> make_conv2d(KernelRequest &request);
base::Result<Kernel> make_conv2d_input_gradient(KernelRequest &request);
base::Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request);

// pool2d_kernels.cc
base::Result<Kernel> make_max_pool2d(KernelRequest &request);
base::Result<Kernel> make_max_pool2d_gradient(KernelRequest &request);
base::Result<Kernel> make_avg_pool2d(KernelRequest &request);
base::Result<Kernel> make_avg_pool2d_gradient(KernelRequest &request);

// attention_kernels.cc
base::Result<Kernel> make_attention(KernelRequest &request);
base::Result<Kernel> make_attention_gradient(KernelRequest &request);
base::Result<Kernel> make_dropout_attention(KernelRequest &request);
base::Result<Kernel> make_dropout_attention_gradient(KernelRequest &request);

// batch_norm_kernels.cc
base::Result<Kernel> make_batch_norm_training(KernelRequest &request);
base::Result<Kernel> make_batch_norm_training_gradient(KernelRequest &request);
base::Result<Kernel> make_batch_norm_inference(KernelRequest &request);
base::Result<Kernel> make_batch_norm_moments(KernelRequest &request);
base::Result<Kernel> make_batch_norm_gradient_moments(KernelRequest &request);
base::Result<Kernel> make_batch_norm_gradient_apply(KernelRequest &request);

// layer_norm_kernels.cc
base::Result<Kernel> make_layer_norm(KernelRequest &request);
base::Result<Kernel> make_layer_norm_gradient(KernelRequest &request);
base::Result<Kernel> make_rms_norm(KernelRequest &request);
base::Result<Kernel> make_rms_norm_gradient(KernelRequest &request);

// group_norm_kernels.cc
base::Result<Kernel> make_group_norm(KernelRequest &request);
base::Result<Kernel> make_group_norm_gradient(KernelRequest &request);

// softmax_kernels.cc
base::Result<Kernel> make_softmax(KernelRequest &request);
base::Result<Kernel> make_softmax_gradient(KernelRequest &request);

// cross_entropy_kernels.cc
base::Result<Kernel> make_sparse_softmax_cross_entropy(KernelRequest &request);
base::Result<Kernel> make_sparse_softmax_cross_entropy_gradient(KernelRequest &request);
base::Result<Kernel> make_softmax_cross_entropy(KernelRequest &request);
base::Result<Kernel> make_softmax_cross_entropy_gradient(KernelRequest &request);
base::Result<Kernel> make_sigmoid_cross_entropy(KernelRequest &request);
base::Result<Kernel> make_in_top_k(KernelRequest &request);

// random_kernels.cc
base::Result<Kernel> make_dropout(KernelRequest &request);
base::Result<Kernel> make_random_uniform(KernelRequest &request);
base::Result<Kernel> make_random_normal(KernelRequest &request);

// top_k_kernels.cc
base::Result<Kernel> make_top_k(KernelRequest &request);
base::Result<Kernel> make_top_k_gradient(KernelRequest &request);

// update_kernels.cc
base::Result<Kernel> make_sgd_update(KernelRequest &request);
base::Result<Kernel> make_momentum_update(KernelRequest &request);
base::Result<Kernel> make_adam_update(KernelRequest &request);

// control_kernels.cc
base::Result<Kernel> make_run_scalar(KernelRequest &request);
base::Result<Kernel> make_call_region(KernelRequest &request);
base::Result<Kernel> make_scan(KernelRequest &request);
base::Result<Kernel> make_cond(KernelRequest &request);

}  // namespace tutti::impl::backend::reference

#endif  // TUTTI_BACKEND_REFERENCE_KERNELS_H_
