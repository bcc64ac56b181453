// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_layer_norm.h"

#include <type_traits>

#include "backend/gpu/device/row-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

template <typename Work>
__device__ bool is_centred(const Work &work) {
  return work.mean != nullptr;
}

/// Of parameters whose dtype the kernel has to ask for: a branch before each of their loads.
struct AnyFloat {};

template <typename P, int V, typename C>
__device__ inline void load_parameter(const AnyArray &array, int64_t position, C (&out)[V]) {
  if constexpr (std::is_same_v<P, AnyFloat>) {
    load_any<V>(array, position, out);
  } else {
    load_from<V, C, P>(array, position, out);
  }
}

/// `P` is the type of scale and offset, or AnyFloat.
template <typename T, typename P, int V, int N>
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
      load_parameter<P, V>(scale, position, a);
      if (is_centred(work)) load_parameter<P, V>(offset, position, b);
      for (int v = 0; v < V; ++v)
        x[v] = (x[v] - mean) * rstd * a[v] + b[v];
      store_pack<V>(static_cast<T *>(work.y) + first, position, x);
    });
    if (!is_inside || static_cast<int>(threadIdx.x) % layout.lanes != 0) return;
    if (is_centred(work)) store_element<C>(work.statistics, work.mean, index, mean);
    store_element<C>(work.statistics, work.rstd, index, rstd);
  });
}

