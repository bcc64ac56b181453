// SPDX-License-Identifier: Apache-2.0
#include "graph/rewrite/precision_rules.h"

#include <algorithm>
#include <iterator>

namespace tutti::impl::graph::rewrite {
namespace {

struct NamedRule {
  std::string_view op;
  PrecisionRule rule;
};

constexpr uint32_t kAll = ~0u;
constexpr PrecisionRule kElementwise = {PrecisionRole::elementwise, 0, 0};
constexpr PrecisionRule kGrowing = {PrecisionRole::elementwise, 0, 0, PrecisionRange::grown};
constexpr PrecisionRule kBounded = {PrecisionRole::elementwise, 0, 0, PrecisionRange::bounded};
constexpr PrecisionRule kReduce = {PrecisionRole::reduce, 0, 0};
constexpr PrecisionRule kSum = {PrecisionRole::reduce, 0, 0, PrecisionRange::grown};
constexpr PrecisionRule kLossRule = {PrecisionRole::loss, 0, 0};
/// Elements are moved, not computed: nothing is lost.
constexpr PrecisionRule kMove = {PrecisionRole::carry, kAll, 1};

constexpr PrecisionRule product(uint32_t inputs) { return {PrecisionRole::product, inputs, 1}; }
constexpr PrecisionRule carry(uint32_t inputs, uint32_t outputs = 1) { return {PrecisionRole::carry, inputs, outputs}; }
/// Results are in units of a deviation, or probabilities.
constexpr PrecisionRule normalise(uint32_t inputs) {
  return {PrecisionRole::carry, inputs, 1, PrecisionRange::bounded};
}

/// Sorted. Not here, and so f32: leaves and state; updates and all_reduce, for what is summed over many steps or
/// replicas needs more bits than one gradient; gather and its gradient, which read and add up rows of a variable;
/// argmax, argmin, top_k and its gradient, in_top_k, all_finite, whose results would change where values tie after
/// rounding, or cost nothing; running sums and products, whose rounding adds up; angles, whose functions are given f32;
/// merge_rows; interpolate2d; random leaves; integers; regions, whose insides stay as they are.
constexpr NamedRule kRules[] = {
    {"abs", kElementwise},
    {"add", kElementwise},
    {"attention", product(0b111)},  // scores and probabilities are f32 on the way, statistics stay f32
    {"attention_gradient", {PrecisionRole::product, 0b11111, 0b111}},
    {"avg_pool2d", carry(1)},           // a mean of few elements, summed in f32
    {"avg_pool2d_gradient", carry(1)},  // the same
    {"batch_norm_gradient_apply", carry(0b11)},
    {"batch_norm_gradient_moments", carry(0b11, 0)},  // sums are f64
    {"batch_norm_inference", carry(1)},               // statistics, scale and offset stay f32 in all of these
    {"batch_norm_moments", carry(1, 0)},
    {"batch_norm_training", normalise(1)},
    {"batch_norm_training_gradient", carry(0b11)},
    {"broadcast_to", kMove},
    {"cast", kElementwise},
    {"ceil", kElementwise},
    {"concat", kMove},
    {"conv2d", product(0b11)},  // the bias is added in f32
    {"conv2d_input_gradient", product(0b11)},
    {"conv2d_kernel_gradient", product(0b11)},
    {"cos", kBounded},
    {"div", kGrowing},      // not by a scalar
    {"dropout", carry(1)},  // the mask does not depend on the dtype
    {"dropout_attention", product(0b111)},
    {"dropout_attention_gradient", {PrecisionRole::product, 0b11111, 0b111}},
    {"elu", kElementwise},
    {"equal", kBounded},
    {"erf", kBounded},
    {"exp", kGrowing},
    {"expm1", kGrowing},
    {"floor", kElementwise},
    {"floor_divide", kGrowing},
    {"gelu", kElementwise},
    {"gelu_gradient", kElementwise},
    {"greater", kBounded},
    {"greater_equal", kBounded},
    {"group_norm", normalise(1)},  // statistics, scale and offset stay f32
    {"group_norm_gradient", carry(0b11)},
    {"identity", kMove},
    {"is_finite", kBounded},
    {"layer_norm", normalise(1)},  // the same
    {"layer_norm_gradient", carry(0b11)},
    {"leaky_relu", kElementwise},
    {"less", kBounded},
    {"less_equal", kBounded},
    {"log", kBounded},
    {"log1p", kElementwise},
    {"log_softmax", kLossRule},  // what it is for
    {"log_softmax_gradient", kLossRule},
    {"logical_and", kBounded},
    {"logical_not", kBounded},
    {"logical_or", kBounded},
    {"logical_xor", kBounded},
    {"matmul", product(0b11)},
    {"max_pool2d", carry(1)},  // of elements that there are: exact
    {"max_pool2d_gradient", carry(0b111)},
    {"maximum", kElementwise},
    {"minimum", kElementwise},
    {"mod", kElementwise},
    {"mul", kGrowing},  // a square; other products of two are what gates and masks do, and stay in range
    {"neg", kElementwise},
    {"not_equal", kBounded},
    {"pad", carry(1)},
    {"pow", kGrowing},
    {"reciprocal", kGrowing},
    {"reduce_max", kReduce},
    {"reduce_mean", kReduce},
    {"reduce_min", kReduce},
    {"reduce_prod", kSum},
    {"reduce_sum", kSum},
    {"relu", kElementwise},
    {"relu_gradient", kElementwise},
    {"reshape", kMove},
    {"reverse_axes", kMove},
    {"rms_norm", normalise(1)},
    {"rms_norm_gradient", carry(0b11)},
    {"round", kElementwise},
    {"rsqrt", kGrowing},
    {"select", kElementwise},
    {"sigmoid", kBounded},
    {"sigmoid_cross_entropy", kLossRule},
    {"sigmoid_gradient", kElementwise},
    {"sign", kBounded},
    {"silu", kElementwise},
    {"sin", kBounded},
    {"slice", kMove},
    {"slice_gradient", kMove},
    {"softmax",
     normalise(1)},  // of attention: sums are f32, results in [0, 1]; where it is a result itself it stays f32
    {"softmax_cross_entropy", kLossRule},
    {"softmax_cross_entropy_gradient", kLossRule},
    {"softmax_gradient", carry(0b11)},
    {"softplus", kElementwise},
    {"sparse_softmax_cross_entropy", kLossRule},
    {"sparse_softmax_cross_entropy_gradient", kLossRule},
    {"sqrt", kElementwise},
    {"square", kGrowing},
    {"stop_gradient", kMove},
    {"sub", kElementwise},
    {"tanh", kBounded},
    {"tanh_gradient", kElementwise},
    {"transpose", kMove},
};
static_assert(std::is_sorted(std::begin(kRules), std::end(kRules),
                             [](const NamedRule &a, const NamedRule &b) { return a.op < b.op; }));

}  // namespace

PrecisionRule precision_rule(std::string_view op) {
  const auto *const found =
      std::lower_bound(std::begin(kRules), std::end(kRules), op,
                       [](const NamedRule &rule, std::string_view name) { return rule.op < name; });
  return found != std::end(kRules) && found->op == op ? found->rule : PrecisionRule{};
}

int64_t precision_rule_count() { return std::ssize(kRules); }

}  // namespace tutti::impl::graph::rewrite
