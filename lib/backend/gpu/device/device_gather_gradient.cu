// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_gather_gradient.h"

#include <type_traits>

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

template <DType D>
using SumOf = std::conditional_t<D == DType::f64, double, float>;

/// The column of dy and dparams that a thread adds up.
struct Column {
  int64_t outer, inner;

  __device__ Column(const GatherGradient &gradient, int64_t column)
      : outer(column / gradient.shape.inner), inner(column % gradient.shape.inner) {}
  __device__ int64_t in_dy(const GatherGradient &gradient, uint32_t pick) const {
    return (outer * gradient.shape.picks + pick) * gradient.shape.inner + inner;
  }
  __device__ int64_t in_params(const GatherGradient &gradient, uint32_t row) const {
    return (outer * gradient.shape.length + row) * gradient.shape.inner + inner;
  }
};

/// By chunk: the sum of an index that has begun before; then, by chunk again: of one that begins here and goes on.
template <typename C>
__device__ inline C *begun_before(const GatherGradient &gradient, int64_t chunk, int64_t column) {
  return static_cast<C *>(gradient.partial) + chunk * gradient.columns() + column;
}
template <typename C>
__device__ inline C *going_on(const GatherGradient &gradient, int64_t chunk, int64_t column) {
  return begun_before<C>(gradient, gradient.chunks + chunk, column);
}

/// Stores the sum of the positions [begin, end) that have one key.
template <DType D, typename C>
__device__ inline void store_sum(const GatherGradient &gradient, int64_t chunk, int64_t column, int64_t begin,
                                 int64_t end, uint32_t key, C sum) {
  if (key >= gradient.shape.length) return;
  if (begin == chunk * gradient.chunk && begin > 0 && gradient.keys[begin - 1] == key) {
    *begun_before<C>(gradient, chunk, column) = sum;
  } else if (end == (chunk + 1) * gradient.chunk && end < gradient.shape.picks && gradient.keys[end] == key) {
    *going_on<C>(gradient, chunk, column) = sum;
  } else {
    store_element<C>(D, gradient.dparams, Column(gradient, column).in_params(gradient, key), sum);
  }
}

template <DType D>
__global__ void add_chunks(const GatherGradient gradient) {
  using C = SumOf<D>;
  constexpr int64_t kAhead = 4;  // loads that do not wait for each other
  const int64_t columns = gradient.columns(), total = gradient.chunks * columns, picks = gradient.shape.picks;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const int64_t chunk = i / columns, column = i % columns;
    const Column place(gradient, column);
    const int64_t begin = chunk * gradient.chunk, end = begin + gradient.chunk < picks ? begin + gradient.chunk : picks;
    int64_t first = begin;
    uint32_t current = gradient.keys[begin];
    C sum = 0;
    for (int64_t position = begin; position < end; position += kAhead) {
      uint32_t keys[kAhead];
      C values[kAhead];
      for (int64_t k = 0; k < kAhead; ++k) {
        if (position + k >= end) continue;
        keys[k] = gradient.keys[position + k];
        values[k] = load_element<C>(D, gradient.dy, place.in_dy(gradient, gradient.order[position + k]));
      }
      for (int64_t k = 0; k < kAhead; ++k) {
        if (position + k >= end) continue;
        if (keys[k] != current) {
          store_sum<D>(gradient, chunk, column, first, position + k, current, sum);
          first = position + k;
          current = keys[k];
          sum = 0;
        }
        sum += values[k];
      }
    }
    store_sum<D>(gradient, chunk, column, first, end, current, sum);
  }
}

/// Does an index begin in a chunk and go on behind it?
__device__ inline bool begins_and_goes_on(const GatherGradient &gradient, int64_t chunk) {
  const int64_t begin = chunk * gradient.chunk, end = begin + gradient.chunk;
  if (end >= gradient.shape.picks) return false;
  const uint32_t key = gradient.keys[end];
  if (gradient.keys[end - 1] != key || key >= gradient.shape.length) return false;
  return begin == 0 || gradient.keys[begin - 1] != key;
}

/// The chunk of the last position that has the key of `position`.
__device__ inline int64_t last_chunk(const GatherGradient &gradient, int64_t position) {
  const uint32_t key = gradient.keys[position];
  int64_t has = position, has_not = gradient.shape.picks;
  while (has_not - has > 1) {
    const int64_t middle = has + (has_not - has) / 2;
    (gradient.keys[middle] == key ? has : has_not) = middle;
  }
  return has / gradient.chunk;
}

template <DType D>
__global__ void join_chunks(const GatherGradient gradient) {
  using C = SumOf<D>;
  const int64_t columns = gradient.columns(), total = (gradient.chunks - 1) * columns;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const int64_t chunk = i / columns, column = i % columns;
    if (!begins_and_goes_on(gradient, chunk)) continue;
    const int64_t next = (chunk + 1) * gradient.chunk, last = last_chunk(gradient, next);
    C sum = *going_on<C>(gradient, chunk, column);
    for (int64_t at = chunk + 1; at <= last; ++at)
      sum += *begun_before<C>(gradient, at, column);
    store_element<C>(D, gradient.dparams, Column(gradient, column).in_params(gradient, gradient.keys[next]), sum);
  }
}

template <DType D>
gpuError_t launch(const GatherGradient &gradient, gpuStream_t stream) {
  const unsigned blocks = blocks_for(gradient.chunks * gradient.columns(), 1 << 16);
  const gpuError_t error = gpu_launch(add_chunks<D>, blocks, kBlockThreads, 0, stream, gradient);
  if (error != gpuSuccess || gradient.chunks == 1) return error;
  return gpu_launch(join_chunks<D>, blocks, kBlockThreads, 0, stream, gradient);
}

}  // namespace

GatherGradient GatherGradient::of(const GatherShape &shape, DType dtype) {
  GatherGradient gradient{};
  gradient.shape = shape;
  gradient.dtype = dtype;
  gradient.chunk = 16;
  while (4 * gradient.chunk * gradient.chunk < shape.picks)
    gradient.chunk *= 2;
  gradient.chunks = (shape.picks + gradient.chunk - 1) / gradient.chunk;
  return gradient;
}

int64_t GatherGradient::partial_bytes() const {
  if (chunks <= 1) return 0;
  return 2 * chunks * columns() * static_cast<int64_t>(dtype == DType::f64 ? sizeof(double) : sizeof(float));
}

gpuError_t launch_gather_gradient(const GatherGradient &gradient, gpuStream_t stream) {
  if (gradient.chunks * gradient.columns() == 0) return gpuSuccess;
  switch (gradient.dtype) {
    case DType::f32:
      return launch<DType::f32>(gradient, stream);
    case DType::f64:
      return launch<DType::f64>(gradient, stream);
    case DType::f16:
      return launch<DType::f16>(gradient, stream);
    case DType::bf16:
      return launch<DType::bf16>(gradient, stream);
    default:
      return gpuErrorInvalidValue;
  }
}

}  // namespace tutti::impl::backend::gpu
