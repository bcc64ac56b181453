// SPDX-License-Identifier: Apache-2.0
//
// A graph as TensorFlow's message GraphDef (core/framework/graph.proto), for TensorBoard's page of graphs: nodes by
// their scopes, what they take, the shapes of what they give (-1 for a dimension that is known only with a batch), and
// their attributes. It is to be looked at: no TensorFlow could run it.
//
// Pure functions.
#ifndef TUTTI_MONITOR_GRAPH_DEFINITION_H_
#define TUTTI_MONITOR_GRAPH_DEFINITION_H_

#include <string>

#include "graph/graph.h"

namespace tutti::impl::monitor {

/// The message. Nodes of a region are named below the node that owns it: "loop/region_0/step/add".
std::string graph_definition(const graph::Graph &graph);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_GRAPH_DEFINITION_H_
