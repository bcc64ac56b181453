// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of 1x1 as products on a matrix unit (simd_split_gemm.h), as plans: every position of the images is a
// row.
#ifndef TUTTI_BACKEND_CPU_CONVOLUTION_SPLIT_CONVOLUTION_H_
#define TUTTI_BACKEND_CPU_CONVOLUTION_SPLIT_CONVOLUTION_H_

#include <memory>

#include "backend/cpu/dnnl/dnnl_convolution.h"

namespace tutti::impl::backend::cpu {

/// Is it a convolution that make_split_plan takes, where there is a matrix unit, and large enough for it?
bool suits_split_plan(const ConvolutionRequest &request);

/// A plan for one thread and any pass of a 1x1 convolution with stride 1, one group and no padding, images either way,
/// the kernel row-major; UNIMPLEMENTED for others. Immutable.
base::Result<std::shared_ptr<const ConvolutionPlan>> make_split_plan(const ConvolutionRequest &request);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_CONVOLUTION_SPLIT_CONVOLUTION_H_
