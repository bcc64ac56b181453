// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of 1x1 as products: every position of the images is a row. Here are products on vectors (simd_gemm.h);
// those on a matrix unit are in split_convolution.h.
#ifndef TUTTI_BACKEND_CPU_CONVOLUTION_POINTWISE_CONVOLUTION_H_
#define TUTTI_BACKEND_CPU_CONVOLUTION_POINTWISE_CONVOLUTION_H_

#include <memory>

#include "backend/cpu/dnnl/dnnl_convolution.h"

namespace tutti::impl::backend::cpu {

/// A kernel of 1x1, stride 1, one group, no padding?
bool is_pointwise(const ConvolutionShape &shape);

/// Sums over all positions of dy, row-major or in blocks, for each output channel.
void add_up_positions(const ConvolutionShape &shape, bool blocked, const float *dy, float *dbias);

/// A gradient of a convolution that make_pointwise_plan takes, with so many channels that it may be faster than the
/// library on the vectors of this processor? The library's forward pass is not behind.
bool suits_pointwise_plan(const ConvolutionRequest &request);

/// A plan for one thread and either gradient, images and kernel row-major; UNIMPLEMENTED for others. Immutable.
base::Result<std::shared_ptr<const ConvolutionPlan>> make_pointwise_plan(const ConvolutionRequest &request);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_CONVOLUTION_POINTWISE_CONVOLUTION_H_
