// SPDX-License-Identifier: Apache-2.0
//
// Updates of some rows: sum_rows, rows_at, row_update.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// sum += row.
void add_row(DType dtype, const void *rows, int64_t row, std::vector<double> &sum) {
  const auto elements = static_cast<int64_t>(sum.size());
  for_runs(elements, [&](int64_t first, int64_t length) {
    double values[kRun];
    load(dtype, rows, row * elements + first, 1, length, values);
    for (int64_t i = 0; i < length; ++i)
      sum[static_cast<size_t>(first + i)] += values[i];
  });
}

}  // namespace

Result<Kernel> make_sum_rows(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SumRowsAttributes::from(request.node));
  TUTTI_ASSIGN(const std::vector<int64_t> first, request.lowered.evaluate(attributes.first));
  TUTTI_ASSIGN(const std::vector<int64_t> limit, request.lowered.evaluate(attributes.count));
  const LoweredValue &rows = request.input(0);
  return Kernel([first = first[0], limit = limit[0], count = request.input(1).elements, dtype = rows.dtype,
                 index_dtype = request.input(1).dtype, elements = rows.row_elements()](const Frame &frame) {
    const auto index_of = [&](int64_t position) {
      int64_t index = 0;
      load(index_dtype, frame.input(1), position, 1, 1, &index);
      return index < first || index - first >= limit ? limit : index - first;
    };
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, index_of);
    std::vector<double> sum(static_cast<size_t>(elements));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = index_of(order[static_cast<size_t>(i)]);
      const bool is_first = index < limit && (i == 0 || index_of(order[static_cast<size_t>(i - 1)]) != index);
      std::ranges::fill(sum, 0.0);
      for (int64_t at = i; is_first && at < count && index_of(order[static_cast<size_t>(at)]) == index; ++at)
        add_row(dtype, frame.input(0), order[static_cast<size_t>(at)], sum);
      store(dtype, frame.output(0), i * elements, elements, sum.data());
      frame.output_as<int64_t>(1)[i] = is_first ? index : -1;
    }
    return Status();
  });
}

Result<Kernel> make_rows_at(KernelRequest &request) {
  const LoweredValue &x = request.input(0);
  const size_t bytes = static_cast<size_t>(x.row_elements()) * tensor::size_bytes(x.dtype);
  return Kernel([bytes, limit = x.dims[0], count = request.input(1).elements](const Frame &frame) {
    for (int64_t i = 0; i < count && bytes != 0; ++i) {
      const int64_t place = frame.input_as<int64_t>(1)[i];
      char *const to = frame.output_as<char>(0) + static_cast<size_t>(i) * bytes;
      if (place < 0 || place >= limit) {
        std::memset(to, 0, bytes);
      } else {
        std::memcpy(to, frame.input_as<char>(0) + static_cast<size_t>(place) * bytes, bytes);
      }
    }
    return Status();
  });
}

Result<Kernel> make_row_update(KernelRequest &request) {
  const LoweredValue &x = request.input(0);
  const size_t bytes = static_cast<size_t>(x.row_elements()) * tensor::size_bytes(x.dtype);
  return Kernel([bytes, limit = x.dims[0], whole = static_cast<size_t>(x.bytes),
                 count = request.input(2).elements](const Frame &frame) {
    if (frame.output(0) != frame.input(0) && whole != 0) std::memcpy(frame.output(0), frame.input(0), whole);
    for (int64_t i = 0; i < count && bytes != 0; ++i) {
      const int64_t place = frame.input_as<int64_t>(2)[i];
      if (place < 0 || place >= limit) continue;
      std::memcpy(frame.output_as<char>(0) + static_cast<size_t>(place) * bytes,
                  frame.input_as<char>(1) + static_cast<size_t>(i) * bytes, bytes);
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
