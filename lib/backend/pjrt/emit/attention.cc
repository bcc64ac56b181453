// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradient, with dropout or without, in f32 or f64. Scores are [rows, key heads, length, group,
// keys], where a group is the heads of the queries that share a head of the keys: s = scale · <q, k>, L =
// log(sum(exp(s))).
//   p = exp(s − L)        y = sum(p · v)
//   dv = sum(p · dy)      ds = scale · p · (<dy, v> − <dy, y>)      dq = sum(ds · k)      dk = sum(ds · q)
// With dropout p · m stands for p in y and dv, and <dy, v> · m for <dy, v>, where m is 0 or 1 / (1 − rate). Without a
// visible key y is 0 and L infinite.
#include <cmath>
#include <limits>
#include <optional>

#include "backend/attention_dropout.h"
#include "backend/pjrt/emit/op_emitters.h"
#include "backend/pjrt/emit/random_words.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

struct AttentionShape {
  int64_t rows, length, heads, channels, keys, key_heads;

  int64_t group() const { return heads / key_heads; }
  Dims queries() const { return {rows, length, heads, channels}; }
  Dims grouped() const { return {rows, length, key_heads, group(), channels}; }
  Dims scores() const { return {rows, key_heads, length, group(), keys}; }
  Dims statistics() const { return {rows, heads, length}; }
};

/// A node's attention: the axes of its operands, and what is common to the op and its gradient.
class Attention {
 public:
  /// `q`: the input of the queries, before keys and values.
  template <typename Attributes>
  Attention(NodeEmitter &node, const Attributes &attributes, size_t q, size_t lengths)
      : node_(node), text_(node.text()), lengths_(lengths), causal_(attributes.causal) {
    const Dims &queries = node.input(q).dims, &keys = node.input(q + 1).dims;
    shape_ = {queries[0], queries[1], queries[2], queries[3], keys[1], keys[2]};
    scale_ = attributes.scale != 0 ? attributes.scale : 1 / std::sqrt(static_cast<double>(shape_.channels));
    q_ = text_.reshape(node.wide_input(q), shape_.grouped());
    k_ = node.wide_input(q + 1);
    v_ = node.wide_input(q + 2);
  }

  const AttentionShape &shape() const { return shape_; }
  double scale() const { return scale_; }
  const Value &q() const { return q_; }
  const Value &k() const { return k_; }
  const Value &v() const { return v_; }
  Value grouped(const Value &queries) { return text_.reshape(queries, shape_.grouped()); }

  /// <a, b> over the channels, for each pair of positions: [rows, key heads, length, group, keys].
  Value pairs(const Value &a, const Value &b) { return text_.product(a, b, {{0, 2}, {0, 2}, {4}, {3}}); }
  /// Sums of what the keys have, weighted for each query: as the queries.
  Value over_keys(const Value &weights, const Value &of_keys) {
    const Value sums = text_.product(weights, of_keys, {{0, 1}, {0, 2}, {4}, {1}});  // r, kh, length, group, channels
    return text_.reshape(text_.transpose(sums, {0, 2, 1, 3, 4}), shape_.queries());
  }
  /// Sums of what the queries have, weighted for each key: as the keys.
  Value over_queries(const Value &weights, const Value &of_queries) {
    const Value sums = text_.product(weights, of_queries, {{0, 1}, {0, 2}, {2, 3}, {1, 3}});  // r, kh, keys, channels
    return text_.transpose(sums, {0, 2, 1, 3});
  }
  /// A number of each query for each of its keys, of [rows, key heads, length, group].
  Value spread(const Value &of_queries) { return text_.broadcast(of_queries, shape_.scores(), {0, 1, 2, 3}); }
  /// [rows, heads, length] as [rows, key heads, length, group], and back.
  Value from_statistics(const Value &statistics) {
    const Value apart = text_.reshape(statistics, {shape_.rows, shape_.key_heads, shape_.group(), shape_.length});
    return text_.transpose(apart, {0, 1, 3, 2});
  }
  Value to_statistics(const Value &of_queries) {
    return text_.reshape(text_.transpose(of_queries, {0, 1, 3, 2}), shape_.statistics());
  }

  /// Scaled scores, −infinity where a query does not see a key.
  Value visible_scores() {
    const Value scores = text_.mul(pairs(q_, k_), scale_);
    const Value visible = visibility();
    if (visible.is_absent()) return scores;
    return text_.select(visible, scores, text_.like(scores, -std::numeric_limits<double>::infinity()));
  }

 private:
  /// Whether a query sees a key, like the scores; absent where all see all.
  Value visibility() {
    Value visible;
    const Value key = text_.iota(DType::i64, shape_.scores(), 4);
    const auto restrict_to = [&](const Value &count) {
      const Value seen = text_.compare("LT", key, count);
      visible = visible.is_absent() ? seen : text_.binary("and", visible, seen);
    };
    if (node_.has_input(lengths_))
      restrict_to(text_.broadcast(text_.convert(node_.input(lengths_), DType::i64), shape_.scores(), {0}));
    if (causal_) {
      const Value query = text_.iota(DType::i64, shape_.scores(), 2);
      restrict_to(text_.add(query, static_cast<double>(shape_.keys - shape_.length + 1)));
    }
    return visible;
  }

