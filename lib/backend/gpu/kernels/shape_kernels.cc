// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements without computing: transpose, broadcast_to, reverse_axes, concat, slice and its gradient, pad.
#include <algorithm>

#include "backend/gpu/kernel/element_bits.h"
#include "backend/gpu/kernel/extents.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/gpu/library/move_plan.h"
#include "graph/ops/op_attributes.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

Extents dense_strides(const Extents &dims) {
  Extents strides(dims.size());
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

/// Output 0, dense, reads input 0 from element `origin` on through strides.
Kernel read_kernel(const LoweredValue &y, const Extents &strides, int64_t origin) {
  StridedRead read{};
  read.element_bytes = static_cast<int64_t>(tensor::size_bytes(y.dtype));
  read.rank = static_cast<int32_t>(y.dims.size());
  std::copy(y.dims.begin(), y.dims.end(), read.dims);
  std::copy(strides.begin(), strides.end(), read.strides);
  return [read, origin, elements = y.elements](const Frame &frame) {
    if (elements == 0) return Status();
    StridedRead placed = read;
    placed.to = frame.output(0);
    placed.from = frame.input_as<char>(0) + origin * read.element_bytes;
    return status_of(launch_strided_read(simplified(placed), frame.stream()), "launching a move");
  };
}

/// Output 0 is `fill` with input 0 in it.
Kernel placement_kernel(const LoweredValue &y, const Extents &counts, const Extents &low, const Extents &steps,
                        uint64_t fill) {
  Placement placement{};
  placement.element_bytes = static_cast<int64_t>(tensor::size_bytes(y.dtype));
  placement.fill = fill;
  placement.fill_bytes = placement.element_bytes;
  placement.rank = static_cast<int32_t>(y.dims.size());
  std::copy(y.dims.begin(), y.dims.end(), placement.dims);
  std::copy(counts.begin(), counts.end(), placement.counts);
  std::copy(low.begin(), low.end(), placement.low);
  std::fill_n(placement.step, kMoveAxes, 1);
  std::copy(steps.begin(), steps.end(), placement.step);
  return [placement, elements = y.elements](const Frame &frame) {
    if (elements == 0) return Status();
    Placement placed = placement;
    placed.to = frame.output(0);
    placed.from = frame.input(0);
    return status_of(launch_placement(simplified(placed), frame.stream()), "launching a move");
  };
}

/// A block taken out of, or put into, an array of `dims`: begins that depend on symbols may lie outside.
Status check_block(const Extents &dims, const Extents &begin, const Extents &size, const Extents &strides) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t stride = strides.empty() ? 1 : strides[i];
    if (begin[i] >= 0 && (size[i] == 0 || begin[i] + (size[i] - 1) * stride < dims[i])) continue;
    return base::invalid_argument(size[i], " elements from ", begin[i], " on, every ", stride, ", of axis ", i, " of ",
                                  dims);
  }
  return Status();
}

size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

}  // namespace

Result<Kernel> make_transpose(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::TransposeAttributes::from(request.node));
  const Extents dense = dense_strides(request.input(0).dims);
  const size_t rank = dense.size();
  Extents strides(rank);
  for (size_t axis = 0; axis < rank; ++axis)
    strides[axis] =
        dense[attributes.permutation.empty() ? rank - 1 - axis : axis_of(attributes.permutation[axis], rank)];
  return read_kernel(request.output(0), strides, 0);
}

Result<Kernel> make_reverse_axes(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ReverseAxesAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  Extents strides = dense_strides(y.dims);
  int64_t origin = 0;
  for (const int64_t given : attributes.axes) {
    const size_t axis = axis_of(given, strides.size());
    origin += (y.dims[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  return read_kernel(y, strides, origin);
}

Result<Kernel> make_broadcast_to(KernelRequest &request) {
  const LoweredValue &y = request.output(0);
  return read_kernel(y, broadcast_strides(request.input(0).dims, y.dims), 0);
}

Result<Kernel> make_slice(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SliceAttributes::from(request.node));
  TUTTI_ASSIGN(const Extents begin, request.lowered.evaluate(attributes.begin));
  const LoweredValue &x = request.input(0), &y = request.output(0);
  TUTTI_TRY(check_block(x.dims, begin, y.dims, attributes.strides));
  Extents strides = dense_strides(x.dims);
  int64_t origin = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    origin += begin[axis] * strides[axis];
    if (!attributes.strides.empty()) strides[axis] *= attributes.strides[axis];
  }
  return read_kernel(y, strides, origin);
}

Result<Kernel> make_slice_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SliceGradientAttributes::from(request.node));
  TUTTI_ASSIGN(const Extents begin, request.lowered.evaluate(attributes.begin));
  const LoweredValue &dy = request.input(0), &dx = request.output(0);
  TUTTI_TRY(check_block(dx.dims, begin, dy.dims, attributes.strides));
  return placement_kernel(dx, dy.dims, begin, attributes.strides, 0);
}

Result<Kernel> make_pad(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::PadAttributes::from(request.node));
  const LoweredValue &x = request.input(0), &y = request.output(0);
  return placement_kernel(y, x.dims, attributes.low, {}, converted_bits(y.dtype, attributes.value));
}

Result<Kernel> make_concat(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ConcatAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  const size_t axis = axis_of(attributes.axis, y.dims.size());
  int64_t rows = 1;
  for (size_t i = 0; i < axis; ++i)
    rows *= y.dims[i];
  std::vector<int64_t> bytes;  // of each input's row
  for (size_t i = 0; i < request.input_count(); ++i) {
    bytes.push_back(static_cast<int64_t>(tensor::size_bytes(y.dtype)));
    for (size_t j = axis; j < y.dims.size(); ++j)
      bytes.back() *= request.input(i).dims[j];
  }
  int64_t row_bytes = 0;
  for (const int64_t piece : bytes)
    row_bytes += piece;
  return Kernel([rows, row_bytes, bytes](const Frame &frame) {
    Concatenation pieces{frame.output(0), rows, row_bytes, 0, {}};
    int64_t offset = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      pieces.pieces[pieces.count++] = {frame.input(static_cast<int32_t>(i)), bytes[i], offset};
      offset += bytes[i];
      if (pieces.count < Concatenation::kPieces && i + 1 < bytes.size()) continue;
      TUTTI_TRY(status_of(launch_concatenation(pieces, frame.stream()), "launching a concatenation"));
      pieces.count = 0;
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::gpu
