// SPDX-License-Identifier: Apache-2.0
//
// The kernel factories by family; kernel_list.cc says which op has which.
#ifndef TUTTI_BACKEND_GPU_KERNELS_H_
#define TUTTI_BACKEND_GPU_KERNELS_H_

#include "backend/gpu/kernel.h"

namespace tutti::impl::backend::gpu {

// elementwise.cc: one element of the result from one of each operand, with broadcasting.
bool is_elementwise(std::string_view op);
base::Result<Kernel> make_elementwise(KernelRequest &request);

// control_kernels.cc
base::Result<Kernel> make_call_region(KernelRequest &request);
base::Result<Kernel> make_cond(KernelRequest &request);
base::Result<Kernel> make_run_scalar(KernelRequest &request);
base::Result<Kernel> make_scan(KernelRequest &request);

// conv2d_kernels.cc
base::Result<Kernel> make_conv2d(KernelRequest &request);
base::Result<Kernel> make_conv2d_input_gradient(KernelRequest &request);
base::Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request);

// matmul_kernels.cc
base::Result<Kernel> make_matmul(KernelRequest &request);

// pool2d_kernels.cc
base::Result<Kernel> make_avg_pool2d(KernelRequest &request);
base::Result<Kernel> make_avg_pool2d_gradient(KernelRequest &request);
base::Result<Kernel> make_max_pool2d(KernelRequest &request);
base::Result<Kernel> make_max_pool2d_gradient(KernelRequest &request);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNELS_H_
