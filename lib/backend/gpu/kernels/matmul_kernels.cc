// SPDX-License-Identifier: Apache-2.0
//
// Batched products of matrices.
#include "backend/gpu/device/device_matmul.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;
using Extents = std::vector<int64_t>;

namespace {

/// Element of each batch of `dims` from batch to batch of `to`, by axis: 0 where the operand is repeated.
Extents batch_strides(const Extents &dims, const Extents &to) {
  Extents strides(to.size(), 0);
  int64_t stride = dims[dims.size() - 2] * dims[dims.size() - 1];
  for (size_t i = 3; i <= dims.size(); ++i) {
    const int64_t dim = dims[dims.size() - i];
    strides[to.size() - (i - 2)] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  return strides;
}

/// The axes of batches, neighbours merged where both operands walk them evenly.
Status set_batches(const Extents &dims, const Extents &a, const Extents &b, Matmul &matmul) {
  matmul.batches = 1;
  int32_t rank = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t dim = dims[axis];
    matmul.batches *= dim;
    if (dim == 1) continue;
    const bool merges =
        rank > 0 && matmul.a_strides[rank - 1] == a[axis] * dim && matmul.b_strides[rank - 1] == b[axis] * dim;
    if (!merges && rank == Matmul::kAxes)
      return base::unimplemented("batches that are repeated along more than ", Matmul::kAxes, " axes in turn");
    if (!merges) ++rank;
    matmul.batch_dims[rank - 1] = merges ? matmul.batch_dims[rank - 1] * dim : dim;
    matmul.a_strides[rank - 1] = a[axis];
    matmul.b_strides[rank - 1] = b[axis];
  }
  matmul.batch_rank = rank;
  return Status();
}

/// Batches of rows that are multiplied by one matrix are a matrix of more rows.
void merge_rows(Matmul &matmul) {
  if (matmul.batch_rank != 1 || matmul.b_strides[0] != 0 || matmul.a.column_stride != 1 ||
      matmul.a_strides[0] != matmul.m * matmul.a.row_stride)
    return;
  matmul.m *= matmul.batches;
  matmul.batches = 1;
  matmul.batch_rank = 0;
}

}  // namespace

Result<Kernel> make_matmul(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MatmulAttributes::from(request.node));
  const Extents &a = request.input(0).dims, &b = request.input(1).dims, &y = request.output(0).dims;
  Matmul matmul{};
  matmul.dtype = request.output(0).dtype;
  matmul.m = y[y.size() - 2];
  matmul.n = y[y.size() - 1];
  matmul.k = attributes.transpose_a ? a[a.size() - 2] : a.back();
  matmul.a = attributes.transpose_a ? MatrixView{nullptr, 1, a.back()} : MatrixView{nullptr, a.back(), 1};
  matmul.b = attributes.transpose_b ? MatrixView{nullptr, 1, b.back()} : MatrixView{nullptr, b.back(), 1};
  const Extents batch(y.begin(), y.end() - 2);
  TUTTI_TRY(set_batches(batch, batch_strides(a, batch), batch_strides(b, batch), matmul));
  merge_rows(matmul);
  matmul.plan = plan_product(
      {matmul.batches, matmul.m, matmul.n, matmul.k, matmul.dtype == DType::f64, request.lowered.is_row_invariant()});
  const int64_t scratch = request.reserve_scratch(matmul.plan.scratch_bytes);
  request.kernel_name = "simt_product";
  return Kernel([matmul, scratch, tail = KeptEpilogue(request)](const Frame &frame) {
    Matmul own = matmul;
    Epilogue epilogue;
    own.epilogue = tail.place(frame, epilogue);
    own.a.data = frame.input(0);
    own.b.data = frame.input(1);
    own.y = frame.output(0);
    own.scratch = frame.scratch_as<char>(scratch);
    return status_of(launch_matmul(own, frame.stream()), "launching matmul");
  });
}

}  // namespace tutti::impl::backend::gpu
