// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of the batch lie in a value: what random ops and errors about an element go by. A row of a replica is
// row row_offset (the run scalar) + r of the batch of all replicas.
#ifndef TUTTI_BACKEND_BATCH_ROWS_H_
#define TUTTI_BACKEND_BATCH_ROWS_H_

#include <cstdint>

#include "backend/lowered_graph.h"

namespace tutti::impl::backend {

/// [outer, rows · factor, inner] around the axis that carries the batch.
struct BatchRows {
  bool has_batch = false;
  int64_t outer = 1, rows = 1, factor = 1, inner = 1;

  /// Of a value without the batch: one row with all elements.
  static BatchRows of(const LoweredGraph &lowered, graph::ValueId id);
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_BATCH_ROWS_H_
