// SPDX-License-Identifier: Apache-2.0
//
// Sums and extremes along axes as work of reduction_body-inl.h, of any source of elements:
//
//   struct Source {
//     using C = ..;                                                    // what is computed with
//     static constexpr int kWidth = ..;                                // neighbours that are loaded together
//     __device__ void load(int64_t index, C (&x)[kWidth]) const;       // index is a multiple of kWidth
//   };
//
// Included by .cu files, and by kernels that are compiled at run time.
#ifndef TUTTI_BACKEND_GPU_DEVICE_REDUCE_WORK_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_REDUCE_WORK_INL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/elements-inl.h"
#include "backend/gpu/device/reduction_data.h"

namespace tutti::impl::backend::gpu {

__device__ inline int64_t position_of(const ReduceWalk &walk, int64_t index) {
  if (walk.rank == 0) return 0;
  int64_t position = 0;
  for (int32_t axis = walk.rank - 1; axis > 0; --axis) {
    const int64_t next = index / walk.dims[axis];
    position += (index - next * walk.dims[axis]) * walk.strides[axis];
    index = next;
  }
  return position + index * walk.strides[0];
}

struct Sum {
  template <typename C>
  __device__ static C combine(C a, C b) {
    return a + b;
  }
  __device__ static int64_t combine(int64_t a, int64_t b) {  // wraps
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  template <typename C>
  __device__ static C taken(C x) {
    return x;
  }
};

struct Product {
  template <typename C>
  __device__ static C combine(C a, C b) {
    return a * b;
  }
  __device__ static int64_t combine(int64_t a, int64_t b) {  // wraps
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  template <typename C>
  __device__ static C taken(C x) {
    return x;
  }
};

/// A NaN wins.
struct Max {
  template <typename C>
  __device__ static C combine(C a, C b) {
    return b > a || b != b ? b : a;
  }
  template <typename C>
  __device__ static C taken(C x) {
    return x;
  }
};

struct Min {
  template <typename C>
  __device__ static C combine(C a, C b) {
    return b < a || b != b ? b : a;
  }
  template <typename C>
  __device__ static C taken(C x) {
    return x;
  }
};

struct AllFinite {
  template <typename C>
  __device__ static C combine(C a, C b) {
    return a * b;
  }
  template <typename C>
  __device__ static C taken(C x) {
    return x - x == 0 ? C(1) : C(0);
  }
};

template <typename Op, typename C>
struct ReduceFinish {
  using Total = C;
  C start, divisor;
  DType dtype;
  void *y;
  int64_t columns;

  __device__ Total none() const { return start; }
  __device__ static Total combine(Total a, Total b) { return Op::combine(a, b); }
  __device__ void write(int64_t outer, int64_t column, const Total &total) const {
    store_element<C>(dtype, y, outer * columns + column, total / divisor);
  }
};

template <typename Op, typename Source>
struct Reduction {
  static constexpr int kWidth = Source::kWidth;
  using C = typename Source::C;
  using Finish = ReduceFinish<Op, C>;
  struct State {
    int64_t origin;
    C totals[kWidth];
  };
  Finish finish;
  Source source;
  ReduceWalk outer_walk, row_walk;

  __device__ State begin(int64_t outer, int64_t, bool, int64_t column) const {
    State state;
    state.origin = position_of(outer_walk, outer) + column;
    for (int v = 0; v < kWidth; ++v)
      state.totals[v] = finish.start;
    return state;
  }
  __device__ void add(State &state, int64_t, int64_t row, int64_t) const {
    C x[kWidth];
    source.load(state.origin + position_of(row_walk, row), x);
    for (int v = 0; v < kWidth; ++v)
      state.totals[v] = Op::combine(state.totals[v], Op::taken(x[v]));
  }
  __device__ C total(const State &state, int v) const { return state.totals[v]; }
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_REDUCE_WORK_INL_H_
