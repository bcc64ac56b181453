// SPDX-License-Identifier: Apache-2.0
//
// Ops that pick by index: gather, its gradient, merge_rows, one_hot.
#include <cstring>
#include <type_traits>

#include "backend/bounded_integers.h"
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// params is [outer, length, inner], the picked slices are [outer, picks, inner].
struct GatherShape {
  int64_t outer = 1, length = 0, inner = 1, picks = 0;
};

GatherShape gather_shape(const std::vector<int64_t> &params, int64_t axis, int64_t picks) {
  GatherShape shape;
  const size_t at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(params.size()) : axis);
  for (size_t i = 0; i < at; ++i)
    shape.outer *= params[i];
  for (size_t i = at + 1; i < params.size(); ++i)
    shape.inner *= params[i];
  shape.length = params[at];
  shape.picks = picks;
  return shape;
}

/// The indices of a node, whose second input they are.
struct CheckedIndices {
  DType dtype{};
  int64_t length = 0;
  BoundedIntegers bounds;

  CheckedIndices(const KernelRequest &request, const GatherShape &shape)
      : dtype(request.input(1).dtype),
        length(shape.length),
        bounds(BoundedIntegers::of(request.lowered, request.node, 1, shape.length, "index")) {}

  Status read(const Frame &frame, int64_t position, int64_t *index) const {
    load(dtype, frame.input(1), position, 1, 1, index);
    if (*index >= 0 && *index < length) return Status();
    return bounds.error(position, *index, frame.scalars()[TUTTI_RUN_ROW_OFFSET]);
  }
};

}  // namespace

Result<Kernel> make_gather(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GatherAttributes::from(request.node));
  const GatherShape shape = gather_shape(request.input(0).dims, attributes.axis, request.input(1).elements);
  const size_t slice = static_cast<size_t>(shape.inner) * tensor::size_bytes(request.input(0).dtype);
  return Kernel([=, indices = CheckedIndices(request, shape)](const Frame &frame) {
    for (int64_t pick = 0; pick < shape.picks; ++pick) {
      int64_t index = 0;
      TUTTI_TRY(indices.read(frame, pick, &index));
      for (int64_t outer = 0; outer < shape.outer && slice != 0; ++outer)
        std::memcpy(frame.output_as<char>(0) + static_cast<size_t>(outer * shape.picks + pick) * slice,
                    frame.input_as<char>(0) + static_cast<size_t>(outer * shape.length + index) * slice, slice);
    }
    return Status();
  });
}

Result<Kernel> make_gather_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GatherGradientAttributes::from(request.node));
  const LoweredValue &dparams = request.output(0);
  const GatherShape shape = gather_shape(dparams.dims, attributes.axis, request.input(1).elements);
  request.scratch_bytes = dparams.elements * static_cast<int64_t>(sizeof(double));
  return Kernel([=, indices = CheckedIndices(request, shape), dtype = dparams.dtype, count = dparams.elements,
                 ignores_others = attributes.ignores_others](const Frame &frame) {
    double *const sums = frame.scratch_doubles();
    if (count != 0) std::memset(sums, 0, static_cast<size_t>(count) * sizeof(double));
    for (int64_t pick = 0; pick < shape.picks; ++pick) {
      int64_t index = 0;
      const Status status = indices.read(frame, pick, &index);
      if (!status.ok() && !ignores_others) return status;
      if (!status.ok()) continue;
      for (int64_t outer = 0; outer < shape.outer; ++outer) {
        double *const to = sums + (outer * shape.length + index) * shape.inner;
        for_runs(shape.inner, [&](int64_t first, int64_t length) {
          double dy[kRun];
          load(dtype, frame.input(0), (outer * shape.picks + pick) * shape.inner + first, 1, length, dy);
          for (int64_t i = 0; i < length; ++i)
            to[first + i] += dy[i];
        });
      }
    }
    if (count != 0) store(dtype, frame.output(0), 0, count, sums);
    return Status();
  });
}

namespace {

using MergeMode = graph::ops::MergeRowsAttributes::Mode;

/// What an element and an update for it become.
template <typename C>
C merged(MergeMode mode, C x, C update) {
  if (mode == MergeMode::replace) return update;
  if (mode == MergeMode::maximum) return x != x || !(update != update || update > x) ? x : update;
  if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(x) + static_cast<uint64_t>(update));
  return x + update;
}

}  // namespace

// In a table of C, which is rounded once.
Result<Kernel> make_merge_rows(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MergeRowsAttributes::from(request.node));
  const LoweredValue &x = request.input(0);
  const GatherShape shape = gather_shape(x.dims, 0, request.input(1).elements);
  request.scratch_bytes = x.elements * static_cast<int64_t>(sizeof(double));
  return Kernel([=, indices = CheckedIndices(request, shape), dtype = x.dtype, count = x.elements,
                 mode = attributes.mode](const Frame &frame) {
    Status status;
    visit_arithmetic(dtype, [&]<typename C>(C) {
      C *const table = static_cast<C *>(frame.scratch());
      if (count != 0) load(dtype, frame.input(0), 0, 1, count, table);
      for (int64_t pick = 0; pick < shape.picks && status.ok(); ++pick) {
        int64_t index = 0;
        status = indices.read(frame, pick, &index);
        if (!status.ok()) break;
        for_runs(shape.inner, [&](int64_t first, int64_t length) {
          C update[kRun], *const row = table + index * shape.inner + first;
          load(dtype, frame.input(2), pick * shape.inner + first, 1, length, update);
          for (int64_t i = 0; i < length; ++i)
            row[i] = merged(mode, row[i], update[i]);
        });
      }
      if (count != 0 && status.ok()) store(dtype, frame.output(0), 0, count, table);
    });
    return status;
  });
}

Result<Kernel> make_one_hot(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::OneHotAttributes::from(request.node));
  const DType index_dtype = request.input(0).dtype, dtype = request.output(0).dtype;
  const int64_t rows = request.input(0).elements;
  return Kernel([=, depth = attributes.depth, on = attributes.on, off = attributes.off](const Frame &frame) {
    for (int64_t row = 0; row < rows; ++row) {
      int64_t index = 0;
      load(index_dtype, frame.input(0), row, 1, 1, &index);
      for_runs(depth, [&](int64_t first, int64_t length) {
        double y[kRun];
        for (int64_t i = 0; i < length; ++i)
          y[i] = first + i == index ? on : off;
        store(dtype, frame.output(0), row * depth + first, length, y);
      });
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
