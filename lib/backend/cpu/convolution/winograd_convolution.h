// SPDX-License-Identifier: Apache-2.0
//
// Our own Winograd convolutions (simd_winograd.h) as plans: what stands where oneDNN has none, which is all of its
// releases from 3.2 on, and processors without AVX-512 before.
#ifndef TUTTI_BACKEND_CPU_CONVOLUTION_WINOGRAD_CONVOLUTION_H_
#define TUTTI_BACKEND_CPU_CONVOLUTION_WINOGRAD_CONVOLUTION_H_

#include <memory>

#include "backend/cpu/dnnl/dnnl_convolution.h"

namespace tutti::impl::backend::cpu {

/// A plan for any pass of a 3x3 convolution with stride and dilation 1, one group, channels that are multiples of 16,
/// padding up to 2; UNIMPLEMENTED for others. Images may lie either way; kernels and their gradients lie as
/// "conv/ABcd16b16a" ("any"), or row-major. For request.threads threads: it cuts itself into parts, whose number never
/// changes the bits of a result. Immutable.
base::Result<std::shared_ptr<const ConvolutionPlan>> make_winograd_plan(const ConvolutionRequest &request);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_CONVOLUTION_WINOGRAD_CONVOLUTION_H_
