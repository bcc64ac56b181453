// SPDX-License-Identifier: Apache-2.0
//
// The factories of kernels that are calls of libraries. Each gives an empty kernel where its library is missing or has
// nothing for the node.
#ifndef TUTTI_BACKEND_CUDA_LIBRARY_KERNELS_H_
#define TUTTI_BACKEND_CUDA_LIBRARY_KERNELS_H_

#include <memory>

#include "backend/cuda/cublaslt_product.h"
#include "backend/cuda/device_handles.h"
#include "backend/gpu/kernel/kernel.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

using Handles = std::shared_ptr<DeviceHandles>;

// product_kernels.cc
base::Result<gpu::Kernel> make_matmul(gpu::KernelRequest &request, const Handles &handles);
/// A product ready to be called; null where there is none. Reserves its scratch memory.
base::Result<std::shared_ptr<const CublasLtProduct>> make_product(gpu::KernelRequest &request, const Handles &handles,
                                                                  const ProductShape &shape);
/// A product that stores the sum of the request, too; empty where there is none or that is slower than both apart.
base::Result<gpu::Kernel> make_product_with_sum(gpu::KernelRequest &request, const Handles &handles,
                                                const ProductShape &shape);
/// On the current device, with the scratch memory of the frame.
base::Status issue_product(const CublasLtProduct &product, const gpu::Frame &frame,
                           const CublasLtProduct::Operands &operands);

// convolution_kernels.cc
base::Result<gpu::Kernel> make_conv2d(gpu::KernelRequest &request, const Handles &handles);
base::Result<gpu::Kernel> make_conv2d_input_gradient(gpu::KernelRequest &request, const Handles &handles);
base::Result<gpu::Kernel> make_conv2d_kernel_gradient(gpu::KernelRequest &request, const Handles &handles);
/// A normalisation, or its moments, with the convolution before it, which gives its sums (gpu/norm_sources.h).
base::Result<gpu::Kernel> make_normalized_conv2d(gpu::KernelRequest &request, const Handles &handles);

// attention_kernels.cc
base::Result<gpu::Kernel> make_attention(gpu::KernelRequest &request, const Handles &handles);
base::Result<gpu::Kernel> make_attention_gradient(gpu::KernelRequest &request, const Handles &handles);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_LIBRARY_KERNELS_H_
