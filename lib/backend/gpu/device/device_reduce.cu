// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_reduce.h"

#include <type_traits>

#include "backend/gpu/device/reduce_work-inl.h"
#include "backend/gpu/device/reduction-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

// ---- what is read ----

/// Packs of V floats of type T.
template <typename T, int V>
struct PackSource {
  using C = Computed<T>;
  static constexpr int kWidth = V;
  const T *data;
  __device__ void load(int64_t index, C (&x)[V]) const { load_pack<V>(data, index, x); }
};

/// Single elements of any dtype as D.
template <typename D>
struct AnySource {
  using C = D;
  static constexpr int kWidth = 1;
  AnyArray array;
  __device__ void load(int64_t index, C (&x)[1]) const { x[0] = load_any<C>(array, index); }
};

/// Packs of V floats of type T that lie at outer * outer_stride + row * row_stride + column: several rows are on their
/// way at once.
template <typename Op, typename T, int V>
struct PlainReduction {
  static constexpr int kWidth = V, kRowsAhead = 4, kBlocksAtOnce = 4;
  using C = Computed<T>;
  using Finish = ReduceFinish<Op, C>;
  using Loaded = HeldPack<T, V>;
  struct State {
    C totals[V];
  };
  Finish finish;
  const T *data;
  int64_t outer_stride, row_stride;

  __device__ State begin(int64_t, int64_t, bool, int64_t) const {
    State state;
    for (int v = 0; v < V; ++v)
      state.totals[v] = finish.start;
    return state;
  }
  __device__ Loaded load(int64_t outer, int64_t row, int64_t column) const {
    return held_pack_at<V>(data, outer * outer_stride + row * row_stride + column);
  }
  __device__ void add(State &state, int64_t, int64_t, int64_t, const Loaded &loaded) const {
    C x[V];
    widen_held<V>(loaded, x);
    for (int v = 0; v < V; ++v)
      state.totals[v] = Op::combine(state.totals[v], Op::taken(x[v]));
  }
  __device__ C total(const State &state, int v) const { return state.totals[v]; }
};

// ---- the place of an extreme ----

/// The best element of some and where it lies; index -1: of none.
template <typename C>
struct Choice {
  C value;
  int64_t index;
};

template <typename C>
__device__ inline Choice<C> exchanged(Choice<C> choice, int mask) {
  return {gpu_shuffle_xor(choice.value, mask), gpu_shuffle_xor(choice.index, mask)};
}

template <typename C, bool kIsMax>
struct ChoiceFinish {
  using Total = Choice<C>;
  int64_t *y;
  int64_t columns;

  __device__ Total none() const { return {C(0), -1}; }
  /// The first of equals; the first NaN beats all.
  __device__ static Total combine(Total a, Total b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
    if (a_is_nan || a.value == b.value) return a.index < b.index ? a : b;
    return (a.value > b.value) == kIsMax ? a : b;
  }
  __device__ void write(int64_t outer, int64_t column, const Total &total) const {
    y[outer * columns + column] = total.index;
  }
};

template <typename C, bool kIsMax>
struct ChoiceWork {
  static constexpr int kWidth = 1;
  using Finish = ChoiceFinish<C, kIsMax>;
  struct State {
    int64_t origin;
    Choice<C> best;
  };
  Finish finish;
  AnyArray x;
  ReduceWalk outer_walk, row_walk;

  __device__ State begin(int64_t outer, int64_t, bool, int64_t column) const {
    return {position_of(outer_walk, outer) + column, finish.none()};
  }
  __device__ void add(State &state, int64_t, int64_t row, int64_t) const {
    state.best = Finish::combine(state.best, {load_any<C>(x, state.origin + position_of(row_walk, row)), row});
  }
  __device__ Choice<C> total(const State &state, int) const { return state.best; }
};

// ---- launches ----

template <typename Work>
gpuError_t launch(const Work &work, const ReduceWork &what, gpuStream_t stream) {
  if (what.columns == 1) return launch_lines(work, what.outer, what.rows, what.scratch, stream, what.order);
  return launch_columns(work, what.outer, what.rows, what.columns, what.scratch, stream, what.order);
}

template <typename Op, typename Source>
gpuError_t launch_source(const ReduceWork &what, const Source &source, typename Source::C start, gpuStream_t stream) {
  using C = typename Source::C;
  const ReduceFinish<Op, C> finish{start, static_cast<C>(what.divisor), what.result, what.y, what.columns};
  return launch(Reduction<Op, Source>{finish, source, what.outer_walk, what.row_walk}, what, stream);
}

/// Is the walk along one axis at most?
bool is_plain(const ReduceWalk &walk) { return walk.rank <= 1; }
int64_t stride_of(const ReduceWalk &walk) { return walk.rank == 0 ? 0 : walk.strides[0]; }

