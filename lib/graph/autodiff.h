// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation: gradient nodes are appended to the graph under construction.
//
// * Only what lies on a path from `wrt` to `targets` is differentiated (need-grad marking): nothing is built for frozen
//   leaves, integer values or behind stop_gradient.
// * Nodes are visited in reverse execution order, so gradients become ready in that order: those of the last layers
// first.
//   Contributions to one value are added in the order they arise, which is fixed by the graph.
// * call, fusion, scan and cond are differentiated by computing their regions again inside the backward pass;
//   custom_gradient by its backward region. Ops marked `gradient: unimplemented` (mostly gradients of gradients) give
//   UNIMPLEMENTED naming the node, if a gradient must flow through.
//
// Gradient nodes are named gradient/<forward name>/..., so their stable ids follow the forward graph's.
#ifndef TUTTI_GRAPH_AUTODIFF_H_
#define TUTTI_GRAPH_AUTODIFF_H_

#include <span>
#include <vector>

#include "base/status.h"
#include "graph/builder.h"
#include "graph/graph.h"

namespace tutti::impl::graph {

/// d (sum over targets of <target, seed>) / d wrt, one for each wrt: a value of the shape of wrt, or kNoValue when no
/// target depends on it. A seed has the dtype and shape of its target; kNoValue or an empty span = ones. Targets and
/// wrt are floating point values of the top region.
base::Result<std::vector<ValueId>> gradients(GraphBuilder &builder, std::span<const ValueId> targets,
                                             std::span<const ValueId> seeds, std::span<const ValueId> wrt);

/// As gradients(), with zeros in place of kNoValue.
base::Result<std::vector<ValueId>> gradients_or_zeros(GraphBuilder &builder, std::span<const ValueId> targets,
                                                      std::span<const ValueId> seeds, std::span<const ValueId> wrt);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_AUTODIFF_H_
