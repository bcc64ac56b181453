// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "backend/cpu/kernel/attention.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;

namespace {

/// Multiplications of a part that is worth handing out.
constexpr int64_t kPartProducts = 1'000'000;

/// Of q, the first of q, k and v among a node's inputs.
size_t first_factor(const Node &node) { return node.op.ends_with("_gradient") ? 1 : 0; }

/// Where q, k and v begin in the memory that holds them.
struct Offsets {
  int64_t q = 0, k = 0, v = 0;
};

Offsets read_views(const Lowering &l, const Node &node, AttentionShape &shape) {
  Offsets offsets;
  const size_t q = first_factor(node);
  const auto read = [&](size_t index, int64_t &offset, int64_t &pitch) {
    const HeadView *const view = l.views().of(node.inputs[index]);
    if (view == nullptr) return;
    offset = view->offset;
    pitch = view->pitch;
  };
  read(q, offsets.q, shape.q_pitch);
  read(q + 1, offsets.k, shape.k_pitch);
  read(q + 2, offsets.v, shape.v_pitch);
  return offsets;
}

AttentionShape attention_shape(const Lowering &l, const Node &node) {
  const size_t q = first_factor(node);
  const std::vector<int64_t> &queries = l.value(node.inputs[q]).dims, &keys = l.value(node.inputs[q + 1]).dims;
  const double scale = number(node, "scale");
  AttentionShape shape;
  shape.rows = queries[0], shape.length = queries[1], shape.heads = queries[2], shape.channels = queries[3];
  shape.key_length = keys[1], shape.key_heads = keys[2];
  shape.causal = flag(node, "causal");
  shape.splits = l.fast();
  shape.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(shape.channels)));
  return shape;
}

/// What the node forgets, if it does.
std::optional<AttentionDropout> dropout_of(const Lowering &l, const Node &node, const AttentionShape &shape) {
  if (!node.op.starts_with("dropout_")) return std::nullopt;
  return AttentionDropout::of(l.graph(), node, integer(node, "key"), number(node, "rate"), shape.key_length);
}

uint64_t key_of(const std::optional<AttentionDropout> &dropout, const RunContext &c) {
  return dropout ? dropout->rows.key(c.scalars).value : 0;
}

BufferId read_lengths(Lowering &l, const Node &node, size_t index) {
  return index < node.inputs.size() && node.inputs[index] != kNoValue ? l.read(node.inputs[index]) : BufferId{-1};
}

const int32_t *lengths_of(const RunContext &c, BufferId lengths) {
  return lengths < 0 ? nullptr : static_cast<const int32_t *>(c.buffers[lengths]);
}

/// Parts of items that take `products` multiplications all together.
Parts attention_parts(const Lowering &l, int64_t items, int64_t products) {
  return Parts(items, kPartProducts / std::max<int64_t>(products / std::max<int64_t>(items, 1), 1) + 1, l.threads());
}

int64_t products_of(const AttentionShape &s) { return s.rows * s.heads * s.length * s.key_length * s.channels; }

}  // namespace

bool has_attention_kernel(const LoweredGraph &graph, const Node &attention) {
  const LoweredValue &q = graph.value(attention.inputs[first_factor(attention)]);
  return q.dtype == tensor::DType::f32 && q.dims[2] != 0;
}

bool lower_attention(Lowering &l, const Node &node) {
  if (!has_attention_kernel(l.graph(), node)) return false;
  AttentionShape shape = attention_shape(l, node);
  const Offsets at = read_views(l, node, shape);
  const std::optional<AttentionDropout> dropout = dropout_of(l, node, shape);
  const Parts parts = attention_parts(l, attention_items(shape), 2 * products_of(shape));
  const int64_t floats = attention_scratch_floats(shape);
  const BufferId q = l.read(node.inputs[0]), k = l.read(node.inputs[1]), v = l.read(node.inputs[2]);
  const BufferId lengths = read_lengths(l, node, 3);
  const BufferId y = l.write(node.outputs[0]), statistics = l.write(node.outputs[1]);
  const BufferId scratch = l.scratch(parts.threads() * floats * static_cast<int64_t>(sizeof(float)));
  l.emit("simd:attention", [=](const RunContext &c) {
    const AttentionDropping dropping{dropout ? &*dropout : nullptr, key_of(dropout, c), c.scalars};
    const AttentionArrays arrays{c.in(q) + at.q,
                                 c.in(k) + at.k,
                                 c.in(v) + at.v,
                                 lengths_of(c, lengths),
                                 c.out(y),
                                 c.out(statistics),
                                 dropout ? &dropping : nullptr};
    c.for_parts(
        parts, [&](Range items, int32_t thread) { attention(shape, arrays, items, c.out(scratch) + thread * floats); });
  });
  return true;
}

bool lower_attention_gradient(Lowering &l, const Node &node) {
  if (!has_attention_kernel(l.graph(), node)) return false;
  AttentionShape shape = attention_shape(l, node);
  const Offsets at = read_views(l, node, shape);
  const std::optional<AttentionDropout> dropout = dropout_of(l, node, shape);
  // Two passes cost 7 products where one costs 5.
  const bool in_one = l.threads() == 1 || shape.rows * shape.key_heads >= 2 * l.threads();
  const auto parts_of_pass = [&](AttentionPass pass, int64_t products) {
    return attention_parts(l, attention_gradient_items(shape, pass), products * products_of(shape));
  };
  const Parts first = in_one ? parts_of_pass(AttentionPass::all, 5) : parts_of_pass(AttentionPass::queries, 3);
  const Parts second = in_one ? first : parts_of_pass(AttentionPass::keys, 4);
  const int64_t floats = attention_gradient_scratch_floats(shape);
  BufferId in[6];
  for (size_t i = 0; i < 6; ++i)
    in[i] = l.read(node.inputs[i]);
  const BufferId dy = in[0], q = in[1], k = in[2], v = in[3], y = in[4], statistics = in[5];
  const BufferId lengths = read_lengths(l, node, 6);
  const BufferId dq = l.write(node.outputs[0]), dk = l.write(node.outputs[1]), dv = l.write(node.outputs[2]);
  const int64_t threads = std::max(first.threads(), second.threads());
  const BufferId scratch = l.scratch(threads * floats * static_cast<int64_t>(sizeof(float)));
  l.emit("simd:attention_gradient", [=](const RunContext &c) {
    const AttentionDropping dropping{dropout ? &*dropout : nullptr, key_of(dropout, c), c.scalars};
    const AttentionGradientArrays arrays{c.in(dy),
                                         c.in(q) + at.q,
                                         c.in(k) + at.k,
                                         c.in(v) + at.v,
                                         c.in(y),
                                         c.in(statistics),
                                         lengths_of(c, lengths),
                                         c.out(dq),
                                         c.out(dk),
                                         c.out(dv),
                                         dropout ? &dropping : nullptr};
    const auto run = [&](const Parts &parts, AttentionPass pass) {
      c.for_parts(parts, [&](Range items, int32_t thread) {
        attention_gradient(shape, arrays, pass, items, c.out(scratch) + thread * floats);
      });
    };
    run(first, in_one ? AttentionPass::all : AttentionPass::queries);
    if (!in_one) run(second, AttentionPass::keys);
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
