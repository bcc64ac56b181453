// SPDX-License-Identifier: Apache-2.0
//
// What all walks over one mapped dataset share: the plan, who runs its programs, tables made of it, and the seed.
//
// Threads: read only.
#ifndef TUTTI_DATA_GRAPH_GRAPH_TARGET_H_
#define TUTTI_DATA_GRAPH_GRAPH_TARGET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "data/graph/byte_table.h"
#include "data/graph/graph_plan.h"
#include "data/graph/graph_runner.h"

namespace tutti::impl::data {

struct GraphTarget {
  const GraphPlan *plan = nullptr;
  std::shared_ptr<GraphRunner> runner;
  std::shared_ptr<const std::vector<ByteTable>> tables;  ///< one per result, or empty
  int64_t seed = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_GRAPH_TARGET_H_
