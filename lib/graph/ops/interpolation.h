// SPDX-License-Identifier: Apache-2.0
//
// Where the elements of an axis lie that is interpolated to another length.
#ifndef TUTTI_GRAPH_OPS_INTERPOLATION_H_
#define TUTTI_GRAPH_OPS_INTERPOLATION_H_

#include <cstdint>
#include <vector>

namespace tutti::impl::graph::ops {

/// An element is x[low] + share · (x[high] − x[low]), or x[low] alone where the share is 0.
struct InterpolatedElement {
  int64_t low = 0, high = 0;
  double share = 0;  ///< 0 <= share < 1
};

/// Element i of `to` lies at (i + 0.5) · from / to − 0.5 of `from` >= 1 elements, or at the nearest of them.
InterpolatedElement interpolated(int64_t i, int64_t from, int64_t to);
/// All of them.
std::vector<InterpolatedElement> interpolated_axis(int64_t from, int64_t to);

}  // namespace tutti::impl::graph::ops

#endif  // TUTTI_GRAPH_OPS_INTERPOLATION_H_
