// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by cuBLASLt.
#include <optional>
#include <utility>

#include "backend/cuda/library_kernels.h"
#include "backend/cuda/library_tail.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;

Result<std::shared_ptr<const CublasLtProduct>> make_product(KernelRequest &request, const Handles &handles,
                                                            const ProductShape &shape) {
  const DeviceHandles::Use use(*handles);
  const CublasLt *const lt = handles->cublaslt(use);
  if (lt == nullptr) return std::shared_ptr<const CublasLtProduct>();
  TUTTI_ASSIGN(auto product, CublasLtProduct::make(*lt, handles->cublaslt_handle(), shape,
                                                   handles->product_scratch_bytes(), request.trials));
  if (product == nullptr) return product;
  (void)request.reserve_scratch(product->scratch_bytes());
  request.kernel_name = "cublaslt";
  return product;
}

Status issue_product(const CublasLtProduct &product, const Frame &frame, const CublasLtProduct::Operands &operands) {
  TUTTI_ASSIGN(const Handles handles, DeviceHandles::of_current_device());
  const DeviceHandles::Use use(*handles);
  if (handles->cublaslt(use) == nullptr) return base::internal_error("cuBLASLt cannot be used on this device");
  return product.issue(handles->cublaslt_handle(), operands, frame.scratch(), frame.stream());
}

Result<Kernel> make_matmul(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MatmulAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  if (y.elements == 0 || request.input(0).elements == 0) return Kernel();
  std::optional<ProductPlan> plan = plan_product(y.dtype, request.input(0).dims, request.input(1).dims, y.dims,
                                                 attributes.transpose_a, attributes.transpose_b);
  if (!plan) return Kernel();
  plan->shape.allows_rounding = request.lowered.allows_bf16();
  LibraryTail tail;
  if (!tail.read(request, plan->shape)) return Kernel();
  TUTTI_ASSIGN(auto product, make_product(request, handles, plan->shape));
  if (product == nullptr) return Kernel();
  tail.reserve(request);
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(y.dtype));
  const auto result_bytes = static_cast<int64_t>(tensor::size_bytes(plan->shape.result_dtype()));
  return Kernel(
      [handles, product, bytes, result_bytes, tail, calls = std::move(plan->calls)](const Frame &frame) -> Status {
        TUTTI_ASSIGN(const void *const bias, tail.bias(frame));
        const char *const addend = tail.addend(frame);
        for (const auto &[at_a, at_b, at_y] : calls)
          TUTTI_TRY(issue_product(*product, frame,
                                  {frame.input_as<char>(0) + at_a * bytes, frame.input_as<char>(1) + at_b * bytes,
                                   frame.output_as<char>(0) + at_y * result_bytes,
                                   addend == nullptr ? nullptr : addend + at_y * result_bytes, bias}));
        return Status();
      });
}

}  // namespace tutti::impl::backend::cuda
