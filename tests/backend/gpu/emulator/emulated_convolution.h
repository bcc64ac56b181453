// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as a library has them that pads both sides of an axis alike: any other padding is an error, and so is a
// result that is not as large as the window makes it.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_CONVOLUTION_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_CONVOLUTION_H_

#include "backend/gpu/kernel/kernel.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu::platform {

/// For conv2d, of which a bias is added behind, and its gradients; empty for other nodes and where a tail follows.
/// `folds`: strides of few channels are folded (folded_stride.h).
base::Result<Kernel> find_convolution(KernelRequest &request, bool folds);

}  // namespace tutti::impl::backend::gpu::platform

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_CONVOLUTION_H_
