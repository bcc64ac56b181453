// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_layer_norm.h"

#include <type_traits>

#include "backend/gpu/row-inl.h"

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

/// The packs of one row that a thread keeps, as they lie in memory: loads of one row may be on their way while another
/// is computed.
template <typename T, int V, int N>
class KeptRow {
 public:
  using C = Computed<T>;

  __device__ KeptRow(const RowLayout &layout, const LayerNormGradientWork &work, int64_t row)
      : statistics(work, row, row < layout.rows) {
    const int64_t first = row * layout.length;
    each_position(layout, row, [&](int i, int64_t position) {
      dy_[i] = pack_at<V>(static_cast<const T *>(work.dy) + first, position);
      x_[i] = pack_at<V>(static_cast<const T *>(work.x) + first, position);
    });
  }

  /// function(number of the pack, its position in the row, dy, n).
  template <typename Function>
  __device__ void each(const RowLayout &layout, int64_t row, Function function) const {
    each_position(layout, row, [&](int i, int64_t position) {
      C dy[V], n[V];
      widen_pack<V>(dy_[i], dy);
      widen_pack<V>(x_[i], n);
      for (int v = 0; v < V; ++v)
        n[v] = (n[v] - statistics.mean) * statistics.rstd;
      function(i, position, dy, n);
    });
  }

  /// function(number of the pack, its position) for those that lie in the row.
  template <typename Function>
  __device__ static void each_position(const RowLayout &layout, int64_t row, Function function) {
    const int lane = static_cast<int>(threadIdx.x) % layout.lanes;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int64_t position = (int64_t{i} * layout.lanes + lane) * V;
      if (row < layout.rows && position < layout.length) function(i, position);
    }
  }

  RowStatistics<C> statistics;

 private:
  Pack<T, V> dy_[N], x_[N];
};

/// Rows that fit registers, read once. Groups of threads leave their sums over rows in partials, [groups of all
/// blocks, width]. Where a row is one pack there is little to keep, and many blocks are to run at once.
template <typename T, int V, int N>
__global__ void __launch_bounds__(kBlockThreads, N == 1 ? 4 : 1)
    layer_norm_gradient_kept_rows(const RowLayout layout, const LayerNormGradientWork work, const AnyArray scale,
                                  ParameterSums<Computed<T>> *partials) {
  using C = Computed<T>;
  using Kept = KeptRow<T, V, N>;
  const int groups = kBlockThreads / layout.lanes, group = static_cast<int>(threadIdx.x) / layout.lanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * groups;
  int64_t base = static_cast<int64_t>(blockIdx.x) * groups;
  ParameterSums<C> sums[N][V] = {};
  // Where a row is one pack, the next is read ahead: there are registers for it.
  constexpr bool kReadsAhead = N == 1;
  Kept next(layout, work, base + group);
  while (base < layout.rows) {
    const int64_t index = base + group;
    const Kept row = next;
    base += step;
    if constexpr (kReadsAhead) next = Kept(layout, work, base + group);
    RowSums<C> own = {};
    row.each(layout, index, [&](int i, int64_t position, const C(&dy)[V], const C(&n)[V]) {
      C a[V];
      load_any<V>(scale, position, a);
      for (int v = 0; v < V; ++v) {
        own.average += dy[v] * a[v];
        own.projection += dy[v] * a[v] * n[v];
        sums[i][v].dscale += dy[v] * n[v];
        sums[i][v].doffset += dy[v];
      }
    });
    const RowSums<C> of_row = row_averages(own, layout, is_centred(work));
    row.each(layout, index, [&](int, int64_t position, const C(&dy)[V], const C(&n)[V]) {
      C a[V];
      load_any<V>(scale, position, a);
      for (int v = 0; v < V; ++v)
        a[v] = row.statistics.rstd * (dy[v] * a[v] - of_row.average - n[v] * of_row.projection);
      store_pack<V>(static_cast<T *>(work.dx) + index * layout.length, position, a);
    });
    if constexpr (!kReadsAhead) next = Kept(layout, work, base + group);
  }
  ParameterSums<C> *const mine = partials + grid_thread() / layout.lanes * layout.length;
  Kept::each_position(layout, 0, [&](int i, int64_t position) {
    for (int v = 0; v < V; ++v)
      mine[position + v] = sums[i][v];
  });
}

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
gpuError_t launch_kept_gradient(const LayerNormGradientWork &work, const RowLayout &layout, gpuStream_t stream) {
  using C = Computed<T>;
  auto *const partials = static_cast<ParameterSums<C> *>(work.scratch);
  const unsigned blocks = gradient_blocks(layout);
  const gpuError_t error = gpu_launch(layer_norm_gradient_kept_rows<T, V, N>, blocks, kBlockThreads, 0, stream, layout,
                                      work, any_array(work.scale, work.parameter), partials);
  if (error != gpuSuccess) return error;
  const int64_t groups = int64_t{blocks} * (kBlockThreads / layout.lanes);
  ReductionLayout second = column_layout(1, groups, work.width, 1, kBlockThreads / 32);
  split_rows(second, 1);
  const ParameterFinish<C> finish{work.parameter, work.dscale, work.doffset};
  return launch_column_pass(PartialColumns<ParameterFinish<C>>{finish, partials, 1, work.width}, second,
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

int64_t sums_bytes(DType dtype) { return dtype == DType::f64 ? 16 : 8; }

}  // namespace

gpuError_t launch_layer_norm(const LayerNormWork &work, gpuStream_t stream) {
  const bool wide = is_wide(work.dtype, work.width, {work.x, work.y});
  return visit_rows(work.dtype, wide, work.order, work.rows, work.width,
                    [&](auto storage, auto shape, const RowLayout &layout) {
                      using T = typename decltype(storage)::type;
                      constexpr int kWidth = decltype(shape)::kWidth, kPacks = decltype(shape)::kPacks;
                      const auto kernel = work.parameter == DType::f32 ? layer_norm_rows<T, float, kWidth, kPacks>
                                                                       : layer_norm_rows<T, AnyFloat, kWidth, kPacks>;
                      return gpu_launch(kernel, layout.blocks(), kBlockThreads, 0, stream, layout, work,
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
    if (one.is_kept) return launch_kept_gradient<T, kWidth, 1>(work, one, stream);
    const RowLayout several = gradient_layout(work.rows, work.width, kWidth, kPacks);
    if (several.is_kept) return launch_kept_gradient<T, kWidth, kPacks>(work, several, stream);
    return launch_long_gradient<T, kWidth>(work, several, stream);
  });
}

}  // namespace tutti::impl::backend::gpu
