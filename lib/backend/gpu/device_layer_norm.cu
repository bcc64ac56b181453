// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_layer_norm.h"

#include "backend/gpu/row-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

template <typename Work>
__device__ bool is_centred(const Work &work) {
  return work.mean != nullptr;
}

template <typename T, int V, int N>
__global__ void layer_norm_rows(const RowLayout layout, const LayerNormWork work, const AnyArray scale,
                                const AnyArray offset) {
  using C = Computed<T>;
  const C share = C(1) / static_cast<C>(layout.length);
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    const int64_t first = index * layout.length;
    Row<T, V, N> row(static_cast<const T *>(work.x) + first, layout.length, layout.lanes, is_inside);
    C mean = 0, variance = 0;
    if (is_centred(work)) {
      row.each([&](int64_t, C(&x)[V]) {
        for (int v = 0; v < V; ++v)
          mean += x[v];
      });
      mean = group_sum(mean, layout.lanes) * share;
    }
    row.each([&](int64_t, C(&x)[V]) {
      for (int v = 0; v < V; ++v)
        variance += (x[v] - mean) * (x[v] - mean);
    });
    variance = group_sum(variance, layout.lanes) * share;
    const C rstd = 1 / std::sqrt(variance + static_cast<C>(work.epsilon));
    row.each([&](int64_t position, C(&x)[V]) {
      C a[V], b[V] = {};
      load_any<V>(scale, position, a);
      if (is_centred(work)) load_any<V>(offset, position, b);
      for (int v = 0; v < V; ++v)
        x[v] = (x[v] - mean) * rstd * a[v] + b[v];
      store_pack<V>(static_cast<T *>(work.y) + first, position, x);
    });
    if (!is_inside || static_cast<int>(threadIdx.x) % layout.lanes != 0) return;
    if (is_centred(work)) store_element<C>(work.statistics, work.mean, index, mean);
    store_element<C>(work.statistics, work.rstd, index, rstd);
  });
}

// ---- gradient: with n = (x - mean) * rstd and g = dy * scale,
//      dx = rstd * (g - average(g) - n * average(g * n)), dscale = sum(dy * n), doffset = sum(dy); not centred, the
//      mean and average(g) are 0

template <typename C>
struct ParameterSums {
  C dscale, doffset;
};

template <typename C>
struct ParameterFinish {
  using Total = ParameterSums<C>;
  DType dtype;
  void *dscale, *doffset;

  __device__ Total none() const { return {C(0), C(0)}; }
  __device__ static Total combine(Total a, Total b) { return {a.dscale + b.dscale, a.doffset + b.doffset}; }
  __device__ void write(int64_t, int64_t column, const Total &total) const {
    store_element<C>(dtype, dscale, column, total.dscale);
    if (doffset != nullptr) store_element<C>(dtype, doffset, column, total.doffset);
  }
};

/// Of a row: n = (x - mean) * rstd.
template <typename C>
struct RowStatistics {
  C mean, rstd;

  __device__ RowStatistics(const LayerNormGradientWork &work, int64_t row, bool is_inside)
      : mean(is_inside && is_centred(work) ? load_element<C>(work.statistics, work.mean, row) : C(0)),
        rstd(is_inside ? load_element<C>(work.statistics, work.rstd, row) : C(0)) {}
};

/// Rows of a kept layout also leave the sums of their group of threads in partials, [groups of all blocks, width].
template <typename T, int V, int N>
__global__ void layer_norm_gradient_rows(const RowLayout layout, const LayerNormGradientWork work, const AnyArray scale,
                                         ParameterSums<Computed<T>> *partials) {
  using C = Computed<T>;
  const C share = C(1) / static_cast<C>(layout.length);
  ParameterSums<C> sums[N > 0 ? N : 1][V] = {};
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    const int64_t first = index * layout.length;
    Row<T, V, N> slopes(static_cast<const T *>(work.dy) + first, layout.length, layout.lanes, is_inside);
    Row<T, V, N> values(static_cast<const T *>(work.x) + first, layout.length, layout.lanes, is_inside);
    const RowStatistics<C> row(work, index, is_inside);
    C average = 0, projection = 0;
    slopes.each_with(values, [&](int i, int64_t position, C(&dy)[V], C(&x)[V]) {
      C a[V];
      load_any<V>(scale, position, a);
      for (int v = 0; v < V; ++v) {
        const C n = (x[v] - row.mean) * row.rstd, g = dy[v] * a[v];
        average += g;
        projection += g * n;
        if constexpr (N > 0) {
          sums[i][v].dscale += dy[v] * n;
          sums[i][v].doffset += dy[v];
        }
      }
    });
    average = is_centred(work) ? group_sum(average, layout.lanes) * share : C(0);
    projection = group_sum(projection, layout.lanes) * share;
    slopes.each_with(values, [&](int, int64_t position, C(&dy)[V], C(&x)[V]) {
      C a[V];
      load_any<V>(scale, position, a);
      for (int v = 0; v < V; ++v)
        a[v] = row.rstd * (dy[v] * a[v] - average - (x[v] - row.mean) * row.rstd * projection);
      store_pack<V>(static_cast<T *>(work.dx) + first, position, a);
    });
  });
  if constexpr (N > 0) {
    const int lane = static_cast<int>(threadIdx.x) % layout.lanes;
    const int64_t group = grid_thread() / layout.lanes;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int64_t position = (int64_t{i} * layout.lanes + lane) * V;
      for (int v = 0; position < layout.length && v < V; ++v)
        partials[group * layout.length + position + v] = sums[i][v];
    }
  }
}

