// SPDX-License-Identifier: Apache-2.0
//
// Less memory for a pass over it: what a batch normalisation and an activation make in the forward pass is made again
// for the gradients that read it, of a convolution's kernel above all, instead of being kept until then. What it is
// made of, x and the statistics, the gradient of the normalisation keeps anyway (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016).
#ifndef TUTTI_BACKEND_GPU_FUSION_RECOMPUTED_NORMS_H_
#define TUTTI_BACKEND_GPU_FUSION_RECOMPUTED_NORMS_H_

#include <cstdint>

#include "backend/lowered_graph.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// What is smaller is kept: the launch would cost more than the memory is worth.
inline constexpr int64_t kLeastRecomputedBytes = int64_t{64} << 20;

/// Makes values of at least so many bytes again, to the bit. A relu_gradient that goes to the normalisation's own
/// gradient does not count as a reader: that finds the sign in x (norm_fronts.h).
base::Status recompute_norms(LoweredGraph &lowered, int64_t least_bytes);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_RECOMPUTED_NORMS_H_
