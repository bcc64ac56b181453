// SPDX-License-Identifier: Apache-2.0
//
// Ops that pick by index: gather, its gradient, merge_rows, one_hot, iota.
#include "backend/gpu/device/device_gather.h"
#include "backend/gpu/device/device_gather_gradient.h"
#include "backend/gpu/device/device_index_sort.h"
#include "backend/gpu/device/device_merge_rows.h"
#include "backend/gpu/kernel/element_bits.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// How many picks and rows the sort of gather_gradient numbers.
constexpr int64_t kMostPicks = INT32_MAX;

GatherShape gather_shape(const std::vector<int64_t> &params, int64_t axis, int64_t picks) {
  GatherShape shape{1, 0, 1, picks};
  const size_t at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(params.size()) : axis);
  for (size_t i = 0; i < at; ++i)
    shape.outer *= params[i];
  for (size_t i = at + 1; i < params.size(); ++i)
    shape.inner *= params[i];
  shape.length = params[at];
  return shape;
}

}  // namespace

Result<Kernel> make_gather(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GatherAttributes::from(request.node));
  const LoweredValue &params = request.input(0);
  const GatherShape shape = gather_shape(params.dims, attributes.axis, request.input(1).elements);
  const int32_t fault = request.add_fault(1, shape.length, "index");
  return Kernel([shape, fault, index_dtype = request.input(1).dtype, missing = missing_bits(params.dtype),
                 bytes = static_cast<int64_t>(tensor::size_bytes(params.dtype))](const Frame &frame) {
    const GatherIndices indices{frame.input(1), index_dtype, fault, frame.faults()};
    return status_of(launch_gather(shape, indices, frame.input(0), frame.output(0), bytes, missing, frame.stream()),
                     "launching gather");
  });
}

Result<Kernel> make_gather_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GatherGradientAttributes::from(request.node));
  const LoweredValue &dparams = request.output(0);
  const GatherShape shape = gather_shape(dparams.dims, attributes.axis, request.input(1).elements);
  if (shape.picks > kMostPicks || shape.length > kMostPicks)
    return base::unimplemented(shape.picks, " indices into ", shape.length, " rows, at most ", kMostPicks,
                               " of each are possible");
  const bool ignores_others = attributes.ignores_others;
  const int32_t fault = ignores_others ? -1 : request.add_fault(1, shape.length, "index");
  const IndexSort sort = IndexSort::of(shape.picks, shape.length);
  const GatherGradient gradient = GatherGradient::of(shape, dparams.dtype);
  const int64_t sorted = request.reserve_scratch(sort.scratch_bytes());
  const int64_t partial = request.reserve_scratch(gradient.partial_bytes());
  return Kernel([=, bytes = dparams.bytes, index_dtype = request.input(1).dtype](const Frame &frame) -> Status {
    const FaultSink sink = ignores_others ? FaultSink() : frame.faults();
    const GatherIndices indices{frame.input(1), index_dtype, fault, sink};
    if (bytes == 0) return status_of(launch_check_indices(shape, indices, frame.stream()), "launching gather_gradient");
    TUTTI_TRY(status_of(gpuMemsetAsync(frame.output(0), 0, static_cast<size_t>(bytes), frame.stream()),
                        "launching gather_gradient"));
    void *const scratch = frame.scratch_as<char>(sorted);
    TUTTI_TRY(status_of(launch_index_sort(sort, indices, scratch, frame.stream()), "launching gather_gradient"));
    GatherGradient placed = gradient;
    placed.keys = sort.keys(scratch);
    placed.order = sort.order(scratch);
    placed.dy = frame.input(0);
    placed.dparams = frame.output(0);
    placed.partial = frame.scratch_as<char>(partial);
    return status_of(launch_gather_gradient(placed, frame.stream()), "launching gather_gradient");
  });
}

Result<Kernel> make_merge_rows(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MergeRowsAttributes::from(request.node));
  const LoweredValue &x = request.input(0);
  const GatherShape shape = gather_shape(x.dims, 0, request.input(1).elements);
  if (shape.picks > kMostPicks || shape.length > kMostPicks)
    return base::unimplemented(shape.picks, " updates of ", shape.length, " rows, at most ", kMostPicks,
                               " of each are possible");
  const int32_t fault = request.add_fault(1, shape.length, "index");
  const IndexSort sort = IndexSort::of(shape.picks, shape.length);
  using Mode = graph::ops::MergeRowsAttributes::Mode;
  MergeRows merge{};
  merge.mode = attributes.mode == Mode::add       ? MergeMode::add
               : attributes.mode == Mode::maximum ? MergeMode::maximum
                                                  : MergeMode::replace;
  merge.dtype = x.dtype;
  merge.rows = shape.length;
  merge.count = shape.picks;
  merge.inner = shape.inner;
  request.reserve_scratch(sort.scratch_bytes());
  return Kernel([=, bytes = x.bytes, index_dtype = request.input(1).dtype](const Frame &frame) -> Status {
    const GatherIndices indices{frame.input(1), index_dtype, fault, frame.faults()};
    if (bytes == 0) return status_of(launch_check_indices(shape, indices, frame.stream()), "launching merge_rows");
    TUTTI_TRY(status_of(gpuMemcpyAsync(frame.output(0), frame.input(0), static_cast<size_t>(bytes),
                                       gpuMemcpyDeviceToDevice, frame.stream()),
                        "launching merge_rows"));
    TUTTI_TRY(status_of(launch_index_sort(sort, indices, frame.scratch(), frame.stream()), "launching merge_rows"));
    MergeRows issued = merge;
    issued.keys = sort.keys(frame.scratch());
    issued.order = sort.order(frame.scratch());
    issued.updates = frame.input(2);
    issued.table = frame.output(0);
    return status_of(launch_merge_rows(issued, frame.stream()), "launching merge_rows");
  });
}

Result<Kernel> make_one_hot(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::OneHotAttributes::from(request.node));
  const DType dtype = request.output(0).dtype;
  OneHot one_hot{};
  one_hot.index_dtype = request.input(0).dtype;
  one_hot.rows = request.input(0).elements;
  one_hot.depth = attributes.depth;
  one_hot.element_bytes = static_cast<int64_t>(tensor::size_bytes(dtype));
  one_hot.on = saturated_bits(dtype, attributes.on);
  one_hot.off = saturated_bits(dtype, attributes.off);
  return Kernel([one_hot](const Frame &frame) {
    OneHot placed = one_hot;
    placed.indices = frame.input(0);
    placed.to = frame.output(0);
    return status_of(launch_one_hot(placed, frame.stream()), "launching one_hot");
  });
}

Result<Kernel> make_iota(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::IotaAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  const size_t axis = static_cast<size_t>(attributes.axis < 0 ? attributes.axis + static_cast<int64_t>(y.dims.size())
                                                              : attributes.axis);
  int64_t stride = 1;
  for (size_t i = axis + 1; i < y.dims.size(); ++i)
    stride *= y.dims[i];
  return Kernel([stride, length = y.dims[axis], dtype = y.dtype, elements = y.elements](const Frame &frame) {
    return status_of(launch_iota(elements, stride, length, dtype, frame.output(0), frame.stream()), "launching iota");
  });
}

}  // namespace tutti::impl::backend::gpu
