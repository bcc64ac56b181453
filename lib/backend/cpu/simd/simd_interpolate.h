// SPDX-License-Identifier: Apache-2.0
//
// Rows of images between rows of others (graph/ops/interpolation.h).
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_INTERPOLATE_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_INTERPOLATE_H_

#include <cstdint>
#include <vector>

#include "graph/ops/interpolation.h"

namespace tutti::impl::backend::cpu {

/// The pixels of a row of the result, and how many numbers each has.
struct InterpolatedRow {
  std::vector<graph::ops::InterpolatedElement> pixels;
  int64_t width = 0;  ///< pixels of a row of x
  int64_t channels = 0;
};

/// One row between two, low + share · (high − low), and along it. `scratch` has room for a row of x.
void interpolate_row(const InterpolatedRow &row, const float *low, const float *high, float share, float *scratch,
                     float *out);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_INTERPOLATE_H_
