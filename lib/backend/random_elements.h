// SPDX-License-Identifier: Apache-2.0
//
// Which random number belongs to which element: what every backend's random ops share, so that their numbers agree bit
// for bit. A value is seen as [outer, rows · factor, inner] around the axis that carries the batch. The element (o, r ·
// factor + j, i) belongs to row r of the replica, that is row row_offset + r of the global batch, and is number
// (o · factor + j) · inner + i in its row. A value without the batch is row 0 entirely, the same on all replicas.
// In a scan every iteration has numbers of its own, keyed by the position in the sequence: a backward pass that
// computes the iterations again, in the other direction, meets the same ones.
//
//   RandomRows rows = RandomRows::of(lowered, node.outputs[0], key);
//   const base::RandomKey key = rows.key(scalars);
//   const uint32_t word = key.words(rows.global_row(r, scalars), e / 4)[e % 4];
//
// dropout keeps an element when uniform_float(word) >= rate. random_uniform is uniform_in(low, high, word).
#ifndef TUTTI_BACKEND_RANDOM_ELEMENTS_H_
#define TUTTI_BACKEND_RANDOM_ELEMENTS_H_

#include <tutti/plugin/backend.h>

#include <cmath>
#include <cstdint>

#include "backend/batch_rows.h"
#include "backend/lowered_graph.h"
#include "base/random/philox.h"

namespace tutti::impl::backend {

struct RandomRows : BatchRows {
  uint64_t stream = 0;  ///< what keys the op: its key attribute, or the stable id of its node

  /// `key_attribute` 0 = the stable id.
  static RandomRows of(const LoweredGraph &lowered, const graph::Node &node, int64_t key_attribute);

  int64_t elements_per_row() const { return outer * factor * inner; }
  /// `iteration` as scan_iteration() made it; 0 outside of any scan.
  base::RandomKey key(const int64_t *scalars, int64_t iteration = 0) const {
    const auto key = base::RandomKey::of(static_cast<uint64_t>(scalars[TUTTI_RUN_SEED]), stream,
                                         static_cast<uint64_t>(scalars[TUTTI_RUN_BATCH_COUNTER]));
    return iteration == 0 ? key : key.fold(static_cast<uint64_t>(iteration), 0);
  }
  uint64_t global_row(int64_t row, const int64_t *scalars) const {
    return static_cast<uint64_t>(has_batch ? scalars[TUTTI_RUN_ROW_OFFSET] + row : 0);
  }
  /// Position in the value of element `element` of row `row`.
  int64_t position(int64_t row, int64_t element) const {
    const int64_t i = element % inner, j = element / inner % factor, o = element / inner / factor;
    return ((o * rows + row) * factor + j) * inner + i;
  }
};

/// Which iteration runs: position `index` of a scan within iteration `outer` of the scans around it.
inline int64_t scan_iteration(int64_t outer, int64_t index) {
  if (outer == 0) return index + 1;
  return static_cast<int64_t>(
      base::RandomKey{static_cast<uint64_t>(outer)}.fold(static_cast<uint64_t>(index), 1).value);
}

/// A float in [low, high): rounding never reaches high.
inline float uniform_in(double low, double high, uint32_t word) {
  const float value = static_cast<float>(low + static_cast<double>(base::uniform_float(word)) * (high - low));
  return value < static_cast<float>(high) || low >= high
             ? value
             : std::nextafter(static_cast<float>(high), static_cast<float>(low));
}

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_RANDOM_ELEMENTS_H_
