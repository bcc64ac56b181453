// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products of f32 lines, in double. Several lines are done at a time, as each addition waits for the
// one before it.
#ifndef TUTTI_BACKEND_CPU_KERNEL_RUNNING_H_
#define TUTTI_BACKEND_CPU_KERNEL_RUNNING_H_

#include <cstdint>

#include "backend/running_lines.h"

namespace tutti::impl::backend::cpu {

/// Lines that are done at a time, in groups of neighbours.
int64_t running_groups(const RunningLines &lines);
/// Groups first .. end - 1; y may be x.
void run_lines(const RunningLines &lines, bool is_product, int64_t first, int64_t end, const float *x, float *y);
/// Lines first .. end - 1 of the gradient of a running product; `scratch` has room for a line.
void run_product_gradient(const RunningLines &lines, int64_t first, int64_t end, const float *dy, const float *x,
                          float *dx, double *scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_RUNNING_H_
