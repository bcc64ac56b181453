// SPDX-License-Identifier: Apache-2.0
//
// Updates of some rows: sum_rows, rows_at, row_update. None reports a place that is out of range.
#include "backend/gpu/device/device_gather.h"
#include "backend/gpu/device/device_gather_gradient.h"
#include "backend/gpu/device/device_index_sort.h"
#include "backend/gpu/device/device_row_update.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// How many indices and rows the sort of sum_rows numbers.
constexpr int64_t kMostRows = INT32_MAX;

int64_t element_bytes(const LoweredValue &value) { return static_cast<int64_t>(tensor::size_bytes(value.dtype)); }

}  // namespace

Result<Kernel> make_sum_rows(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SumRowsAttributes::from(request.node));
  const LoweredValue &sums = request.output(0);
  TUTTI_ASSIGN(const std::vector<int64_t> least, request.lowered.evaluate(attributes.first));
  TUTTI_ASSIGN(const std::vector<int64_t> most, request.lowered.evaluate(attributes.count));
  const int64_t count = request.input(1).elements, first = least[0], limit = most[0];
  if (count > kMostRows || limit > kMostRows)
    return base::unimplemented(count, " indices of ", limit, " rows, at most ", kMostRows, " of each are possible");
  const IndexSort sort = IndexSort::of(count, limit);
  const GatherGradient gradient = GatherGradient::of({1, count, sums.row_elements(), count}, sums.dtype);
  const int64_t sorted = request.reserve_scratch(sort.scratch_bytes());
  const int64_t heads = request.reserve_scratch(count * static_cast<int64_t>(sizeof(uint32_t)));
  const int64_t partial = request.reserve_scratch(gradient.partial_bytes());
  const int64_t shifted = request.reserve_scratch(first == 0 ? 0 : count * static_cast<int64_t>(sizeof(int64_t)));
  return Kernel([=, bytes = sums.bytes, index_dtype = request.input(1).dtype](const Frame &frame) -> Status {
    if (count == 0) return Status();
    void *const scratch = frame.scratch_as<char>(sorted);
    GatherIndices indices{frame.input(1), index_dtype, 0, {}};
    if (first != 0) {
      auto *const distances = frame.scratch_as<int64_t>(shifted);
      TUTTI_TRY(status_of(launch_index_shift(indices.data, index_dtype, count, first, distances, frame.stream()),
                          "launching sum_rows"));
      indices = {distances, DType::i64, 0, {}};
    }
    TUTTI_TRY(status_of(launch_index_sort(sort, indices, scratch, frame.stream()), "launching sum_rows"));
    const RowHeads found{sort.keys(scratch), count, limit, frame.scratch_as<uint32_t>(heads),
                         static_cast<int64_t *>(frame.output(1))};
    TUTTI_TRY(status_of(launch_row_heads(found, frame.stream()), "launching sum_rows"));
    if (bytes == 0) return Status();
    TUTTI_TRY(status_of(gpuMemsetAsync(frame.output(0), 0, static_cast<size_t>(bytes), frame.stream()),
                        "launching sum_rows"));
    GatherGradient placed = gradient;
    placed.keys = found.heads;
    placed.order = sort.order(scratch);
    placed.dy = frame.input(0);
    placed.dparams = frame.output(0);
    placed.partial = frame.scratch_as<char>(partial);
    return status_of(launch_gather_gradient(placed, frame.stream()), "launching sum_rows");
  });
}

Result<Kernel> make_rows_at(KernelRequest &request) {
  const LoweredValue &x = request.input(0);
  const GatherShape shape{1, x.dims[0], x.row_elements(), request.input(1).elements};
  return Kernel([shape, bytes = element_bytes(x)](const Frame &frame) {
    if (shape.picks * shape.inner == 0) return Status();
    const GatherIndices places{frame.input(1), DType::i64, 0, {}};
    return status_of(launch_gather(shape, places, frame.input(0), frame.output(0), bytes, 0, frame.stream()),
                     "launching rows_at");
  });
}

Result<Kernel> make_row_update(KernelRequest &request) {
  const LoweredValue &x = request.input(0);
  RowUpdate update{};
  update.count = request.input(2).elements;
  update.limit = x.dims[0];
  update.element_bytes = element_bytes(x);
  update.row_bytes = x.row_elements() * update.element_bytes;
  return Kernel([update, whole = static_cast<size_t>(x.bytes)](const Frame &frame) {
    if (frame.output(0) != frame.input(0) && whole != 0) {
      TUTTI_TRY(
          status_of(gpuMemcpyAsync(frame.output(0), frame.input(0), whole, gpuMemcpyDeviceToDevice, frame.stream()),
                    "launching row_update"));
    }
    RowUpdate placed = update;
    placed.rows = frame.input(1);
    placed.places = static_cast<const int64_t *>(frame.input(2));
    placed.x = frame.output(0);
    return status_of(launch_row_update(placed, frame.stream()), "launching row_update");
  });
}

}  // namespace tutti::impl::backend::gpu
