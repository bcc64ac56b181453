// SPDX-License-Identifier: Apache-2.0
//
// Where the results of a product (device_product-inl.h) go: finished by an epilogue if there is one, four neighbours at
// a time. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_PRODUCT_RESULTS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_PRODUCT_RESULTS_INL_H_

#include "backend/gpu/device/epilogue-inl.h"
#include "backend/gpu/device/floats-inl.h"

namespace tutti::impl::backend::gpu {

/// addend[first_column * addend_column + row * addend_row + column * addend_column] is added to the results, unless it
/// is null. `first_column`: of a batch, among the columns that an operand of an epilogue has one element for each of.
struct ResultArray {
  void *data;
  DType dtype;
  int32_t is_wide;
  const void *addend;
  DType addend_dtype;
  int64_t addend_row, addend_column, first_column;

  __device__ int64_t addend_at(int64_t row, int64_t column) const {
    return row * addend_row + (first_column + column) * addend_column;
  }
};

/// Are runs of four elements aligned, if they begin at multiples of these offsets?
inline bool is_wide(const void *data, DType dtype, int64_t offsets) {
  const uintptr_t bytes = dtype == DType::f32 ? 16 : 8;  // f64 is read one by one
  return offsets % 4 == 0 && reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

template <typename C>
struct alignas(16) Quad {
  C values[4];
};

struct alignas(8) Bytes8 {
  uint32_t words[2];
};

__device__ inline void store_four(DType dtype, void *data, int64_t position, const Quad<float> &quad) {
  if (dtype == DType::f32) {
    *reinterpret_cast<Quad<float> *>(static_cast<float *>(data) + position) = quad;
  } else {
    Bytes8 packed;
    TUTTI_UNROLL
    for (int i = 0; i < 2; ++i)
      packed.words[i] = static_cast<uint32_t>(float_to_half(dtype, quad.values[2 * i])) |
                        static_cast<uint32_t>(float_to_half(dtype, quad.values[2 * i + 1])) << 16;
    *reinterpret_cast<Bytes8 *>(static_cast<uint16_t *>(data) + position) = packed;
  }
}
__device__ inline void store_four(DType, void *data, int64_t position, const Quad<double> &quad) {
  TUTTI_UNROLL
  for (int i = 0; i < 4; ++i)
    static_cast<double *>(data)[position + i] = quad.values[i];
}

__device__ inline void finish_four(const Epilogue &epilogue, int64_t position, int64_t column, int count,
                                   Quad<float> &quad) {
  EpilogueLanes<4> lanes = {{quad.values[0], quad.values[1], quad.values[2], quad.values[3]}};
  run_epilogue(epilogue, position, column, count, lanes);
  quad = {{lanes.lane[0], lanes.lane[1], lanes.lane[2], lanes.lane[3]}};
}
template <typename C>
__device__ inline void finish_four(const NoEpilogue &, int64_t, int64_t, int, Quad<C> &) {}

__device__ inline void finish_one(const Epilogue &epilogue, int64_t position, int64_t column, float &value) {
  EpilogueLanes<1> lane = {{value}};
  run_epilogue(epilogue, position, column, 1, lane);
  value = lane.lane[0];
}
template <typename C>
__device__ inline void finish_one(const NoEpilogue &, int64_t, int64_t, C &) {}

/// Neighbours in a row, those that there are.
template <typename C, typename Target, typename Finish>
__device__ inline void put_results(const Target &target, const Finish &finish, int64_t row, int64_t column,
                                   Quad<C> quad) {
  const ResultArray &array = target.array;
  if (row >= target.rows || column >= target.columns) return;
  TUTTI_UNROLL
  for (int i = 0; i < 4 && array.addend != nullptr; ++i) {
    if (column + i < target.columns)
      quad.values[i] += load_float<C>(array.addend_dtype, array.addend, array.addend_at(row, column + i));
  }
  const int64_t position = target.row(row) + column;
  const int64_t left = target.columns - column;
  finish_four(finish, position, array.first_column + column, static_cast<int>(left < 4 ? left : 4), quad);
  if (array.is_wide) return store_four(array.dtype, array.data, position, quad);
  TUTTI_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (column + i < target.columns) store_float<C>(array.dtype, array.data, position + i, quad.values[i]);
  }
}

/// One split of one batch in the memory for parts.
struct PartTarget {
  ResultArray array;
  int64_t rows, columns, first;
  __device__ int64_t row(int64_t row) const { return first + row * columns; }
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_PRODUCT_RESULTS_INL_H_
