// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements without computing: their kernels know element sizes, not types.
#include <cstring>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "backend/reference/strided.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// Copies element by element: operand 0 of the walk is the result, operand 1 the source; each begins at its origin.
template <typename T>
void move_elements(const StridedWalk &walk, T *to, const T *from) {
  walk.run([&](const int64_t *offsets, int64_t count) {
    T *y = to + offsets[0];
    const T *x = from + offsets[1];
    const int64_t y_step = walk.step(0), x_step = walk.step(1);
    for (int64_t i = 0; i < count; ++i)
      y[i * y_step] = x[i * x_step];
  });
}

void move_elements(const StridedWalk &walk, size_t element_bytes, void *to, int64_t to_origin, const void *from,
                   int64_t from_origin) {
  const auto move = [&]<typename T>(T) {
    move_elements(walk, static_cast<T *>(to) + to_origin, static_cast<const T *>(from) + from_origin);
  };
  switch (element_bytes) {
    case 1:
      return move(uint8_t{});
    case 2:
      return move(uint16_t{});
    case 4:
      return move(uint32_t{});
    default:
      return move(uint64_t{});
  }
}

/// y (in its own strides and from its origin) = x (likewise) over a box.
Kernel move_kernel(Extents box, Extents y_strides, int64_t y_origin, Extents x_strides, int64_t x_origin, DType dtype) {
  StridedWalk walk(std::move(box));
  walk.add(std::move(y_strides));
  walk.add(std::move(x_strides));
  walk.finish();
  return [=, bytes = tensor::size_bytes(dtype)](const Frame &frame) {
    move_elements(walk, bytes, frame.output(0), y_origin, frame.input(0), x_origin);
    return Status();
  };
}

void fill(DType dtype, void *target, int64_t count, double value) {
  visit_arithmetic(dtype, [&]<typename C>(C) {
    for_runs(count, [&](int64_t first, int64_t length) {
      C run[kRun];
      for (int64_t i = 0; i < length; ++i)
        run[i] = static_cast<C>(value);
      store(dtype, target, first, length, run);
    });
  });
}

int64_t dot(const Extents &a, const Extents &b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

Extents scaled(Extents strides, const std::vector<int64_t> &factors) {
  for (size_t i = 0; i < factors.size(); ++i)
    strides[i] *= factors[i];
  return strides;
}

/// A block taken out of, or put into, an array of `dims`: begins that depend on symbols may lie outside.
Status check_block(const Extents &dims, const Extents &begin, const Extents &size,
                   const std::vector<int64_t> &strides) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t stride = strides.empty() ? 1 : strides[i];
    if (begin[i] >= 0 && (size[i] == 0 || begin[i] + (size[i] - 1) * stride < dims[i])) continue;
    return base::invalid_argument(size[i], " elements from ", begin[i], " on, every ", stride, ", of axis ", i, " of ",
                                  dims);
  }
  return Status();
}

size_t axis_of(int64_t axis, const Extents &dims) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
}

}  // namespace

Result<Kernel> make_reshape(KernelRequest &request) {
  const int64_t bytes = request.output(0).bytes;
  return Kernel([=](const Frame &frame) {
    if (bytes != 0) std::memcpy(frame.output(0), frame.input(0), static_cast<size_t>(bytes));
    return Status();
  });
}

Result<Kernel> make_transpose(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::TransposeAttributes::from(request.node));
  const Extents dense = dense_strides(request.input(0).dims);
  const size_t rank = dense.size();
  Extents strides(rank);
  for (size_t axis = 0; axis < rank; ++axis)
    strides[axis] =
        dense[attributes.permutation.empty() ? rank - 1 - axis : axis_of(attributes.permutation[axis], dense)];
  const LoweredValue &y = request.output(0);
  return move_kernel(y.dims, dense_strides(y.dims), 0, strides, 0, y.dtype);
}

