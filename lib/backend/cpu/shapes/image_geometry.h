// SPDX-License-Identifier: Apache-2.0
//
// Windows over images as the ops' attributes describe them: stride, dilation and the padding they come to.
#ifndef TUTTI_BACKEND_CPU_SHAPES_IMAGE_GEOMETRY_H_
#define TUTTI_BACKEND_CPU_SHAPES_IMAGE_GEOMETRY_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/shapes/attributes.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

struct WindowGeometry {
  int64_t stride[2] = {1, 1};
  int64_t pad_low[2] = {0, 0};
  int64_t pad_high[2] = {0, 0};
};

/// `same` pads so that there are ceil(in / stride) results, the extra element below and right.
inline WindowGeometry window_geometry(const graph::Node &node, const int64_t (&in)[2], const int64_t (&out)[2],
                                      const int64_t (&reach)[2], const int64_t (&default_stride)[2]) {
  WindowGeometry geometry;
  const std::vector<int64_t> stride = integers(node, "stride");
  const std::vector<int64_t> pads = integers(node, "pads");
  const std::string padding = text(node, "padding");
  for (size_t axis = 0; axis < 2; ++axis) {
    geometry.stride[axis] = stride.size() == 2 ? stride[axis] : default_stride[axis];
    if (padding == "same") {
      const int64_t total = std::max<int64_t>(0, (out[axis] - 1) * geometry.stride[axis] + reach[axis] - in[axis]);
      geometry.pad_low[axis] = total / 2;
      geometry.pad_high[axis] = total - total / 2;
    } else if (padding == "explicit" && pads.size() == 4) {
      geometry.pad_low[axis] = pads[2 * axis];
      geometry.pad_high[axis] = pads[2 * axis + 1];
    }
  }
  return geometry;
}

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SHAPES_IMAGE_GEOMETRY_H_
