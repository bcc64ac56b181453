// SPDX-License-Identifier: Apache-2.0
//
// top_k and its gradient. A row's k largest so far are a heap with the least of them at its root; a vector loop finds
// the next element that is larger than that. Elements are compared as whole numbers: the float, made one that has its
// order, above what is left of 2^32 behind the index.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/simd/simd_reduce.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using tensor::DType;

namespace {

struct TopKShape {
  int64_t rows = 0, length = 0, k = 0;
};

TopKShape top_k_shape(const LoweredValue &x, const LoweredValue &chosen) {
  const int64_t length = x.dims.back();
  return {length == 0 ? 0 : x.elements / length, length, chosen.dims.back()};
}

/// NaN is above all, -0 is 0, and the lower index is above the higher.
uint64_t rank_of(float x, int64_t index) {
  auto bits = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);
  bits = std::isnan(x) ? UINT32_MAX : (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(bits) << 32 | (UINT32_MAX - static_cast<uint32_t>(index));
}

int64_t index_of_rank(uint64_t rank) { return UINT32_MAX - static_cast<uint32_t>(rank); }

/// Writes the ranks of the k largest, largest first.
void choose(const float *x, const TopKShape &shape, uint64_t *ranks) {
  uint64_t *const end = ranks + shape.k;
  for (int64_t i = 0; i < shape.k; ++i)
    ranks[i] = rank_of(x[i], i);
  if (shape.k < shape.length) std::make_heap(ranks, end, std::greater<>());
  for (int64_t i = shape.k; i < shape.length; ++i) {
    const float least = x[index_of_rank(ranks[0])];
    if (std::isnan(least)) break;
    i += first_above(x + i, shape.length - i, least);
    if (i == shape.length) break;
    std::pop_heap(ranks, end, std::greater<>());
    end[-1] = rank_of(x[i], i);
    std::push_heap(ranks, end, std::greater<>());
  }
  std::sort(ranks, end, std::greater<>());
}

}  // namespace

bool lower_top_k(Lowering &l, const Node &node) {
  const TopKShape shape = top_k_shape(l.value(node.inputs[0]), l.value(node.outputs[0]));
  if (!l.is_f32(node.inputs[0]) || shape.length > UINT32_MAX) return false;
  constexpr int64_t kSortCost = 16;  // of a chosen element, in elements that are only looked at
  const Parts parts(shape.rows, grain_of(shape.length + kSortCost * shape.k), l.threads());
  const BufferId x = l.read(node.inputs[0]);
  const BufferId values = l.write(node.outputs[0]), indices = l.write(node.outputs[1]);
  const BufferId scratch = l.scratch(parts.threads() * shape.k * static_cast<int64_t>(sizeof(uint64_t)));
  l.emit("simd:top_k", [=](const RunContext &c) {
    c.for_parts(parts, [&](Range rows, int32_t thread) {
      uint64_t *const ranks = static_cast<uint64_t *>(c.buffers[scratch]) + thread * shape.k;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const float *const from = c.in(x) + row * shape.length;
        choose(from, shape, ranks);
        for (int64_t i = 0; i < shape.k; ++i) {
          const int64_t index = index_of_rank(ranks[i]);
          c.out(values)[row * shape.k + i] = from[index];
          static_cast<int64_t *>(c.buffers[indices])[row * shape.k + i] = index;
        }
      }
    });
  });
  return true;
}

bool lower_top_k_gradient(Lowering &l, const Node &node) {
  const TopKShape shape = top_k_shape(l.value(node.outputs[0]), l.value(node.inputs[0]));
  if (!l.is_f32(node.inputs[0])) return false;
  const BufferId dy = l.read(node.inputs[0]), indices = l.read(node.inputs[1]);
  const BufferId dx = l.write(node.outputs[0]);
  l.emit_ranges("copy:top_k_gradient", shape.rows, grain_of(shape.length + shape.k),
                [=](const RunContext &c, Range rows) {
                  for (int64_t row = rows.begin; row < rows.end; ++row) {
                    const float *const from = c.in(dy) + row * shape.k;
                    const int64_t *const index = static_cast<const int64_t *>(c.buffers[indices]) + row * shape.k;
                    float *const to = c.out(dx) + row * shape.length;
                    std::fill_n(to, shape.length, 0.0f);
                    for (int64_t i = 0; i < shape.k; ++i) {
                      if (index[i] >= 0 && index[i] < shape.length) to[index[i]] = from[i];
                    }
                  }
                });
  return true;
}

}  // namespace tutti::impl::backend::cpu