template <typename Op, typename T, int V>
gpuError_t launch_packs(const ReduceWork &what, Computed<T> start, gpuStream_t stream) {
  using C = Computed<T>;
  const T *const x = static_cast<const T *>(what.x);
  if constexpr (std::is_same_v<Op, Sum>) {
    if (is_plain(what.outer_walk) && is_plain(what.row_walk)) {
      const ReduceFinish<Op, C> finish{start, static_cast<C>(what.divisor), what.result, what.y, what.columns};
      return launch(PlainReduction<Op, T, V>{finish, x, stride_of(what.outer_walk), stride_of(what.row_walk)}, what,
                    stream);
    }
  }
  return launch_source<Op>(what, PackSource<T, V>{x}, start, stream);
}

template <typename Op>
gpuError_t launch_floats(const ReduceWork &what, double start, gpuStream_t stream) {
  const bool wide = takes_packs(what) && is_wide(what.dtype, what.contiguous, {what.x});
  return visit_floats(what.dtype, wide, [&](auto storage) {
    using T = typename decltype(storage)::type;
    constexpr int kWidth = decltype(storage)::kWidth;
    const auto first = static_cast<Computed<T>>(start);
    if constexpr (kWidth == 1) {
      return launch_source<Op>(what, AnySource<Computed<T>>{any_array(what.x, what.dtype)}, first, stream);
    } else {
      return launch_packs<Op, T, kWidth>(what, first, stream);
    }
  });
}

template <typename Op>
gpuError_t launch_integers(const ReduceWork &what, gpuStream_t stream) {
  const AnyArray x = any_array(what.x, what.dtype);
  if (what.dtype == DType::u64)
    return launch_source<Op>(what, AnySource<uint64_t>{x}, static_cast<uint64_t>(what.integer_start), stream);
  return launch_source<Op>(what, AnySource<int64_t>{x}, what.integer_start, stream);
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

template <bool kIsMax>
gpuError_t launch_choice(const ReduceWork &what, gpuStream_t stream) {
  const auto with = [&](auto zero) {
    using C = decltype(zero);
    const ChoiceFinish<C, kIsMax> finish{static_cast<int64_t *>(what.y), what.columns};
    return launch(ChoiceWork<C, kIsMax>{finish, any_array(what.x, what.dtype), what.outer_walk, what.row_walk}, what,
                  stream);
  };
  if (what.dtype == DType::f64) return with(0.0);
  if (is_float(what.dtype)) return with(0.0f);
  return what.dtype == DType::u64 ? with(uint64_t{0}) : with(int64_t{0});
}

template <typename Op>
gpuError_t launch_partials_of(const ReduceWork &what, float start, gpuStream_t stream) {
  const ReduceFinish<Op, float> finish{start, static_cast<float>(what.divisor), what.result, what.y, what.columns};
  const float *const partials = static_cast<const float *>(what.scratch);
  const int64_t splits = what.layout.splits;
  if (what.columns == 1) return launch_line_partials(finish, what.outer, splits, partials, stream, what.order);
  return launch_column_partials(finish, what.outer, what.columns, splits, partials, stream, what.order);
}

}  // namespace

gpuError_t launch_reduce_partials(const ReduceWork &work, gpuStream_t stream) {
  if (work.op == ReduceOp::max) return launch_partials_of<Max>(work, -HUGE_VALF, stream);
  if (work.op == ReduceOp::min) return launch_partials_of<Min>(work, HUGE_VALF, stream);
  return launch_partials_of<Sum>(work, 0, stream);
}

int64_t reduce_scratch_bytes(const ReduceWork &work) {
  const int64_t total = work.op == ReduceOp::argmax || work.op == ReduceOp::argmin ? 16 : 8;
  const int64_t width = pack_width(work.dtype);
  if (work.columns == 1) return line_partial_bytes(work.outer, work.rows, width, total, work.order);
  return column_partial_bytes(work.outer, work.rows, work.columns, width, total, work.order);
}

gpuError_t launch_reduce(const ReduceWork &work, gpuStream_t stream) {
  const bool floats = is_float(work.dtype);
  switch (work.op) {
    case ReduceOp::sum:
      return floats ? launch_floats<Sum>(work, 0, stream) : launch_integers<Sum>(work, stream);
    case ReduceOp::product:  // in double: factors may leave the range of float on the way
      if (!floats) return launch_integers<Product>(work, stream);
      return launch_source<Product>(work, AnySource<double>{any_array(work.x, work.dtype)}, 1.0, stream);
    case ReduceOp::max:
      return floats ? launch_floats<Max>(work, -HUGE_VAL, stream) : launch_integers<Max>(work, stream);
    case ReduceOp::min:
      return floats ? launch_floats<Min>(work, HUGE_VAL, stream) : launch_integers<Min>(work, stream);
    case ReduceOp::all_finite:
      return launch_floats<AllFinite>(work, 1, stream);
    case ReduceOp::argmax:
      return launch_choice<true>(work, stream);
    case ReduceOp::argmin:
      return launch_choice<false>(work, stream);
  }
  return gpuErrorInvalidValue;
}

}  // namespace tutti::impl::backend::gpu