/// The sums over the rows of what rows that are not kept have.
template <typename T, int V>
struct ParameterWork {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  using Finish = ParameterFinish<C>;
  struct State {
    ParameterSums<C> sums[V];
  };
  Finish finish;
  LayerNormGradientWork work;

  __device__ State begin(int64_t, int64_t, bool, int64_t) const {
    State state;
    for (int v = 0; v < V; ++v)
      state.sums[v] = finish.none();
    return state;
  }
  __device__ void add(State &state, int64_t, int64_t row, int64_t column) const {
    C dy[V], x[V];
    load_pack<V>(static_cast<const T *>(work.dy), row * work.width + column, dy);
    load_pack<V>(static_cast<const T *>(work.x), row * work.width + column, x);
    const RowStatistics<C> statistics(work, row, true);
    for (int v = 0; v < V; ++v) {
      state.sums[v].dscale += dy[v] * (x[v] - statistics.mean) * statistics.rstd;
      state.sums[v].doffset += dy[v];
    }
  }
  __device__ ParameterSums<C> total(const State &state, int v) const { return state.sums[v]; }
};

/// Rows of which a thread keeps one pack have more threads each and fewer partial sums.
RowLayout gradient_layout(int64_t rows, int64_t width, int64_t pack, int64_t kept_packs) {
  RowLayout layout = row_layout(rows, width, pack, kept_packs);
  layout.lanes = power_of_two(divide_up(width, pack));
  return layout;
}

unsigned gradient_blocks(const RowLayout &layout) {
  return static_cast<unsigned>(std::min<int64_t>(layout.blocks(), kFillingBlocks));
}

template <typename T, int V, int N>
gpuError_t launch_gradient(const LayerNormGradientWork &work, const RowLayout &layout, gpuStream_t stream) {
  using C = Computed<T>;
  const ParameterFinish<C> finish{work.parameter, work.dscale, work.doffset};
  auto *const partials = static_cast<ParameterSums<C> *>(work.scratch);
  const unsigned blocks = N > 0 ? gradient_blocks(layout) : layout.blocks();
  const gpuError_t error = gpu_launch(layer_norm_gradient_rows<T, V, N>, blocks, kBlockThreads, 0, stream, layout, work,
                                      any_array(work.scale, work.parameter), partials);
  if (error != gpuSuccess) return error;
  if constexpr (N > 0) {
    const int64_t groups = int64_t{blocks} * (kBlockThreads / layout.lanes);
    ReductionLayout second = column_layout(1, groups, work.width, 1, kBlockThreads / 32);
    split_rows(second, 1);
    return launch_column_pass(PartialColumns<ParameterFinish<C>>{finish, partials, 1, work.width}, second,
                              static_cast<ParameterSums<C> *>(nullptr), stream);
  } else {
    return launch_columns(ParameterWork<T, V>{finish, work}, 1, work.rows, work.width, work.scratch, stream);
  }
}

int64_t sums_bytes(DType dtype) { return dtype == DType::f64 ? 16 : 8; }

}  // namespace

gpuError_t launch_layer_norm(const LayerNormWork &work, gpuStream_t stream) {
  const bool wide = is_wide(work.dtype, work.width, {work.x, work.y});
  return visit_rows(work.dtype, wide, work.order, work.rows, work.width,
                    [&](auto storage, auto shape, const RowLayout &layout) {
                      using Shape = decltype(shape);
                      return gpu_launch(layer_norm_rows<typename decltype(storage)::type, Shape::kWidth, Shape::kPacks>,
                                        layout.blocks(), kBlockThreads, 0, stream, layout, work,
                                        any_array(work.scale, work.parameter), any_array(work.offset, work.parameter));
                    });
}

int64_t layer_norm_gradient_scratch_bytes(const LayerNormGradientWork &work) {
  int64_t groups = 0;
  for (const int64_t pack : {int64_t{1}, pack_width(work.dtype)}) {
    const RowLayout layout = gradient_layout(work.rows, work.width, pack, 1);
    groups = std::max(groups, int64_t{gradient_blocks(layout)} * (kBlockThreads / layout.lanes));
  }
  return std::max(groups * work.width * sums_bytes(work.dtype),
                  column_partial_bytes(1, work.rows, work.width, pack_width(work.dtype), sums_bytes(work.dtype)));
}

gpuError_t launch_layer_norm_gradient(const LayerNormGradientWork &work, gpuStream_t stream) {
  if (work.width == 0) return gpuSuccess;
  const bool wide = is_wide(work.dtype, work.width, {work.x, work.dy, work.dx});
  return visit_floats(work.dtype, wide, [&](auto storage) {
    using T = typename decltype(storage)::type;
    constexpr int kWidth = decltype(storage)::kWidth, kPacks = kRowPacks<kWidth>;
    if (work.rows == 0)
      return launch_columns(ParameterWork<T, kWidth>{{work.parameter, work.dscale, work.doffset}, work}, 1, 0,
                            work.width, nullptr, stream);
    const RowLayout one = gradient_layout(work.rows, work.width, kWidth, 1);
    if (one.is_kept) return launch_gradient<T, kWidth, 1>(work, one, stream);
    const RowLayout several = gradient_layout(work.rows, work.width, kWidth, kPacks);
    if (several.is_kept) return launch_gradient<T, kWidth, kPacks>(work, several, stream);
    return launch_gradient<T, kWidth, 0>(work, several, stream);
  });
}

}  // namespace tutti::impl::backend::gpu