/// The same of rows that fit registers, N packs per thread at most, as long as parameters fit shared memory. Each group
/// has several rows; the next is on its way while one is computed.
template <typename T, int V, int N>
__global__ void __launch_bounds__(kBlockThreads, N <= 3 ? 4 : 3)
    layer_norm_kept_rows(const RowLayout layout, const LayerNormWork work, const AnyArray scale,
                         const AnyArray offset) {
  using C = Computed<T>;
  TUTTI_DYNAMIC_SHARED(memory);
  const RowLanes lanes(layout.lanes, layout.length);
  const StagedParameter<C, V> scales(memory, lanes);
  const StagedParameter<C, V> offsets(memory + sizeof(C) * V * N * layout.lanes, lanes);
  const int groups = kBlockThreads / layout.lanes, group = static_cast<int>(threadIdx.x) / layout.lanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * groups;
  int64_t base = static_cast<int64_t>(blockIdx.x) * groups;
  HeldRow<T, V, N> next(lanes, work.x, base + group, base + group < layout.rows);
  scales.fill(scale);
  if (is_centred(work)) offsets.fill(offset);
  __syncthreads();
  const C share = C(1) / static_cast<C>(layout.length);
  for (; base < layout.rows; base += step) {
    const int64_t index = base + group;
    const bool is_inside = index < layout.rows;
    const HeldRow<T, V, N> row = next;
    next = HeldRow<T, V, N>(lanes, work.x, index + step, index + step < layout.rows);
    C mean = 0, variance = 0;
    if (is_centred(work)) {
      lanes.each<V, N>([&](int i, int32_t) {
        C x[V];
        row.widen(i, x);
        for (int v = 0; v < V; ++v)
          mean += x[v];
      });
      mean = group_sum(mean, layout.lanes) * share;
    }
    lanes.each<V, N>([&](int i, int32_t) {
      C x[V];
      row.widen(i, x);
      for (int v = 0; v < V; ++v)
        variance += (x[v] - mean) * (x[v] - mean);
    });
    variance = group_sum(variance, layout.lanes) * share;
    const C rstd = 1 / std::sqrt(variance + static_cast<C>(work.epsilon));
    if (!is_inside) continue;
    lanes.each<V, N>([&](int i, int32_t position) {
      C x[V], a[V], b[V] = {};
      row.widen(i, x);
      scales.load(i, a);
      if (is_centred(work)) offsets.load(i, b);
      for (int v = 0; v < V; ++v)
        x[v] = (x[v] - mean) * rstd * a[v] + b[v];
      store_pack<V>(static_cast<T *>(work.y) + index * layout.length, position, x);
    });
    if (lanes.lane != 0) continue;
    if (is_centred(work)) store_element<C>(work.statistics, work.mean, index, mean);
    store_element<C>(work.statistics, work.rstd, index, rstd);
  }
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

template <typename C>
struct RowSums {
  C average, projection;
};

template <typename C>
__device__ inline RowSums<C> exchanged(RowSums<C> value, int mask) {
  return {gpu_shuffle_xor(value.average, mask), gpu_shuffle_xor(value.projection, mask)};
}

/// The averages of a row of what its threads have added up.
template <typename C>
__device__ inline RowSums<C> row_averages(RowSums<C> sums, const RowLayout &layout, bool centred) {
  const C share = C(1) / static_cast<C>(layout.length);
  const RowSums<C> total = group_combine(sums, layout.lanes, [](RowSums<C> a, RowSums<C> b) {
    return RowSums<C>{a.average + b.average, a.projection + b.projection};
  });
  return {centred ? total.average * share : C(0), total.projection * share};
}

/// What a thread keeps of one row.
template <typename T, int V, int N>
class KeptRow {
 public:
  using C = Computed<T>;

  __device__ KeptRow(const RowLanes &lanes, const LayerNormGradientWork &work, int64_t row)
      : dy_(lanes, work.dy, row, row < work.rows),
        x_(lanes, work.x, row, row < work.rows),
        statistics_(work, row, row < work.rows) {}

  /// dy and n of pack `i`.
  __device__ void load(int i, C (&dy)[V], C (&n)[V]) const {
    dy_.widen(i, dy);
    x_.widen(i, n);
    for (int v = 0; v < V; ++v)
      n[v] = (n[v] - statistics_.mean) * statistics_.rstd;
  }
  __device__ C rstd() const { return statistics_.rstd; }

 private:
  HeldRow<T, V, N> dy_, x_;
  RowStatistics<C> statistics_;
};

/// Adds up what the groups of a block have; the first group gets the sums. All threads of the block must call it, with
/// shared memory for half of them.
template <typename C, int V, int N>
__device__ void combine_groups(ParameterSums<C> (&sums)[N][V], int lanes, void *memory) {
  auto *const shared = static_cast<ParameterSums<C> *>(memory);
  const int thread = static_cast<int>(threadIdx.x);
  for (int half = kBlockThreads / 2; half >= lanes; half /= 2) {
    __syncthreads();  // what lies there may still be read
    const bool gives = thread >= half && thread < 2 * half;
#pragma unroll
    for (int k = 0; k < N * V; ++k) {
      if (gives) shared[k * half + thread - half] = sums[k / V][k % V];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N * V; ++k) {
      ParameterSums<C> &mine = sums[k / V][k % V];
      if (thread < half) mine = ParameterFinish<C>::combine(mine, shared[k * half + thread]);
    }
  }
}

/// Blocks that work at the same time on one multiprocessor: as many as registers permit.
constexpr int kept_gradient_blocks(int packs) { return packs == 1 ? 4 : packs <= 3 ? 2 : 1; }

/// Rows that fit registers, read once; the next row is on its way while one is computed. Blocks leave their sums over
/// rows in partials, [blocks, elements of a pack and packs of a thread, lanes].
template <typename T, int V, int N>
__global__ void __launch_bounds__(kBlockThreads, kept_gradient_blocks(N))
    layer_norm_gradient_kept_rows(const RowLayout layout, const LayerNormGradientWork work, const AnyArray scale,
                                  ParameterSums<Computed<T>> *partials) {
  using C = Computed<T>;
  using Kept = KeptRow<T, V, N>;
  TUTTI_DYNAMIC_SHARED(memory);
  const RowLanes lanes(layout.lanes, layout.length);
  const StagedParameter<C, V> scales(memory, lanes);
  const int groups = kBlockThreads / layout.lanes, group = static_cast<int>(threadIdx.x) / layout.lanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * groups;
  int64_t base = static_cast<int64_t>(blockIdx.x) * groups;
  ParameterSums<C> sums[N][V] = {};
  Kept next(lanes, work, base + group);
  scales.fill(scale);
  __syncthreads();
  for (; base < layout.rows; base += step) {
    const int64_t index = base + group;
    const bool is_inside = index < layout.rows;
    const Kept row = next;
    next = Kept(lanes, work, index + step);
    RowSums<C> own = {};
    lanes.each<V, N>([&](int i, int32_t) {
      if (!is_inside) return;
      C dy[V], n[V], a[V];
      row.load(i, dy, n);
      scales.load(i, a);
      for (int v = 0; v < V; ++v) {
        own.average += dy[v] * a[v];
        own.projection += dy[v] * a[v] * n[v];
        sums[i][v].dscale += dy[v] * n[v];
        sums[i][v].doffset += dy[v];
      }
    });
    const RowSums<C> of_row = row_averages(own, layout, is_centred(work));
    lanes.each<V, N>([&](int i, int32_t position) {
      if (!is_inside) return;
      C dy[V], n[V], a[V];
      row.load(i, dy, n);
      scales.load(i, a);
      for (int v = 0; v < V; ++v)
        a[v] = row.rstd() * (dy[v] * a[v] - of_row.average - n[v] * of_row.projection);
      store_pack<V>(static_cast<T *>(work.dx) + index * layout.length, position, a);
    });
  }
  combine_groups<C, V, N>(sums, layout.lanes, memory);
  if (group != 0) return;
  const int32_t kept = lanes.kept_packs(V) * V;
  ParameterSums<C> *const mine = partials + blockIdx.x * int64_t{kept} * layout.lanes + lanes.lane;
#pragma unroll
  for (int k = 0; k < N * V; ++k) {
    if (k < kept) mine[k * layout.lanes] = sums[k / V][k % V];
  }
}

/// Of partial results of kept rows: where their columns lie in a row.
template <typename C>
struct KeptFinish : ParameterFinish<C> {
  int32_t lanes, width, pack;

  __device__ void write(int64_t, int64_t column, const ParameterSums<C> &total) const {
    const auto place = static_cast<int32_t>(column), lane = place % lanes, k = place / lanes;
    const int32_t position = (k / pack * lanes + lane) * pack + k % pack;
    if (position < width) ParameterFinish<C>::write(0, position, total);
  }
};

/// Longer rows, read twice; parameters have a pass of their own.
template <typename T, int V>
__global__ void layer_norm_gradient_long_rows(const RowLayout layout, const LayerNormGradientWork work,
                                              const AnyArray scale) {
  using C = Computed<T>;
  for_group_rows(layout, [&](int64_t index, bool is_inside) {
    const int64_t first = index * layout.length;
    Row<T, V, 0> slopes(static_cast<const T *>(work.dy) + first, layout.length, layout.lanes, is_inside);
    Row<T, V, 0> values(static_cast<const T *>(work.x) + first, layout.length, layout.lanes, is_inside);
    const RowStatistics<C> row(work, index, is_inside);
    RowSums<C> own = {};
    slopes.each_with(values, [&](int, int64_t position, const C(&dy)[V], const C(&x)[V]) {
      C a[V];
      load_any<V>(scale, position, a);
      for (int v = 0; v < V; ++v) {
        own.average += dy[v] * a[v];
        own.projection += dy[v] * a[v] * ((x[v] - row.mean) * row.rstd);
      }
    });
    const RowSums<C> of_row = row_averages(own, layout, is_centred(work));
    slopes.each_with(values, [&](int, int64_t position, const C(&dy)[V], const C(&x)[V]) {
      C a[V];
      load_any<V>(scale, position, a);
      for (int v = 0; v < V; ++v)
        a[v] = row.rstd * (dy[v] * a[v] - of_row.average - (x[v] - row.mean) * row.rstd * of_row.projection);
      store_pack<V>(static_cast<T *>(work.dx) + first, position, a);
    });
  });
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

/// How rows are kept: packs of `pack` elements, `packs` per thread.
struct KeptLayout {
  RowLayout rows;
  int32_t pack, packs;

  KeptLayout(const RowLayout &layout, int64_t width)
      : rows(layout),
        pack(static_cast<int32_t>(width)),
        packs(static_cast<int32_t>(divide_up(layout.length, width * layout.lanes))) {}

  /// Elements of all threads of a group, of which a row has as many or fewer.
  int64_t columns() const { return int64_t{packs} * pack * rows.lanes; }
};

/// Of gradients: three packs of several elements leave room for those of the next row.
KeptLayout gradient_layout(int64_t rows, int64_t width, int64_t pack) {
  KeptLayout layout(row_layout(rows, width, pack, pack == 1 ? 1 : 3), pack);
  layout.rows.is_kept = layout.packs <= (pack == 1 ? 8 : 4);
  return layout;
}

int64_t gradient_blocks(const KeptLayout &layout) {
  return std::min<int64_t>(layout.rows.blocks(), kFillingBlocks / (layout.packs == 1 ? 1 : 2));
}

/// Calls function(RowShape<V, N>()) for the packs per thread of the layout.
template <int V, typename Function>
gpuError_t visit_kept(const KeptLayout &layout, Function function) {
  if (layout.packs == 1) return function(RowShape<V, 1>());
  if constexpr (V == 1) {
    return function(RowShape<V, 8>());
  } else {
    if (layout.packs == 2) return function(RowShape<V, 2>());
    return layout.packs == 3 ? function(RowShape<V, 3>()) : function(RowShape<V, 4>());
  }
}

template <typename T, int V, int N>
gpuError_t launch_kept_gradient(const LayerNormGradientWork &work, const KeptLayout &layout, gpuStream_t stream) {
  using C = Computed<T>;
  auto *const partials = static_cast<ParameterSums<C> *>(work.scratch);
  const size_t scales = sizeof(C) * V * N * static_cast<size_t>(layout.rows.lanes);
  const size_t halves = sizeof(ParameterSums<C>) * V * N * (kBlockThreads / 2);
  const int64_t blocks = gradient_blocks(layout);
  const gpuError_t error = gpu_launch(layer_norm_gradient_kept_rows<T, V, N>, static_cast<unsigned>(blocks),
                                      kBlockThreads, std::max(scales, layout.rows.lanes < kBlockThreads ? halves : 0),
                                      stream, layout.rows, work, any_array(work.scale, work.parameter), partials);
  if (error != gpuSuccess) return error;
  ReductionLayout second = column_layout(1, blocks, layout.columns(), 1, kBlockThreads / 32);
  split_rows(second, 1);
  const KeptFinish<C> finish{
      {work.parameter, work.dscale, work.doffset}, layout.rows.lanes, static_cast<int32_t>(work.width), V};
  return launch_column_pass(PartialColumns<KeptFinish<C>>{finish, partials, 1, layout.columns()}, second,
                            static_cast<ParameterSums<C> *>(nullptr), stream);
}

template <typename T, int V>
gpuError_t launch_long_gradient(const LayerNormGradientWork &work, const RowLayout &layout, gpuStream_t stream) {
  const gpuError_t error = gpu_launch(layer_norm_gradient_long_rows<T, V>, layout.blocks(), kBlockThreads, 0, stream,
                                      layout, work, any_array(work.scale, work.parameter));
  if (error != gpuSuccess) return error;
  return launch_columns(ParameterWork<T, V>{{work.parameter, work.dscale, work.doffset}, work}, 1, work.rows,
                        work.width, work.scratch, stream);
}

template <typename T, int V, int N>
gpuError_t launch_rows(const LayerNormWork &work, const RowLayout &layout, gpuStream_t stream) {
  const auto kernel =
      work.parameter == DType::f32 ? layer_norm_rows<T, float, V, N> : layer_norm_rows<T, AnyFloat, V, N>;
  return gpu_launch(kernel, layout.blocks(), kBlockThreads, 0, stream, layout, work,
                    any_array(work.scale, work.parameter), any_array(work.offset, work.parameter));
}

/// Of scale and offset in shared memory.
template <typename T>
int64_t parameter_bytes(const KeptLayout &layout) {
  return 2 * layout.columns() * static_cast<int64_t>(sizeof(Computed<T>));
}

template <typename T, int V>
gpuError_t launch_kept(const LayerNormWork &work, const KeptLayout &layout, gpuStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(layout.rows.blocks(), kFillingBlocks));
  return visit_kept<V>(layout, [&](auto shape) {
    return gpu_launch(layer_norm_kept_rows<T, V, decltype(shape)::kPacks>, blocks, kBlockThreads,
                      static_cast<size_t>(parameter_bytes<T>(layout)), stream, layout.rows, work,
                      any_array(work.scale, work.parameter), any_array(work.offset, work.parameter));
  });
}

int64_t sums_bytes(DType dtype) { return dtype == DType::f64 ? 16 : 8; }

}  // namespace

