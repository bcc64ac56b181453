// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by cuBLASLt.
#include <array>
#include <utility>
#include <vector>

#include "backend/cuda/batch_strides.h"
#include "backend/cuda/library_kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;

namespace {

/// More calls than this for one node are slower than one kernel.
constexpr int64_t kMostCalls = 64;

/// Elements from the beginning of a, b and y at which the calls' matrices begin.
std::vector<std::array<int64_t, 3>> call_offsets(const std::vector<BatchAxis> &outer) {
  std::vector<std::array<int64_t, 3>> offsets = {{0, 0, 0}};
  for (const BatchAxis &axis : outer) {
    std::vector<std::array<int64_t, 3>> longer;
    for (const auto &offset : offsets) {
      for (int64_t i = 0; i < axis.count; ++i)
        longer.push_back({offset[0] + i * axis.steps[0], offset[1] + i * axis.steps[1], offset[2] + i * axis.steps[2]});
    }
    offsets = std::move(longer);
  }
  return offsets;
}

/// Takes the innermost axis into the product itself: as more rows where all its matrices meet the same b, else as
/// cuBLASLt's batch.
void take_axis(ProductShape &shape, const BatchAxis &axis) {
  const bool is_rows = axis.steps[1] == 0 && !shape.transpose_a && axis.steps[0] == shape.m * shape.k &&
                       axis.steps[2] == shape.m * shape.n;
  if (is_rows) {
    shape.m *= axis.count;
    return;
  }
  shape.batches = axis.count;
  shape.a_step = axis.steps[0];
  shape.b_step = axis.steps[1];
  shape.y_step = axis.steps[2];
}

int64_t calls_of(const std::vector<BatchAxis> &axes) {
  int64_t calls = 1;
  for (const BatchAxis &axis : axes)
    calls *= axis.count;
  return calls;
}

}  // namespace

Result<std::shared_ptr<const CublasLtProduct>> make_product(KernelRequest &request, const Handles &handles,
                                                            const ProductShape &shape) {
  const DeviceHandles::Use use(*handles);
  const CublasLt *const lt = handles->cublaslt(use);
  if (lt == nullptr) return std::shared_ptr<const CublasLtProduct>();
  TUTTI_ASSIGN(auto product,
               CublasLtProduct::make(*lt, handles->cublaslt_handle(), shape, handles->product_scratch_bytes()));
  if (product == nullptr) return product;
  (void)request.reserve_scratch(product->scratch_bytes());
  request.kernel_name = "cublaslt";
  return product;
}

Status issue_product(const CublasLtProduct &product, const Frame &frame, const void *a, const void *b, void *y) {
  TUTTI_ASSIGN(const Handles handles, DeviceHandles::of_current_device());
  const DeviceHandles::Use use(*handles);
  if (handles->cublaslt(use) == nullptr) return base::internal_error("cuBLASLt cannot be used on this device");
  return product.issue(handles->cublaslt_handle(), a, b, y, frame.scratch(), frame.stream());
}

Result<Kernel> make_matmul(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MatmulAttributes::from(request.node));
  const std::vector<int64_t> &a = request.input(0).dims, &b = request.input(1).dims, &y = request.output(0).dims;
  ProductShape shape;
  shape.dtype = request.output(0).dtype;
  shape.m = y[y.size() - 2];
  shape.n = y[y.size() - 1];
  shape.k = a[a.size() - (attributes.transpose_a ? 2 : 1)];
  shape.transpose_a = attributes.transpose_a;
  shape.transpose_b = attributes.transpose_b;
  shape.allows_rounding = request.lowered.allows_bf16();
  std::vector<BatchAxis> axes = batch_axes(a, b, y);
  if (request.output(0).elements == 0 || shape.k == 0) return Kernel();
  if (!axes.empty()) {
    take_axis(shape, axes.back());
    axes.pop_back();
  }
  if (calls_of(axes) > kMostCalls) return Kernel();
  TUTTI_ASSIGN(auto product, make_product(request, handles, shape));
  if (product == nullptr) return Kernel();
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(shape.dtype));
  return Kernel([handles, product, bytes, offsets = call_offsets(axes)](const Frame &frame) -> Status {
    for (const auto &[at_a, at_b, at_y] : offsets)
      TUTTI_TRY(issue_product(*product, frame, frame.input_as<char>(0) + at_a * bytes,
                              frame.input_as<char>(1) + at_b * bytes, frame.output_as<char>(0) + at_y * bytes));
    return Status();
  });
}

}  // namespace tutti::impl::backend::cuda
