// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/lower.h"

#include <map>
#include <string_view>

namespace tutti::impl::backend::cpu {

using base::Status;
using graph::Node;

namespace {

using NodeFunction = bool (*)(Lowering &, const Node &);
using GroupFunction = bool (*)(Lowering &, const Group &);

const std::map<std::string_view, NodeFunction> &node_functions() {
  static const std::map<std::string_view, NodeFunction> table = {
      {"attention", lower_attention},
      {"attention_gradient", lower_attention_gradient},
      {"conv2d_input_gradient", lower_input_gradient},
      {"batch_norm_moments", lower_batch_norm_moments},
      {"batch_norm_gradient_moments", lower_batch_norm_gradient_moments},
      {"group_norm", lower_group_norm},
      {"group_norm_gradient", lower_group_norm_gradient},
      {"layer_norm", lower_layer_norm},
      {"layer_norm_gradient", lower_layer_norm_gradient},
      {"rms_norm", lower_layer_norm},
      {"rms_norm_gradient", lower_layer_norm_gradient},
      {"max_pool2d", lower_max_pool},
      {"avg_pool2d", lower_average_pool},
      {"avg_pool2d_gradient", lower_average_pool_gradient},
      {"softmax", lower_softmax},
      {"log_softmax", lower_softmax},
      {"softmax_gradient", lower_softmax_gradient},
      {"log_softmax_gradient", lower_softmax_gradient},
      {"sparse_softmax_cross_entropy", lower_sparse_cross_entropy},
      {"sparse_softmax_cross_entropy_gradient", lower_sparse_cross_entropy_gradient},
      {"softmax_cross_entropy", lower_cross_entropy},
      {"softmax_cross_entropy_gradient", lower_cross_entropy_gradient},
      {"reduce_sum", lower_reduce},
      {"reduce_mean", lower_reduce},
      {"reduce_max", lower_reduce},
      {"reduce_min", lower_reduce},
      {"reduce_prod", lower_reduce},
      {"all_finite", lower_all_finite},
      {"run_scalar", lower_run_scalar},
      {"transpose", lower_transpose},
      {"broadcast_to", lower_broadcast_to},
      {"slice", lower_slice},
      {"slice_gradient", lower_slice_gradient},
      {"argmax", lower_arg_reduce},
      {"argmin", lower_arg_reduce},
      {"one_hot", lower_one_hot},
      {"pad", lower_pad},
      {"gather", lower_gather},
      {"gather_gradient", lower_gather_gradient},
      {"sum_rows", lower_sum_rows},
      {"rows_at", lower_rows_at},
      {"row_update", lower_row_update},
      {"dropout", lower_dropout},
      {"dropout_attention", lower_attention},
      {"dropout_attention_gradient", lower_attention_gradient},
      {"random_uniform", lower_random_uniform},
      {"random_normal", lower_random_normal},
      {"random_truncated_normal", lower_random_normal},
      {"top_k", lower_top_k},
      {"top_k_gradient", lower_top_k_gradient},
      {"cast", lower_cast},
      {"add", lower_integer_arithmetic},
      {"sub", lower_integer_arithmetic},
      {"mul", lower_integer_arithmetic},
      {"running_sum", lower_running},
      {"running_product", lower_running},
      {"running_product_gradient", lower_running_product_gradient},
      {"reverse_axes", lower_reverse_axes},
      {"merge_rows", lower_merge_rows},
      {"interpolate2d", lower_interpolate2d},
  };
  return table;
}

/// Groups, and single nodes of ops that may head one.
const std::map<std::string_view, GroupFunction> &group_functions() {
  static const std::map<std::string_view, GroupFunction> table = {
      {"concat", lower_concat},
      {"matmul", lower_dense},
      {"conv2d", lower_convolution},
      {"conv2d_kernel_gradient", lower_kernel_gradient},
      {"batch_norm_training", lower_batch_norm},
      {"batch_norm_training_gradient", lower_batch_norm_gradient},
      {"batch_norm_inference", lower_batch_norm_inference},
      {"batch_norm_gradient_apply", lower_batch_norm_gradient_apply},
      {"max_pool2d_gradient", lower_max_pool_gradient},
      {"sgd_update", lower_update},
      {"momentum_update", lower_update},
      {"adam_update", lower_update},
  };
  return table;
}

/// The node of a group that says what it is.
const Node &head_of(const Lowering &l, const Group &group) {
  if (group.kind == GroupKind::norm_gradient || group.kind == GroupKind::update || group.kind == GroupKind::concat)
    return l.graph().step(group.steps.back());
  for (int32_t step : group.steps) {
    const Node &node = l.graph().step(step);
    if (node.op == "conv2d_kernel_gradient" || (group.kind == GroupKind::dense && node.op == "matmul")) return node;
  }
  return l.graph().step(group.steps.front());
}

}  // namespace

Status lower_group(Lowering &l, const Group &group) {
  if (group.kind == GroupKind::elementwise) {
    if (group.steps.size() == 1 && lower_cast(l, l.graph().step(group.steps.front()))) return Status();
    lower_elementwise(l, group);
    return Status();
  }
  if (group.kind == GroupKind::sum_of_squares) {
    lower_sum_of_squares(l, group);
    return Status();
  }
  const Node &head = head_of(l, group);
  if (!head.regions.empty()) {
    TUTTI_ASSIGN(const bool is_done, head.op == "scan" ? lower_scan(l, head) : lower_branches(l, head));
    return is_done ? Status() : lower_fallback(l, head);
  }
  const auto by_group = group_functions().find(head.op);
  if (by_group != group_functions().end()) {
    if (by_group->second(l, group)) return Status();
  } else {
    const auto by_node = node_functions().find(head.op);
    if (by_node != node_functions().end() && by_node->second(l, head)) return Status();
  }
  for (int32_t step : group.steps)
    TUTTI_TRY(lower_fallback(l, l.graph().step(step)));
  return Status();
}

}  // namespace tutti::impl::backend::cpu
