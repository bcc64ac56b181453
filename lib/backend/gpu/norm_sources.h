// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose results are normalised: a library may compute the sums that the normalisation wants while it
// stores them. The convolution then waits for the turn of the normalisation, and one call computes both, with what
// follows (product_tails.h).
#ifndef TUTTI_BACKEND_GPU_NORM_SOURCES_H_
#define TUTTI_BACKEND_GPU_NORM_SOURCES_H_

#include <cstdint>
#include <functional>
#include <map>

#include "backend/gpu/kernel.h"
#include "backend/gpu/product_tails.h"
#include "backend/lowered_graph.h"

namespace tutti::impl::backend::gpu {

/// By step of a batch_norm_training: the conv2d, without a bias, that makes its x, whose result nobody reads before.
/// `is_alone(step)`: its kernel computes nothing else, at its own turn.
std::map<int32_t, int32_t> find_norm_sources(const LoweredGraph &lowered,
                                             const std::function<bool(int32_t step)> &is_alone);

/// The call of both, and of the tail if it is not null: inputs are those of the normalisation, what the tail reads,
/// those of the convolution; outputs the root's or the normalisation's, the statistics, the convolution's. No kernel
/// where the library cannot, or is slower so.
base::Result<KernelCall> make_norm_call(const LoweredGraph &lowered, int32_t norm, int32_t source,
                                        const ProductTail *tail, Library &library, AlgorithmTrials &trials,
                                        std::vector<FaultText> &fault_texts, int64_t *scratch_bytes);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_NORM_SOURCES_H_
