// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_library.h"

#include <string_view>

#include "backend/cuda/library_kernels.h"

namespace tutti::impl::backend::cuda {

using base::Result;

Result<std::unique_ptr<gpu::Library>> CudaLibrary::open(int32_t ordinal,
                                                        std::shared_ptr<const gpu::LibraryPlanCache> kept) {
  TUTTI_ASSIGN(std::shared_ptr<DeviceHandles> handles, DeviceHandles::of(ordinal));
  handles->ask_again();
  if (kept != nullptr) handles->keep_plans(kept);
  return std::unique_ptr<gpu::Library>(new CudaLibrary(std::move(handles), std::move(kept)));
}

CudaLibrary::~CudaLibrary() { handles_->drop_plans(kept_); }

Result<gpu::Kernel> CudaLibrary::find(gpu::KernelRequest &request) {
  if (request.source != nullptr) return make_normalized_conv2d(request, handles_);
  const std::string_view op = request.node.op;
  if (op == "attention") return make_attention(request, handles_);
  if (op == "attention_gradient") return make_attention_gradient(request, handles_);
  if (op == "matmul") return make_matmul(request, handles_);
  if (op == "conv2d") return make_conv2d(request, handles_);
  if (op == "conv2d_input_gradient") return make_conv2d_input_gradient(request, handles_);
  if (op == "conv2d_kernel_gradient") return make_conv2d_kernel_gradient(request, handles_);
  return gpu::Kernel();
}

}  // namespace tutti::impl::backend::cuda
