// SPDX-License-Identifier: Apache-2.0
//
// What is computed before and behind a library's convolution, where the library does not: kernels in its order, a bias.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_CONVOLUTION_STEPS_H_
#define TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_CONVOLUTION_STEPS_H_

#include "backend/gpu/kernel/kernel.h"
#include "backend/gpu/library/library_convolution.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// [height, width, channels / groups, filters] to [filters, height, width, channels / groups].
base::Status to_filters_first(const ConvolutionShape &shape, void *to, const void *from, gpuStream_t stream);
/// And back.
base::Status to_filters_last(const ConvolutionShape &shape, void *to, const void *from, gpuStream_t stream);

/// The convolution, then the bias that is input 2 of the frame: one number of y's dtype for each filter. `y` is output
/// 0.
Kernel with_bias(Kernel convolution, const LoweredValue &y);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_CONVOLUTION_STEPS_H_
