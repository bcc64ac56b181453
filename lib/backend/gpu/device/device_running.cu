// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_running.h"

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// So many lines keep a GPU busy with a thread each, if neighbours lie side by side.
constexpr int64_t kManyLines = 8192;

/// Where a line begins and how far apart its elements are.
struct Line {
  int64_t first, step;

  __device__ Line(const RunningWork &work, int64_t line)
      : first((line / work.inner * work.length + (work.is_backward ? work.length - 1 : 0)) * work.inner +
              line % work.inner),
        step(work.is_backward ? -work.inner : work.inner) {}
  __device__ int64_t at(int64_t i) const { return first + i * step; }
};

template <bool kProduct, typename C>
__device__ inline C combined(C a, C b) {
  return kProduct ? a * b : a + b;
}

template <bool kProduct, typename C>
__global__ void run_by_threads(const RunningWork work) {
  for (int64_t i = grid_thread(); i < work.lines(); i += grid_threads()) {
    const Line line(work, i);
    C total = kProduct ? 1 : 0;
    for (int64_t k = 0; k < work.length; ++k) {
      const C next = combined<kProduct>(total, load_element<C>(work.dtype, work.x, line.at(k)));
      store_element<C>(work.dtype, work.y, line.at(k), work.is_exclusive ? total : next);
      total = next;
    }
  }
}

template <bool kProduct, typename C>
__global__ void run_by_blocks(const RunningWork work) {
  __shared__ C values[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const C neutral = kProduct ? 1 : 0;
  for (int64_t i = blockIdx.x; i < work.lines(); i += gridDim.x) {
    const Line line(work, i);
    C before = neutral;
    for (int64_t begin = 0; begin < work.length; begin += kBlockThreads) {
      const bool is_inside = begin + thread < work.length;
      const int64_t at = line.at(begin + thread);
      __syncthreads();  // those of the stretch before may still be read
      values[thread] = is_inside ? load_element<C>(work.dtype, work.x, at) : neutral;
      __syncthreads();
      for (int distance = 1; distance < kBlockThreads; distance *= 2) {
        const C other = thread >= distance ? values[thread - distance] : neutral;
        __syncthreads();
        values[thread] = combined<kProduct>(other, values[thread]);
        __syncthreads();
      }
      const C last = thread == 0 ? neutral : values[thread - 1];
      const C result = combined<kProduct>(before, work.is_exclusive ? last : values[thread]);
      if (is_inside) store_element<C>(work.dtype, work.y, at, result);
      before = combined<kProduct>(before, values[kBlockThreads - 1]);
    }
  }
}

template <bool kProduct, typename C>
gpuError_t launch(const RunningWork &work, gpuStream_t stream) {
  if (work.lines() >= kManyLines && work.inner > 1) {
    return gpu_launch(run_by_threads<kProduct, C>, blocks_for(work.lines()), kBlockThreads, 0, stream, work);
  }
  const auto blocks = static_cast<unsigned>(work.lines() < kManyLines ? work.lines() : kManyLines);
  return gpu_launch(run_by_blocks<kProduct, C>, blocks, kBlockThreads, 0, stream, work);
}

template <typename C>
gpuError_t launch(const RunningWork &work, gpuStream_t stream) {
  return work.is_product ? launch<true, C>(work, stream) : launch<false, C>(work, stream);
}

// With p the product of the elements before one, and s = dy + (the next element) · (the next s): dx = p · s. Of the
// exclusive product dy is that of the next element.
__global__ void run_product_gradient(const RunningProductGradient gradient) {
  const RunningWork &work = gradient.work;
  for (int64_t i = grid_thread(); i < work.lines(); i += grid_threads()) {
    const Line line(work, i);
    double product = 1;
    for (int64_t k = 0; k < work.length; ++k) {
      gradient.before[line.at(k)] = product;
      product *= load_element<double>(work.dtype, work.x, line.at(k));
    }
    double sum = 0;
    for (int64_t k = work.length - 1; k >= 0; --k) {
      const int64_t at = line.at(k), next = line.at(k + 1);
      const bool is_last = k + 1 == work.length;
      if (!is_last) sum *= load_element<double>(work.dtype, work.x, next);
      if (!work.is_exclusive) sum += load_element<double>(work.dtype, gradient.dy, at);
      if (work.is_exclusive && !is_last) sum += load_element<double>(work.dtype, gradient.dy, next);
      store_element<double>(work.dtype, work.y, at, gradient.before[at] * sum);
    }
  }
}

}  // namespace

gpuError_t launch_running(const RunningWork &work, gpuStream_t stream) {
  if (work.lines() * work.length == 0) return gpuSuccess;
  switch (work.dtype) {
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
      return launch<double>(work, stream);
    default:
      return launch<uint64_t>(work, stream);
  }
}

gpuError_t launch_running_product_gradient(const RunningProductGradient &gradient, gpuStream_t stream) {
  if (gradient.work.lines() * gradient.work.length == 0) return gpuSuccess;
  return gpu_launch(run_product_gradient, blocks_for(gradient.work.lines()), kBlockThreads, 0, stream, gradient);
}

}  // namespace tutti::impl::backend::gpu
