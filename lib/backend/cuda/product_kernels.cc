// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by cuBLASLt.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "backend/cuda/library_epilogue.h"
#include "backend/cuda/library_kernels.h"
#include "backend/gpu/device/device_reduce.h"
#include "backend/gpu/fusion/product_sums.h"
#include "backend/gpu/kernels/reduced_trees.h"
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
                                                   handles->product_scratch_bytes(), request.trials, request.probes));
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

namespace {

/// Whether trials find the product with the sum faster than the product and a reduction. No trials, no sums.
Result<bool> is_faster_together(const KernelRequest &request, const Handles &handles, const CublasLtProduct &together,
                                const ProductShape &shape) {
  const DeviceHandles::Use use(*handles);
  const CublasLt &lt = *handles->cublaslt(use);
  ProductShape plain_shape = shape;
  plain_shape.sums = SummedFactor::none;
  TUTTI_ASSIGN(const auto plain, CublasLtProduct::make(lt, handles->cublaslt_handle(), plain_shape,
                                                       handles->product_scratch_bytes(), request.trials));
  if (plain == nullptr) return true;
  TUTTI_ASSIGN(gpu::ReduceWork work, gpu::reduce_work_of(request.lowered, request.lowered.step(request.sum->sum)));
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(shape.dtype));
  const auto result = static_cast<int64_t>(tensor::size_bytes(shape.result_dtype()));
  const int64_t scratch = std::max({plain->scratch_bytes(), together.scratch_bytes(), gpu::reduce_scratch_bytes(work)});
  const auto at = gpu::trial_offsets(std::array<int64_t, 5>{shape.m * shape.k * bytes, shape.k * shape.n * bytes,
                                                            shape.m * shape.n * result,
                                                            std::max(shape.m, shape.n) * result, scratch});
  const std::string names[] = {"apart", "together"};
  const std::string what = base::concat("cublaslt ", lt.cublasLtGetVersion(), " ", describe(shape), " or apart");
  const size_t best =
      request.trials->fastest(what, names, at.back(), [&](size_t i, char *memory, gpuStream_t stream) -> Status {
        const CublasLtProduct::Operands operands{memory + at[0], memory + at[1], memory + at[2],
                                                 nullptr,        nullptr,        memory + at[3]};
        TUTTI_TRY((i == 0 ? *plain : together).issue(handles->cublaslt_handle(), operands, memory + at[4], stream));
        if (i != 0) return Status();
        gpu::ReduceWork issued = work;
        issued.x = memory + at[shape.sums == SummedFactor::a ? 0 : 1];
        issued.y = memory + at[3];
        issued.scratch = memory + at[4];
        return gpu::status_of(gpu::launch_reduce(issued, stream), "launching a reduction");
      });
  return best == 1;
}

}  // namespace

Result<Kernel> make_product_with_sum(KernelRequest &request, const Handles &handles, const ProductShape &shape) {
  if (request.trials == nullptr || shape.batches != 1) return Kernel();
  ProductShape with_sum = shape;
  // Sums are of the dtype of the results, which a cast in the tail may have widened.
  LibraryEpilogue tail;
  const bool is_cast = tail.read(request, with_sum) && !with_sum.has_addend && !with_sum.has_bias &&
                       !with_sum.has_gelu && !with_sum.has_relu && !with_sum.has_gelu_gradient;
  if (!is_cast ||
      request.lowered.value(request.lowered.step(request.sum->sum).outputs[0]).dtype != with_sum.result_dtype())
    return Kernel();
  with_sum.sums = request.sum->factor == 0 ? SummedFactor::a : SummedFactor::b;
  TUTTI_ASSIGN(const auto product, make_product(request, handles, with_sum));
  if (product == nullptr) return Kernel();
  TUTTI_ASSIGN(const bool is_faster, is_faster_together(request, handles, *product, with_sum));
  if (!is_faster) return Kernel();
  return Kernel([handles, product](const Frame &frame) -> Status {
    return issue_product(*product, frame,
                         {frame.input(0), frame.input(1), frame.output(0), nullptr, nullptr, frame.output(1)});
  });
}

Result<Kernel> make_matmul(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MatmulAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  if (y.elements == 0 || request.input(0).elements == 0) return Kernel();
  std::optional<LibraryCalls> plan = gpu::plan_library_calls(y.dtype, request.input(0).dims, request.input(1).dims,
                                                             y.dims, attributes.transpose_a, attributes.transpose_b);
  if (!plan) return Kernel();
  plan->shape.allows_rounding = request.lowered.allows_tf32();
  if (request.sum != nullptr) return make_product_with_sum(request, handles, plan->shape);
  LibraryEpilogue tail;
  if (!tail.read(request, plan->shape)) return Kernel();
  TUTTI_ASSIGN(auto product, make_product(request, handles, plan->shape));
  if (product == nullptr) return Kernel();
  tail.reserve(request);
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(y.dtype));
  const auto result_bytes = static_cast<int64_t>(tensor::size_bytes(plan->shape.result_dtype()));
  return Kernel([handles, product, bytes, result_bytes, tail,
                 calls = std::move(plan->calls)](const Frame &frame) -> Status {
    TUTTI_ASSIGN(const void *const bias, tail.bias(frame));
    const char *const addend = tail.addend(frame), *const gelu_operand = tail.gelu_operand(frame);
    char *const kept = tail.kept_operand(frame);
    for (const auto &[at_a, at_b, at_y] : calls)
      TUTTI_TRY(issue_product(
          *product, frame,
          {frame.input_as<char>(0) + at_a * bytes, frame.input_as<char>(1) + at_b * bytes,
           frame.output_as<char>(0) + at_y * result_bytes, addend == nullptr ? nullptr : addend + at_y * result_bytes,
           bias, nullptr, gelu_operand == nullptr ? nullptr : gelu_operand + at_y * result_bytes,
           kept == nullptr ? nullptr : kept + at_y * result_bytes}));
    return Status();
  });
}

}  // namespace tutti::impl::backend::cuda
