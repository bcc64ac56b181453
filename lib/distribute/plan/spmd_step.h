// SPDX-License-Identifier: Apache-2.0
//
// A step as one program that all devices run at once, each on its rows (SPMD: single program, multiple data), for
// backends that lower collectives. It is a joined step whose sums and gradients are reduced over the devices in its
// middle. So every device has the same loss, the same `ok` and the same update: all make it, or none.
//
// Threads: functions without state.
#ifndef TUTTI_DISTRIBUTE_PLAN_SPMD_STEP_H_
#define TUTTI_DISTRIBUTE_PLAN_SPMD_STEP_H_

#include <span>
#include <string_view>

#include "graph/graph.h"

namespace tutti::impl::distribute {

/// The same graph, but what it writes to entries with these prefixes is the sum over all devices.
graph::Graph with_reduced_writes(const graph::Graph &accumulate, std::span<const std::string_view> prefixes);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_SPMD_STEP_H_
