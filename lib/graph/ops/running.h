// SPDX-License-Identifier: Apache-2.0
//
// The attributes that running_sum, running_product and its gradient have in common.
#ifndef TUTTI_GRAPH_OPS_RUNNING_H_
#define TUTTI_GRAPH_OPS_RUNNING_H_

#include "base/status.h"
#include "graph/graph.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::graph::ops {

/// Of a node of any of them.
base::Result<RunningSumAttributes> running_of(const Node &node);

}  // namespace tutti::impl::graph::ops

#endif  // TUTTI_GRAPH_OPS_RUNNING_H_
