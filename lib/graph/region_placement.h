// SPDX-License-Identifier: Apache-2.0
//
// Placement of ops with regions (replicate.h): what stands in a region is placed like what stands outside of it, from
// the placements of the parameters. A loop's states keep the placement that they begin with, but for sums over rows,
// which begin with zeros. Nothing within a region can wait for other contributors, so what would need a sum over all
// rows there is refused, by the name of its node.
//
// Internal to this folder.
#ifndef TUTTI_GRAPH_REGION_PLACEMENT_H_
#define TUTTI_GRAPH_REGION_PLACEMENT_H_

#include <vector>

#include "base/status.h"
#include "graph/replicate.h"

namespace tutti::impl::graph {

/// Is it made of zeros, whatever the run?
bool is_zero(const Graph &graph, ValueId value);

/// The rule of a node with regions.
base::Result<NodePlacement> place_regions(const Graph &graph, const Node &node,
                                          const std::vector<Placement> &placements);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_REGION_PLACEMENT_H_
