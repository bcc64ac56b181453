// SPDX-License-Identifier: Apache-2.0
//
// Biases in front of batch normalisations. What a batch is normalised to, and every gradient of that, does not depend
// on a bias that each of its rows has: only the mean does. So the convolution goes without, its kernel may give the
// sums that the normalisation wants (norm_sources.h), and the bias is added to the mean, or to the sums of a batch that
// several devices share. A large bias then takes no digits from elements of 16 bits either.
#ifndef TUTTI_BACKEND_GPU_FUSION_NORM_BIASES_H_
#define TUTTI_BACKEND_GPU_FUSION_NORM_BIASES_H_

#include "base/status.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

/// An equal graph in which no conv2d of f32, which is going to be `half`, or of that has a bias if nothing reads
/// its result but batch normalisations and their gradients, of which one is of the statistics of the batch.
base::Result<graph::Graph> move_norm_biases(graph::Graph graph, tensor::DType half);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_NORM_BIASES_H_