Result<Kernel> make_reverse_axes(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ReverseAxesAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  Extents strides = dense_strides(y.dims);
  int64_t origin = 0;
  for (const int64_t given : attributes.axes) {
    const size_t axis = axis_of(given, y.dims);
    origin += (y.dims[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  return move_kernel(y.dims, dense_strides(y.dims), 0, strides, y.elements == 0 ? 0 : origin, y.dtype);
}

Result<Kernel> make_broadcast_to(KernelRequest &request) {
  const LoweredValue &y = request.output(0);
  return move_kernel(y.dims, dense_strides(y.dims), 0, broadcast_strides(request.input(0).dims, y.dims), 0, y.dtype);
}

Result<Kernel> make_concat(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ConcatAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  const size_t axis = axis_of(attributes.axis, y.dims);
  const size_t element = tensor::size_bytes(y.dtype);
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i)
    outer *= y.dims[i];
  std::vector<size_t> bytes;  // of each input per index of the outer axes
  size_t row_bytes = 0;
  for (size_t i = 0; i < request.input_count(); ++i) {
    int64_t inner = 1;
    for (size_t j = axis; j < y.dims.size(); ++j)
      inner *= request.input(i).dims[j];
    bytes.push_back(static_cast<size_t>(inner) * element);
    row_bytes += bytes.back();
  }
  return Kernel([=](const Frame &frame) {
    size_t begin = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int64_t row = 0; row < outer && bytes[i] != 0; ++row)
        std::memcpy(frame.output_as<char>(0) + static_cast<size_t>(row) * row_bytes + begin,
                    frame.input_as<char>(static_cast<int32_t>(i)) + static_cast<size_t>(row) * bytes[i], bytes[i]);
      begin += bytes[i];
    }
    return Status();
  });
}

Result<Kernel> make_slice(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SliceAttributes::from(request.node));
  TUTTI_ASSIGN(const Extents begin, request.lowered.evaluate(attributes.begin));
  const LoweredValue &x = request.input(0), &y = request.output(0);
  TUTTI_TRY(check_block(x.dims, begin, y.dims, attributes.strides));
  const Extents dense = dense_strides(x.dims);
  return move_kernel(y.dims, dense_strides(y.dims), 0, scaled(dense, attributes.strides), dot(begin, dense), y.dtype);
}

Result<Kernel> make_slice_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SliceGradientAttributes::from(request.node));
  TUTTI_ASSIGN(const Extents begin, request.lowered.evaluate(attributes.begin));
  const LoweredValue &dy = request.input(0), &dx = request.output(0);
  TUTTI_TRY(check_block(dx.dims, begin, dy.dims, attributes.strides));
  const Extents dense = dense_strides(dx.dims);
  Kernel scatter =
      move_kernel(dy.dims, scaled(dense, attributes.strides), dot(begin, dense), dense_strides(dy.dims), 0, dx.dtype);
  return Kernel([scatter = std::move(scatter), bytes = dx.bytes](const Frame &frame) {
    if (bytes != 0) std::memset(frame.output(0), 0, static_cast<size_t>(bytes));
    return scatter(frame);
  });
}

Result<Kernel> make_pad(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::PadAttributes::from(request.node));
  const LoweredValue &x = request.input(0), &y = request.output(0);
  const Extents dense = dense_strides(y.dims);
  Kernel inside = move_kernel(x.dims, dense, dot(attributes.low, dense), dense_strides(x.dims), 0, y.dtype);
  return Kernel(
      [inside = std::move(inside), dtype = y.dtype, count = y.elements, value = attributes.value](const Frame &frame) {
        fill(dtype, frame.output(0), count, value);
        return inside(frame);
      });
}

Result<Kernel> make_iota(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::IotaAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  const size_t axis = axis_of(attributes.axis, y.dims);
  const int64_t stride = dense_strides(y.dims)[axis], length = y.dims[axis];
  return Kernel([=, dtype = y.dtype, count = y.elements](const Frame &frame) {
    for_runs(count, [&](int64_t first, int64_t run) {
      int64_t index[kRun];
      for (int64_t i = 0; i < run; ++i)
        index[i] = (first + i) / stride % length;
      store(dtype, frame.output(0), first, run, index);
    });
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
