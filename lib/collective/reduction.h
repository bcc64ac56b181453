// SPDX-License-Identifier: Apache-2.0
//
// Element by element reductions over several buffers in host memory, in the order of the buffers. Pure functions.
#ifndef TUTTI_COLLECTIVE_REDUCTION_H_
#define TUTTI_COLLECTIVE_REDUCTION_H_

#include <cstdint>

#include "base/status.h"
#include "collective/group.h"

namespace tutti::impl::collective {

/// INVALID_ARGUMENT for a dtype that cannot be reduced: f32, f64, bf16, i32, i64 and u8 and boolean (maximum, minimum)
/// can.
base::Status check_reducible(tensor::DType dtype, Reduction reduction);

/// destination[i] = sources[0][i] (+) sources[1][i] (+) ... for begin <= i < end, always in that order; of bf16 in
/// float, rounded once. The destination may be one of the sources. The dtype has passed check_reducible().
void reduce_range(tensor::DType dtype, Reduction reduction, void *const *sources, int32_t source_count, int64_t begin,
                  int64_t end, void *destination);

/// INVALID_ARGUMENT unless the operation makes sense in itself (buffers, counts, slices, root, dtype).
base::Status check_operation(const Operation &operation, int32_t contributors);
/// FAILED_PRECONDITION when the buffers lie in memory of a device: for groups that read them on the host.
base::Status check_on_host(const Operation &operation);

}  // namespace tutti::impl::collective

#endif  // TUTTI_COLLECTIVE_REDUCTION_H_
