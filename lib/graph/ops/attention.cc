// SPDX-License-Identifier: Apache-2.0
//
// attention: shape and gradient rules. As in Dao, Fu, Ermon, Rudra, Ré: FlashAttention: Fast and Memory-Efficient Exact
// Attention with IO-Awareness (2022), https://arxiv.org/abs/2205.14135, what goes from the forward to the backward pass
// is one number per query, not the probabilities.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

constexpr size_t kRows = 0, kLength = 1, kHeads = 2, kChannels = 3;

// Queries at position q, keys and values behind them.
base::Status require_queries_and_keys(const InferContext &context, size_t q) {
  const size_t k = q + 1, v = q + 2;
  for (const size_t i : {q, k, v}) {
    if (context.rank(i) == 4) continue;
    return context.input_error(
        i, base::concat("has rank ", context.rank(i), ", expected 4: [rows, length, heads, channels]"));
  }
  TUTTI_TRY(require_same_dims(context, k, v));
  if (context.dims(q)[kRows] != context.dims(k)[kRows]) return context.inputs_error(q, k, "differ in their rows");
  const Dim &heads = context.dims(q)[kHeads], &key_heads = context.dims(k)[kHeads];
  const Dim &channels = context.dims(q)[kChannels];
  if (channels != context.dims(k)[kChannels]) return context.inputs_error(q, k, "differ in their channels");
  if (channels == 0) return context.input_error(q, "has no channels");
  if (heads == key_heads) return {};
  const bool is_grouped = heads.is_constant() && key_heads.is_constant() && key_heads.constant() > 0 &&
                          heads.constant() % key_heads.constant() == 0;
  if (is_grouped) return {};
  return context.inputs_error(
      q, k,
      base::concat("do not fit: ", heads, " heads of queries are not a multiple of ", key_heads, " heads of keys"));
}

base::Status require_lengths(const InferContext &context, size_t q, size_t lengths) {
  return context.has_input(lengths) ? require_vector(context, lengths, context.dims(q)[kRows]) : base::Status();
}

Dims statistics_dims(const Dims &q) { return {q[kRows], q[kHeads], q[kLength]}; }

}  // namespace

base::Status infer_attention(InferContext &context) {
  TUTTI_TRY(require_queries_and_keys(context, 0));
  TUTTI_TRY(require_lengths(context, 0, 3));
  const Dims q = context.dims(0);
  const tensor::DType dtype = context.input(0).dtype;
  context.add_output(dtype, q);
  context.add_output(statistics_dtype(dtype), statistics_dims(q));
  return {};
}

namespace {

base::Status set_gradients(GradientContext &context, const char *op, const Attributes &attributes) {
  if (context.output_gradient(1) != kNoValue)
    return context.unimplemented("a gradient flows into its statistics; use stop_gradient on them");
  if (context.output_gradient(0) == kNoValue) return {};
  GraphBuilder::Values inputs{context.output_gradient(0), context.input(0),  context.input(1),
                              context.input(2),           context.output(0), context.output(1)};
  if (context.node().inputs.size() > 3) inputs.push_back(context.input(3));
  const GraphBuilder::Values made = context.builder().op_n(op, inputs, attributes);
  for (size_t i = 0; i < 3; ++i) {
    if (context.needs(i)) context.set(i, made[i]);
  }
  return {};
}

}  // namespace

base::Status gradient_attention(GradientContext &context) {
  return set_gradients(context, "attention_gradient", context.node().attributes);
}

// The same is forgotten: the same key, and 0 means the stable id of the forward node.
base::Status gradient_dropout_attention(GradientContext &context) {
  TUTTI_ASSIGN(DropoutAttentionAttributes attributes, DropoutAttentionAttributes::from(context.node()));
  if (attributes.key == 0) attributes.key = context.node().stable_id;
  return set_gradients(context, "dropout_attention_gradient", attributes.to_attributes());
}

base::Status infer_attention_gradient(InferContext &context) {
  constexpr size_t kDy = 0, kQ = 1, kK = 2, kV = 3, kY = 4, kStatistics = 5;
  TUTTI_TRY(require_queries_and_keys(context, kQ));
  TUTTI_TRY(require_same_dims(context, kDy, kQ));
  TUTTI_TRY(require_same_dims(context, kY, kQ));
  TUTTI_TRY(require_lengths(context, kQ, 6));
  const Dims expected = statistics_dims(context.dims(kQ));
  if (context.dims(kStatistics) != expected)
    return context.input_error(kStatistics, base::concat("has a wrong shape, expected ", to_string(expected)));
  const tensor::DType dtype = context.input(kQ).dtype;
  if (context.input(kStatistics).dtype != statistics_dtype(dtype)) {
    return context.input_error(kStatistics, base::concat("has dtype ", tensor::name(context.input(kStatistics).dtype),
                                                         ", expected ", tensor::name(statistics_dtype(dtype))));
  }
  for (const size_t i : {kQ, kK, kV})
    context.add_output(dtype, context.dims(i));
  return {};
}

}  // namespace tutti::impl::graph::ops