gpuError_t launch_layer_norm(const LayerNormWork &work, gpuStream_t stream) {
  const bool wide = is_wide(work.dtype, work.width, {work.x, work.y});
  return visit_rows(work.dtype, wide, work.order, work.rows, work.width,
                    [&](auto storage, auto shape, const RowLayout &layout) {
                      using T = typename decltype(storage)::type;
                      constexpr int kWidth = decltype(shape)::kWidth, kPacks = decltype(shape)::kPacks;
                      if constexpr (kWidth > 1 && kPacks > 0) {
                        const KeptLayout kept{layout, kWidth};
                        if (parameter_bytes<T>(kept) <= kMostDynamicShared)
                          return launch_kept<T, kWidth>(work, kept, stream);
                      }
                      return launch_rows<T, kWidth, kPacks>(work, layout, stream);
                    });
}

int64_t layer_norm_gradient_scratch_bytes(const LayerNormGradientWork &work) {
  int64_t bytes = column_partial_bytes(1, work.rows, work.width, pack_width(work.dtype), sums_bytes(work.dtype));
  for (const int64_t pack : {int64_t{1}, pack_width(work.dtype)}) {
    const KeptLayout layout = gradient_layout(work.rows, work.width, pack);
    if (layout.rows.is_kept)
      bytes = std::max(bytes, gradient_blocks(layout) * layout.columns() * sums_bytes(work.dtype));
  }
  return bytes;
}

gpuError_t launch_layer_norm_gradient(const LayerNormGradientWork &work, gpuStream_t stream) {
  if (work.width == 0) return gpuSuccess;
  const bool wide = is_wide(work.dtype, work.width, {work.x, work.dy, work.dx});
  return visit_floats(work.dtype, wide, [&](auto storage) {
    using T = typename decltype(storage)::type;
    constexpr int kWidth = decltype(storage)::kWidth;
    if (work.rows == 0)
      return launch_columns(ParameterWork<T, kWidth>{{work.parameter, work.dscale, work.doffset}, work}, 1, 0,
                            work.width, nullptr, stream);
    const KeptLayout layout = gradient_layout(work.rows, work.width, kWidth);
    if (!layout.rows.is_kept)
      return launch_long_gradient<T, kWidth>(work, row_layout(work.rows, work.width, kWidth, kRowPacks<kWidth>),
                                             stream);
    return visit_kept<kWidth>(layout, [&](auto shape) {
      return launch_kept_gradient<T, kWidth, decltype(shape)::kPacks>(work, layout, stream);
    });
  });
}

}  // namespace tutti::impl::backend::gpu