  NodeEmitter &node_;
  ProgramText &text_;
  const size_t lengths_;
  const bool causal_;
  AttentionShape shape_{};
  double scale_ = 1;
  Value q_, k_, v_;
};

/// m: 0 or 1 / (1 − rate), like the scores.
Value dropout_mask(NodeEmitter &node, const AttentionShape &shape, const AttentionDropout &dropout, DType dtype) {
  ProgramText &text = node.text();
  const int64_t outer_rows = shape.rows / std::max<int64_t>(dropout.factor, 1);
  const int64_t blocks = dropout.factor * shape.heads * shape.length * dropout.blocks;
  const Value words = random_words(text, random_key(node, dropout.rows.stream),
                                   global_rows(node, outer_rows, dropout.rows.has_batch), blocks);
  const Dims apart = {shape.rows, shape.heads, shape.length, 4 * dropout.blocks};
  const Value used = text.slice_axis(text.reshape(words, apart), 3, 0, shape.keys);
  const Value grouped = text.transpose(
      text.reshape(used, {shape.rows, shape.key_heads, shape.group(), shape.length, shape.keys}), {0, 1, 3, 2, 4});
  const Value bits = text.binary("shift_right_logical", grouped, text.like(grouped, 8));
  const Value is_kept = text.compare("GE", bits, std::ceil(dropout.rate * 0x1.0p24));
  return text.select(is_kept, text.splat(dtype, shape.scores(), 1 / (1 - dropout.rate)),
                     text.splat(dtype, shape.scores(), 0));
}

/// Log of the sum of exponentials over the keys; infinite where there is none. [rows, key heads, length, group].
Value log_sum(ProgramText &text, const Value &scores) {
  const Value largest = text.reduce(Reduction::max, scores, {4});
  const double infinite = std::numeric_limits<double>::infinity();
  const Value has_none = text.compare("EQ", largest, -infinite);
  const Value base = text.select(has_none, text.like(largest, 0), largest);
  const Value shifted = text.sub(scores, text.broadcast(base, scores.dims, {0, 1, 2, 3}));
  const Value sum = text.reduce(Reduction::sum, text.unary("exponential", shifted), {4});
  return text.select(has_none, text.like(sum, infinite), text.add(base, text.unary("log", sum)));
}

Value apply_mask(ProgramText &text, const Value &x, const Value &mask) {
  return mask.is_absent() ? x : text.mul(x, mask);
}

void forward(NodeEmitter &node, Attention &attention, const std::optional<AttentionDropout> &dropout) {
  ProgramText &text = node.text();
  const Value scores = attention.visible_scores();
  const Value total = log_sum(text, scores);
  const Value p = text.unary("exponential", text.sub(scores, attention.spread(total)));
  const Value mask = dropout ? dropout_mask(node, attention.shape(), *dropout, p.dtype) : Value();
  node.set_output(0, attention.over_keys(apply_mask(text, p, mask), attention.v()));
  node.set_output(1, attention.to_statistics(total));
}

void backward(NodeEmitter &node, Attention &attention, const std::optional<AttentionDropout> &dropout) {
  ProgramText &text = node.text();
  const Value dy = attention.grouped(node.wide_input(0)), y = attention.grouped(node.wide_input(4));
  const Value total = attention.from_statistics(text.convert(node.input(5), dy.dtype));
  const Value scores = attention.visible_scores();
  const Value p = text.unary("exponential", text.sub(scores, attention.spread(total)));
  const Value mask = dropout ? dropout_mask(node, attention.shape(), *dropout, p.dtype) : Value();
  // [rows, length, key heads, group] → as the scores.
  const Value average = text.transpose(text.reduce(Reduction::sum, text.mul(dy, y), {4}), {0, 2, 1, 3});
  const Value dp = apply_mask(text, attention.pairs(dy, attention.v()), mask);
  const Value rest = text.sub(dp, attention.spread(average));
  const Value ds = text.mul(text.mul(p, rest), attention.scale());
  node.set_output(0, attention.over_keys(ds, attention.k()));
  node.set_output(1, attention.over_queries(ds, attention.q()));
  node.set_output(2, attention.over_queries(apply_mask(text, p, mask), dy));
}

template <typename Attributes>
AttentionDropout dropout_of(NodeEmitter &node, const Attributes &attributes, const Attention &attention) {
  return AttentionDropout::of(node.lowered(), node.node(), attributes.key, attributes.rate, attention.shape().keys);
}

}  // namespace

Status emit_attention(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionAttributes::from(node.node()));
  Attention attention(node, attributes, 0, 3);
  forward(node, attention, std::nullopt);
  return Status();
}

Status emit_attention_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionGradientAttributes::from(node.node()));
  Attention attention(node, attributes, 1, 6);
  backward(node, attention, std::nullopt);
  return Status();
}

Status emit_dropout_attention(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttentionAttributes::from(node.node()));
  Attention attention(node, attributes, 0, 3);
  forward(node, attention, dropout_of(node, attributes, attention));
  return Status();
}

Status emit_dropout_attention_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttentionGradientAttributes::from(node.node()));
  Attention attention(node, attributes, 1, 6);
  backward(node, attention, dropout_of(node, attributes, attention));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
