// SPDX-License-Identifier: Apache-2.0
//
// Reductions along any axes on a device. The array is seen as [outer, rows, columns], where columns are what lies
// innermost and is kept; outer and rows are walked through strides. Without columns, groups of threads take a line
// each and read it in packs; with columns, threads lie side by side along them. Few results of many elements take two
// passes.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_REDUCE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_REDUCE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/reduction_data.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

enum class ReduceOp : int32_t {
  sum,
  product,
  max,
  min,
  all_finite,  ///< 1 or 0
  argmax,      ///< rows must be one axis
  argmin,
};

struct ReduceWork {
  ReduceOp op;
  tensor::DType dtype, result;  ///< of x and of y
  int64_t outer, rows, columns;
  ReduceWalk outer_walk, row_walk;
  SumOrder order;
  int64_t contiguous;     ///< elements that lie side by side innermost
  double divisor;         ///< of results; floats only
  int64_t integer_start;  ///< extremes of integers: the lowest or highest value, as 64 bits
  const void *x;
  void *y, *scratch;
  ReductionLayout layout;  ///< of a first pass that is a generated kernel's
};

/// May neighbours be taken together?
inline bool takes_packs(const ReduceWork &work) { return work.order == SumOrder::by_shape || work.columns > 1; }

/// What scratch must have.
int64_t reduce_scratch_bytes(const ReduceWork &work);

gpuError_t launch_reduce(const ReduceWork &work, gpuStream_t stream);

/// The second pass of a sum, max or min in float whose first has left layout.splits partial results in scratch.
gpuError_t launch_reduce_partials(const ReduceWork &work, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_REDUCE_H_
