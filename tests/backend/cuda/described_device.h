// SPDX-License-Identifier: Apache-2.0
//
// A GPU that is described, not here: cuDNN 9.11 and later make plans for it.
#ifndef TUTTI_TESTS_BACKEND_CUDA_DESCRIBED_DEVICE_H_
#define TUTTI_TESTS_BACKEND_CUDA_DESCRIBED_DEVICE_H_

#include "backend/cuda/cudnn_plan.h"

/// An H100. False where cuDNN is missing, older, or does not know what the description says.
bool open_described_device();
/// Has that been opened?
bool has_described_device();
const tutti::impl::backend::cuda::Cudnn &described_cudnn();
tutti::impl::backend::cuda::CudnnDevice described_device();
/// cuDNN compiles most graphs of several operations when their plan is made, which it does with a driver only.
bool has_driver();

#endif  // TUTTI_TESTS_BACKEND_CUDA_DESCRIBED_DEVICE_H_
