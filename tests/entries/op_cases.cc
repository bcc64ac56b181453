// SPDX-License-Identifier: Apache-2.0
//
// Ops of ops.yaml. Those over the rows of a batch are in pieces where sums, or the largest of them, make them whole.
#include "entries/entry_case.h"

namespace tutti::testing::entries {

namespace graph = impl::graph;
using graph::GraphBuilder;
using impl::tensor::DType;

namespace {

Cases unary_ops() {
  Cases cases;
  for (const char *op : {"identity", "stop_gradient", "neg",   "abs",     "sign",  "exp",  "expm1",    "square",
                         "sin",      "cos",           "tanh",  "sigmoid", "relu",  "gelu", "silu",     "softplus",
                         "elu",      "leaky_relu",    "floor", "ceil",    "round", "erf",  "is_finite"})
    cases.push_back({.entry = op, .inputs = {rows({4})}});
  for (const char *op : {"log", "log1p", "sqrt", "rsqrt", "reciprocal"})
    cases.push_back({.entry = op, .inputs = {rows({4}, Fill::positive)}});
  append(cases, {{.entry = "gelu", .inputs = {rows({4})}, .attributes = {{"approximate", true}}},
                 {.entry = "logical_not", .inputs = {flags({4})}},
                 {.entry = "cast", .inputs = {rows({4})}, .attributes = {{"dtype", DType::f32}}},
                 {.entry = "cast", .inputs = {rows({4})}, .attributes = {{"dtype", DType::i32}}, .is_flat = true}});
  return cases;
}

Cases binary_ops() {
  Cases cases;
  for (const char *op : {"add", "sub", "mul", "maximum", "minimum", "equal", "not_equal", "less", "less_equal",
                         "greater", "greater_equal"})
    append(cases,
           {{.entry = op, .inputs = {rows({4}), rows({4})}}, {.entry = op, .inputs = {rows({2, 4}), weights({4})}}});
  for (const char *op : {"div", "mod", "floor_divide"})
    cases.push_back({.entry = op, .inputs = {rows({4}), rows({4}, Fill::positive)}});
  for (const char *op : {"logical_and", "logical_or", "logical_xor"})
    cases.push_back({.entry = op, .inputs = {flags({4}), flags({4})}});
  append(cases, {{.entry = "pow", .inputs = {rows({4}, Fill::positive), rows({4})}},
                 {.entry = "select", .inputs = {flags({4}), rows({4}), weights({4})}}});
  return cases;
}

Cases reduction_ops() {
  Cases cases;
  for (const char *op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    append(cases, {{.entry = op, .inputs = {rows({3, 2})}, .attributes = {{"axes", Ints{1}}}},
                   {.entry = op, .inputs = {rows({3, 2})}, .attributes = {{"axes", Ints{0}}}},
                   {.entry = op, .inputs = {rows({3, 2})}, .attributes = {{"axes", Ints{0, 2}}, {"keep_dims", true}}},
                   {.entry = op, .inputs = {rows({3, 2})}}});
    // The largest of all rows is known when all are, and a loss is a sum.
    const bool is_sum = text(op) == "reduce_sum" || text(op) == "reduce_mean";
    for (size_t i = cases.size() - 3; i < cases.size() && !is_sum; ++i)
      cases[i].in_pieces = kInPieces;
  }
  for (const char *op : {"argmax", "argmin"})
    append(cases, {{.entry = op, .inputs = {rows({5})}}});
  append(cases, {{.entry = "reduce_prod", .inputs = {rows({3, 2})}, .attributes = {{"axes", Ints{1, 2}}}},
                 {.entry = "top_k", .inputs = {rows({5})}, .attributes = {{"k", whole(2)}}},
                 {.entry = "all_finite", .inputs = {weights({5})}},
                 {.entry = "in_top_k", .inputs = {rows({5}), numbers(5, {})}, .attributes = {{"k", whole(2)}}},
                 {.entry = "softmax", .inputs = {rows({5})}},
                 {.entry = "log_softmax", .inputs = {rows({3, 2})}, .attributes = {{"axis", whole(1)}}}});
  return cases;
}

Cases shape_ops() {
  const graph::Dim batch = GraphBuilder::batch();
  return {
      {.entry = "reshape", .inputs = {rows({2, 3})}, .attributes = {{"dims", graph::Dims{batch, 3, 2}}}},
      {.entry = "transpose", .inputs = {rows({2, 3})}, .attributes = {{"permutation", Ints{0, 2, 1}}}},
      {.entry = "broadcast_to", .inputs = {weights({3})}, .attributes = {{"dims", graph::Dims{batch, 2, 3}}}},
      {.entry = "concat", .inputs = {rows({2}), rows({3})}, .attributes = {{"axis", whole(1)}}},
      {.entry = "slice",
       .inputs = {rows({5})},
       .attributes = {{"begin", graph::Dims{0, 1}}, {"size", graph::Dims{batch, 2}}, {"strides", Ints{1, 2}}}},
      {.entry = "pad",
       .inputs = {rows({3})},
       .attributes = {{"low", Ints{0, 1}}, {"high", Ints{0, 2}}, {"value", 0.5}}},
      {.entry = "gather", .inputs = {weights({5, 3}), numbers(5, {2})}},
      {.entry = "gather", .inputs = {rows({5}), fixed_numbers(5, {3})}, .attributes = {{"axis", whole(1)}}},
      {.entry = "one_hot", .inputs = {numbers(4, {2})}, .attributes = {{"depth", whole(4)}}},
      {.entry = "iota", .attributes = {{"dims", graph::Dims{batch, 3}}, {"axis", whole(1)}}},
  };
}

Cases product_ops() {
  return {
      {.entry = "matmul", .inputs = {rows({3}), weights({3, 2})}},
      {.entry = "matmul", .inputs = {rows({3}), rows({2})}, .attributes = {{"transpose_a", true}}},
      {.entry = "matmul", .inputs = {rows({2, 3}), rows({2, 3})}, .attributes = {{"transpose_b", true}}},
      {.entry = "conv2d",
       .inputs = {rows({5, 4, 2}), weights({3, 2, 2, 3}), weights({3})},
       .attributes = {{"stride", Ints{2, 1}}}},
      {.entry = "max_pool2d", .inputs = {rows({5, 4, 2})}, .attributes = {{"window", Ints{2, 2}}}},
      {.entry = "avg_pool2d",
       .inputs = {rows({5, 4, 2})},
       .attributes = {{"window", Ints{3, 2}}, {"padding", text("same")}}},
  };
}

Cases normalization_ops() {
  const Port x = rows({2, 4}), scale = weights({4}), offset = weights({4}), variance = weights({4}, Fill::positive);
  return {
      {.entry = "batch_norm_training", .inputs = {x, scale, offset}, .is_by_micro_batch = true, .results = 1},
      {.entry = "batch_norm_inference", .inputs = {x, scale, offset, weights({4}), variance}, .results = 1},
      {.entry = "layer_norm", .inputs = {x, scale, offset}, .results = 1},
      {.entry = "rms_norm", .inputs = {x, scale}, .results = 1},
      {.entry = "group_norm", .inputs = {x, scale, offset}, .attributes = {{"groups", whole(2)}}, .results = 1},
  };
}

Cases attention_ops() {
  const Port q = rows({3, 2, 4}), k = rows({5, 2, 4});
  return {
      {.entry = "attention", .inputs = {q, k, k}, .attributes = {{"causal", true}}, .results = 1},
      {.entry = "attention", .inputs = {q, k, k, lengths(5)}, .results = 1},
      {.entry = "dropout_attention",
       .inputs = {q, k, k},
       .attributes = {{"rate", 0.25}},
       .is_by_micro_batch = true,
       .results = 1},
  };
}

Cases loss_and_random_ops() {
  const graph::Dims dims{GraphBuilder::batch(), 3};
  return {
      {.entry = "sparse_softmax_cross_entropy", .inputs = {rows({4}), numbers(4, {})}},
      {.entry = "softmax_cross_entropy", .inputs = {rows({4}), given({4}, Fill::shares)}},
      {.entry = "sigmoid_cross_entropy", .inputs = {rows({4}), given({4}, Fill::binary)}},
      {.entry = "dropout", .inputs = {rows({4})}, .attributes = {{"rate", 0.25}}, .is_by_micro_batch = true},
      {.entry = "random_uniform", .attributes = {{"dims", dims}}, .is_by_micro_batch = true},
      {.entry = "random_normal", .attributes = {{"dims", dims}}, .is_by_micro_batch = true},
      {.entry = "random_truncated_normal", .attributes = {{"dims", dims}}, .is_by_micro_batch = true},
  };
}

/// What needs all rows of a step at once, and is no sum.
Cases ops_over_rows() {
  Cases cases = {
      {.entry = "argmax", .inputs = {rows({5})}, .attributes = {{"axis", whole(0)}}},
      {.entry = "argmin", .inputs = {rows({5})}, .attributes = {{"axis", whole(0)}}},
      {.entry = "reduce_prod", .inputs = {rows({3})}, .attributes = {{"axes", Ints{0}}}},
      {.entry = "softmax", .inputs = {rows({3})}, .attributes = {{"axis", whole(0)}}},
      {.entry = "log_softmax", .inputs = {rows({3})}, .attributes = {{"axis", whole(0)}}},
      {.entry = "all_finite", .inputs = {rows({3})}},
      {.entry = "concat", .inputs = {rows({3}), rows({3})}, .attributes = {{"axis", whole(0)}}},
      {.entry = "gather", .inputs = {rows({3}), fixed_numbers(3, {2})}},
  };
  for (EntryCase &one : cases)
    one.in_pieces = kInPieces;
  cases.push_back({.entry = "iota",
                   .attributes = {{"dims", graph::Dims{GraphBuilder::batch(), 3}}, {"axis", whole(0)}},
                   .is_by_micro_batch = true});
  return cases;
}

}  // namespace

Cases op_cases() {
  Cases cases;
  for (const auto &list : {unary_ops, binary_ops, reduction_ops, shape_ops, product_ops, normalization_ops,
                           attention_ops, loss_and_random_ops, ops_over_rows})
    append(cases, list());
  return cases;
}

}  // namespace tutti::testing::entries
