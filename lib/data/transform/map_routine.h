// SPDX-License-Identifier: Apache-2.0
//
// Maps by graphs that only the Routine runs (ops on bytes, images of any size, random ops per element). Where the
// results have static shapes, elements are read first and then run side by side, straight into the rows of the batch
// behind.
//
// Threads: as Stage and RandomAccess.
#ifndef TUTTI_DATA_TRANSFORM_MAP_ROUTINE_H_
#define TUTTI_DATA_TRANSFORM_MAP_ROUTINE_H_

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "data/dataset/stage.h"
#include "data/element/element.h"
#include "data/graph/graph_target.h"
#include "data/thread/worker_threads.h"

namespace tutti::impl::data {

/// A map over elements that come one by one; its state is that of its input.
std::unique_ptr<Stage> routine_stage(std::unique_ptr<Stage> input, const GraphTarget &target,
                                     const LoopThreads &threads);
/// A map over elements by position; `spec` is that of the input.
std::unique_ptr<RandomAccess> routine_access(std::unique_ptr<RandomAccess> input, const GraphTarget &target,
                                             const ElementSpec &spec, const LoopThreads &threads, int64_t epoch);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_TRANSFORM_MAP_ROUTINE_H_
