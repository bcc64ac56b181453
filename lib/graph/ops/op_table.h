// SPDX-License-Identifier: Apache-2.0
//
// The generated table of op definitions. Only op_registry.cc uses it.
#ifndef TUTTI_GRAPH_OPS_OP_TABLE_H_
#define TUTTI_GRAPH_OPS_OP_TABLE_H_

#include <vector>

#include "base/status.h"
#include "graph/op_registry.h"

namespace tutti::impl::graph::ops {

/// All definitions, in the order of ops.yaml.
std::vector<OpDefinition> make_op_table();

}  // namespace tutti::impl::graph::ops

#endif  // TUTTI_GRAPH_OPS_OP_TABLE_H_
