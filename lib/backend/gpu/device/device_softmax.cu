// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_softmax.h"

#include "backend/gpu/device/row-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// What an element becomes.
template <typename C>
struct SoftmaxMap {
  C largest, logarithm, inverse;
  bool is_log;

  __device__ SoftmaxMap(ExpSum<C> sum, bool is_log_)
      : largest(sum.largest), logarithm(std::log(sum.sum)), inverse(1 / sum.sum), is_log(is_log_) {}
  __device__ C operator()(C x) const { return is_log ? x - largest - logarithm : std::exp(x - largest) * inverse; }
};

template <typename C>
__device__ inline C gradient_of(C dy, C y, C sum, bool is_log) {
  return is_log ? dy - std::exp(y) * sum : y * (dy - sum);
}

// ---- rows ----

template <typename T, int V, int N>
__global__ void softmax_rows(const RowLayout layout, const T *x, T *result, bool is_log) {
  using C = Computed<T>;
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    Row<T, V, N> row(x + index * layout.length, layout.length, layout.lanes, is_inside);
    const SoftmaxMap<C> map(row_exp_sum(row, layout.lanes), is_log);
    row.each([&](int64_t position, C(&pack)[V]) {
      for (int v = 0; v < V; ++v)
        pack[v] = map(pack[v]);
      store_pack<V>(result + index * layout.length, position, pack);
    });
  });
}

template <typename T, int V, int N>
__global__ void softmax_gradient_rows(const RowLayout layout, const T *dy, const T *y, T *result, bool is_log) {
  using C = Computed<T>;
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    const int64_t first = index * layout.length;
    Row<T, V, N> slopes(dy + first, layout.length, layout.lanes, is_inside);
    Row<T, V, N> values(y + first, layout.length, layout.lanes, is_inside);
    C sum = 0;
    slopes.each_with(values, [&](int, int64_t, C(&a)[V], C(&b)[V]) {
      for (int v = 0; v < V; ++v)
        sum += is_log ? a[v] : a[v] * b[v];
    });
    sum = group_sum(sum, layout.lanes);
    slopes.each_with(values, [&](int, int64_t position, C(&a)[V], C(&b)[V]) {
      for (int v = 0; v < V; ++v)
        a[v] = gradient_of(a[v], b[v], sum, is_log);
      store_pack<V>(result + first, position, a);
    });
  });
}

// ---- lines through other axes ----

template <typename T>
__global__ void softmax_lines(const SoftmaxWork work) {
  using C = Computed<T>;
  for (int64_t line = grid_thread(); line < work.outer * work.inner; line += grid_threads()) {
    const int64_t first = line / work.inner * work.length * work.inner + line % work.inner;
    const T *const x = static_cast<const T *>(work.x) + first;
    T *const result = static_cast<T *>(work.result) + first;
    ExpSum<C> sum = no_exp_sum<C>();
    for (int64_t i = 0; i < work.length; ++i) {
      const C pack[1] = {widen(x[i * work.inner])};
      add_exp_sum<1>(sum, pack);
    }
    const SoftmaxMap<C> map(sum, work.is_log);
    for (int64_t i = 0; i < work.length; ++i)
      narrow(map(widen(x[i * work.inner])), result[i * work.inner]);
  }
}

template <typename T>
__global__ void softmax_gradient_lines(const SoftmaxWork work) {
  using C = Computed<T>;
  for (int64_t line = grid_thread(); line < work.outer * work.inner; line += grid_threads()) {
    const int64_t first = line / work.inner * work.length * work.inner + line % work.inner;
    const T *const dy = static_cast<const T *>(work.x) + first, *const y = static_cast<const T *>(work.y) + first;
    T *const result = static_cast<T *>(work.result) + first;
    C sum = 0;
    for (int64_t i = 0; i < work.length; ++i) {
      const C slope = widen(dy[i * work.inner]);
      sum += work.is_log ? slope : slope * widen(y[i * work.inner]);
    }
    for (int64_t i = 0; i < work.length; ++i)
      narrow(gradient_of(widen(dy[i * work.inner]), widen(y[i * work.inner]), sum, work.is_log),
             result[i * work.inner]);
  }
}

}  // namespace

gpuError_t launch_softmax(const SoftmaxWork &work, gpuStream_t stream) {
  if (work.outer * work.length * work.inner == 0) return gpuSuccess;
  if (work.goes_by_lines) {
    return visit_floats(work.dtype, false, [&](auto storage) {
      return gpu_launch(softmax_lines<typename decltype(storage)::type>, blocks_for(work.outer * work.inner),
                        kBlockThreads, 0, stream, work);
    });
  }
  const bool wide = is_wide(work.dtype, work.length, {work.x, work.result});
  return visit_rows(
      work.dtype, wide, work.order, work.outer, work.length, [&](auto storage, auto shape, const RowLayout &layout) {
        using T = typename decltype(storage)::type;
        using Shape = decltype(shape);
        return gpu_launch(softmax_rows<T, Shape::kWidth, Shape::kPacks>, layout.blocks(), kBlockThreads, 0, stream,
                          layout, static_cast<const T *>(work.x), static_cast<T *>(work.result), work.is_log);
      });
}

gpuError_t launch_softmax_gradient(const SoftmaxWork &work, gpuStream_t stream) {
  if (work.outer * work.length * work.inner == 0) return gpuSuccess;
  if (work.goes_by_lines) {
    return visit_floats(work.dtype, false, [&](auto storage) {
      return gpu_launch(softmax_gradient_lines<typename decltype(storage)::type>, blocks_for(work.outer * work.inner),
                        kBlockThreads, 0, stream, work);
    });
  }
  const bool wide = is_wide(work.dtype, work.length, {work.x, work.y, work.result});
  return visit_rows(work.dtype, wide, work.order, work.outer, work.length,
                    [&](auto storage, auto shape, const RowLayout &layout) {
                      using T = typename decltype(storage)::type;
                      using Shape = decltype(shape);
                      return gpu_launch(softmax_gradient_rows<T, Shape::kWidth, Shape::kPacks>, layout.blocks(),
                                        kBlockThreads, 0, stream, layout, static_cast<const T *>(work.x),
                                        static_cast<const T *>(work.y), static_cast<T *>(work.result), work.is_log);
                    });
}

}  // namespace tutti::impl::backend::gpu
