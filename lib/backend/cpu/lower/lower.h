// SPDX-License-Identifier: Apache-2.0
//
// How each op is done. A lowering function emits the kernels of one node (or of one group of nodes, fusion.h); it
// returns false when it cannot do this node (another dtype, say), which then runs as a fallback kernel. They are listed
// in lower.cc.
#ifndef TUTTI_BACKEND_CPU_LOWER_LOWER_H_
#define TUTTI_BACKEND_CPU_LOWER_LOWER_H_

#include <optional>
#include <vector>

#include "backend/cpu/dnnl/dnnl_product.h"
#include "backend/cpu/lower/fusion.h"
#include "backend/cpu/lower/lowering.h"
#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

/// Emits the kernels of a group.
base::Status lower_group(Lowering &l, const Group &group);

// lower_elementwise.cc
void lower_elementwise(Lowering &l, const Group &group);
/// Between numbers of different types, where it is all that is done with them.
bool lower_cast(Lowering &l, const graph::Node &node);
bool lower_integer_arithmetic(Lowering &l, const graph::Node &node);
/// Emits a copy of a value repeated to `dims`; the buffer.
BufferId broadcast(Lowering &l, graph::ValueId id, const std::vector<int64_t> &dims);

// lower_dense.cc
bool lower_dense(Lowering &l, const Group &group);
/// The products of a graph that might be faster in bfloat16; empty where that is not permitted.
std::vector<ProductRequest> product_questions(const LoweredGraph &graph);

// lower_convolution.cc
bool lower_convolution(Lowering &l, const Group &group);
bool lower_input_gradient(Lowering &l, const graph::Node &node);
bool lower_kernel_gradient(Lowering &l, const Group &group);
/// The parts in which the image may be read by a convolution, or the gradient of one, that is a stage (image_stage.h);
/// none where there is no such convolution.
std::optional<Parts> parts_of_next_convolution(const Lowering &l, graph::ValueId image);
/// Do only convolutions, and gradients of them, read the image, all of which may be stages of these parts?
bool only_stages_read(const Lowering &l, graph::ValueId image, const Parts &parts);
/// The layout in which a convolution wants its kernel; "" = row-major.
std::string preferred_kernel_layout(const LoweredGraph &graph, const FusionPlan &fusion, const ImageLayouts &images,
                                    int32_t step);

// lower_normalization.cc
/// For the kernel gradient at `step`, which reads `image`: emits the normalisation that made it once more, without its
/// statistics, where that takes little time beside the gradient. So the image takes no memory between its convolution
/// and that. `parts`: of the chain in which the gradient is a stage, which the normalisation joins before it.
void normalize_again(Lowering &l, graph::ValueId image, int32_t step, const std::optional<Parts> &parts);
/// Is the image, or gradient, read next by a normalisation, or the gradient of one, for its sums?
bool feeds_sums(const Lowering &l, graph::ValueId image);
bool lower_batch_norm(Lowering &l, const Group &group);
bool lower_batch_norm_gradient(Lowering &l, const Group &group);
bool lower_batch_norm_inference(Lowering &l, const Group &group);
bool lower_batch_norm_moments(Lowering &l, const graph::Node &node);
bool lower_batch_norm_gradient_moments(Lowering &l, const graph::Node &node);
bool lower_batch_norm_gradient_apply(Lowering &l, const Group &group);
/// RMS normalisation, too.
bool lower_layer_norm(Lowering &l, const graph::Node &node);
bool lower_layer_norm_gradient(Lowering &l, const graph::Node &node);

// lower_group_norm.cc
bool lower_group_norm(Lowering &l, const graph::Node &node);
bool lower_group_norm_gradient(Lowering &l, const graph::Node &node);

// lower_attention.cc: with dropout or without
/// Is the node, an attention or the gradient of one, done here?
bool has_attention_kernel(const LoweredGraph &graph, const graph::Node &attention);
bool lower_attention(Lowering &l, const graph::Node &node);
bool lower_attention_gradient(Lowering &l, const graph::Node &node);

// lower_pooling.cc
bool lower_max_pool(Lowering &l, const graph::Node &node);
bool lower_max_pool_gradient(Lowering &l, const Group &group);
bool lower_average_pool(Lowering &l, const graph::Node &node);
bool lower_average_pool_gradient(Lowering &l, const graph::Node &node);

// lower_loss.cc
bool lower_softmax(Lowering &l, const graph::Node &node);
bool lower_softmax_gradient(Lowering &l, const graph::Node &node);
bool lower_sparse_cross_entropy(Lowering &l, const graph::Node &node);
bool lower_sparse_cross_entropy_gradient(Lowering &l, const graph::Node &node);
bool lower_cross_entropy(Lowering &l, const graph::Node &node);
bool lower_cross_entropy_gradient(Lowering &l, const graph::Node &node);

// lower_running.cc
bool lower_running(Lowering &l, const graph::Node &node);
bool lower_running_product_gradient(Lowering &l, const graph::Node &node);

// lower_interpolate.cc
bool lower_interpolate2d(Lowering &l, const graph::Node &node);

// lower_reduce.cc
/// Can sums along axes be made in one pass over an array of `dims`?
bool is_one_reduction(const std::vector<int64_t> &dims, const std::vector<int64_t> &axes);
bool lower_reduce(Lowering &l, const graph::Node &node);
void lower_sum_of_squares(Lowering &l, const Group &group);
bool lower_arg_reduce(Lowering &l, const graph::Node &node);
bool lower_all_finite(Lowering &l, const graph::Node &node);

// lower_update.cc
bool lower_run_scalar(Lowering &l, const graph::Node &node);
bool lower_update(Lowering &l, const Group &group);

// lower_shape.cc
bool lower_transpose(Lowering &l, const graph::Node &node);
bool lower_broadcast_to(Lowering &l, const graph::Node &node);
bool lower_reverse_axes(Lowering &l, const graph::Node &node);
bool lower_concat(Lowering &l, const Group &group);
bool lower_slice(Lowering &l, const graph::Node &node);
bool lower_slice_gradient(Lowering &l, const graph::Node &node);
bool lower_one_hot(Lowering &l, const graph::Node &node);
bool lower_pad(Lowering &l, const graph::Node &node);
bool lower_gather(Lowering &l, const graph::Node &node);
bool lower_gather_gradient(Lowering &l, const graph::Node &node);
bool lower_merge_rows(Lowering &l, const graph::Node &node);

// lower_rows.cc
bool lower_sum_rows(Lowering &l, const graph::Node &node);
bool lower_rows_at(Lowering &l, const graph::Node &node);
bool lower_row_update(Lowering &l, const graph::Node &node);

// lower_top_k.cc
bool lower_top_k(Lowering &l, const graph::Node &node);
bool lower_top_k_gradient(Lowering &l, const graph::Node &node);

// lower_random.cc
bool lower_dropout(Lowering &l, const graph::Node &node);
bool lower_random_uniform(Lowering &l, const graph::Node &node);
bool lower_random_normal(Lowering &l, const graph::Node &node);

// lower_regions.cc
/// False where the regions are left to the reference.
base::Result<bool> lower_scan(Lowering &l, const graph::Node &node);
/// Of cond, call, custom_gradient and fusion.
base::Result<bool> lower_branches(Lowering &l, const graph::Node &node);

// fallback.cc
/// Runs the node on the reference backend, as a kernel of its own.
base::Status lower_fallback(Lowering &l, const graph::Node &node);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_LOWER_H_
