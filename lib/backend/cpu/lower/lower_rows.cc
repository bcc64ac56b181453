// SPDX-License-Identifier: Apache-2.0
//
// Updates of some rows: sum_rows, rows_at, row_update.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/simd/simd_reduce.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using tensor::DType;

namespace {

/// An index, and where it stands among all.
struct IndexedRow {
  uint32_t index, position;
};

/// Sorts by index, keeping the order of those that are equal: by digits, the lowest first (Knuth, The Art of Computer
/// Programming 3, 5.2.5). No index is above `largest`. Gives the one of two arrays that is sorted then.
IndexedRow *sort_by_index(IndexedRow *rows, IndexedRow *other, int64_t count, uint32_t largest) {
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  for (int shift = 0; shift < 32 && largest >> shift != 0; shift += kDigitBits) {
    const auto digit = [shift](const IndexedRow &row) { return (row.index >> shift) % kDigits; };
    int64_t places[kDigits + 1] = {};
    for (int64_t i = 0; i < count; ++i)
      ++places[digit(rows[i]) + 1];
    for (size_t d = 1; d < kDigits; ++d)
      places[d] += places[d - 1];
    for (int64_t i = 0; i < count; ++i)
      other[places[digit(rows[i])]++] = rows[i];
    std::swap(rows, other);
  }
  return rows;
}

/// What sum_rows sorts: distances from `first`. Indices that are none become `limit`.
struct RowOrder {
  int64_t count, first, limit;
  bool is_wide;

  int64_t scratch_bytes() const { return 2 * count * static_cast<int64_t>(sizeof(IndexedRow)); }
  const IndexedRow *sort(const void *indices, void *scratch) const {
    auto *const rows = static_cast<IndexedRow *>(scratch);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index =
          is_wide ? static_cast<const int64_t *>(indices)[i] : static_cast<const int32_t *>(indices)[i];
      const bool is_index = index >= first && index - first < limit;
      rows[i] = {static_cast<uint32_t>(is_index ? index - first : limit), static_cast<uint32_t>(i)};
    }
    return sort_by_index(rows, rows + count, count, static_cast<uint32_t>(limit));
  }
};

}  // namespace

bool lower_sum_rows(Lowering &l, const Node &node) {
  const auto attributes = graph::ops::SumRowsAttributes::from(node);
  const LoweredValue &indices = l.value(node.inputs[1]);
  if (!attributes.ok() || !l.is_f32(node.inputs[0])) return false;
  const auto first = l.graph().evaluate(attributes->first), limit = l.graph().evaluate(attributes->count);
  if (!first.ok() || !limit.ok()) return false;
  const RowOrder order{indices.elements, first->front(), limit->front(), indices.dtype == DType::i64};
  if (order.count > UINT32_MAX || order.limit >= UINT32_MAX) return false;
  const int64_t width = l.value(node.inputs[0]).row_elements();
  const Parts parts(order.count, grain_of(width), l.threads());
  const BufferId rows = l.read(node.inputs[0]), at = l.read(node.inputs[1]);
  const BufferId sums = l.write(node.outputs[0]), places = l.write(node.outputs[1]);
  const BufferId scratch = l.scratch(order.scratch_bytes());
  l.emit("simd:sum_rows", [=](const RunContext &c) {
    const IndexedRow *const sorted = order.sort(c.buffers[at], c.buffers[scratch]);
    c.for_parts(parts, [&](Range range) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        const uint32_t index = sorted[i].index;
        const bool is_first = index < order.limit && (i == 0 || sorted[i - 1].index != index);
        static_cast<int64_t *>(c.buffers[places])[i] = is_first ? static_cast<int64_t>(index) : -1;
        float *const sum = c.out(sums) + i * width;
        std::fill_n(sum, width, 0.0f);
        for (int64_t next = i; is_first && next < order.count && sorted[next].index == index; ++next)
          add_to(c.in(rows) + sorted[next].position * width, sum, width);
      }
    });
  });
  return true;
}

bool lower_rows_at(Lowering &l, const Node &node) {
  const LoweredValue &x = l.value(node.inputs[0]);
  const int64_t bytes = x.row_elements() * static_cast<int64_t>(tensor::size_bytes(x.dtype)), limit = x.dims[0];
  const BufferId from = l.read(node.inputs[0]), places = l.read(node.inputs[1]), to = l.write(node.outputs[0]);
  l.emit_ranges(
      "copy:rows_at", l.value(node.inputs[1]).elements, grain_of(bytes / 4), [=](const RunContext &c, Range range) {
        for (int64_t i = range.begin; i < range.end; ++i) {
          const int64_t place = static_cast<const int64_t *>(c.buffers[places])[i];
          char *const row = static_cast<char *>(c.buffers[to]) + i * bytes;
          if (place < 0 || place >= limit) {
            std::memset(row, 0, static_cast<size_t>(bytes));
          } else {
            std::memcpy(row, static_cast<const char *>(c.buffers[from]) + place * bytes, static_cast<size_t>(bytes));
          }
        }
      });
  return true;
}

bool lower_row_update(Lowering &l, const Node &node) {
  const LoweredValue &x = l.value(node.inputs[0]);
  const int64_t bytes = x.row_elements() * static_cast<int64_t>(tensor::size_bytes(x.dtype)), limit = x.dims[0];
  const Parts copied(x.elements, kPartElements, l.threads());
  const Parts parts(l.value(node.inputs[2]).elements, grain_of(bytes / 4), l.threads());
  const auto element = static_cast<int64_t>(tensor::size_bytes(x.dtype));
  const BufferId from = l.read(node.inputs[0]), rows = l.read(node.inputs[1]), places = l.read(node.inputs[2]);
  // Where the memory is that of x nothing else is read there: rows are other memory.
  const BufferId to = l.write(node.outputs[0], "", {node.inputs[0]}, true);
  l.emit("copy:row_update", [=](const RunContext &c) {
    char *const target = static_cast<char *>(c.buffers[to]);
    const char *const source = static_cast<const char *>(c.buffers[from]);
    if (target != source) {
      c.for_parts(copied, [&](Range range) {
        std::memcpy(target + range.begin * element, source + range.begin * element,
                    static_cast<size_t>(range.size() * element));
      });
    }
    c.for_parts(parts, [&](Range range) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        const int64_t place = static_cast<const int64_t *>(c.buffers[places])[i];
        if (place < 0 || place >= limit) continue;
        std::memcpy(target + place * bytes, static_cast<const char *>(c.buffers[rows]) + i * bytes,
                    static_cast<size_t>(bytes));
      }
    });
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
