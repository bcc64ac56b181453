// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_batch_norm.h"

#include "backend/gpu/channel_pass-inl.h"
#include "backend/gpu/moments-inl.h"
#include "backend/gpu/product_results-inl.h"
#include "backend/gpu/reduction-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Two arrays of C per channel in scratch memory, in front of partial results.
template <typename C>
struct ChannelScratch {
  C *first, *second;
  void *partials;

  explicit ChannelScratch(const BatchNormWork &work)
      : first(static_cast<C *>(work.scratch)),
        second(first + work.channels),
        partials(static_cast<char *>(work.scratch) + bytes(work)) {}
  static int64_t bytes(const BatchNormWork &work) {
    return divide_up(2 * work.channels * static_cast<int64_t>(sizeof(C)), 16) * 16;
  }
};

template <typename C>
inline constexpr DType kDTypeOf = sizeof(C) == 8 ? DType::f64 : DType::f32;

// ---- mean and variance ----

template <typename C>
struct MomentsFinish {
  using Total = Moments<C>;
  bool as_sums;          ///< first = sum(x), second = sum(x²), as f64
  void *first, *second;  ///< else mean and variance
  DType dtype;
  C *mean, *variance;  ///< in scratch memory; not of sums

  __device__ Total none() const { return no_moments<C>(); }
  __device__ static Total combine(Total a, Total b) { return combine_moments(a, b); }
  __device__ void write(int64_t, int64_t channel, const Total &total) const {
    if (as_sums) {
      const double sum = static_cast<double>(total.count) * static_cast<double>(total.mean);
      static_cast<double *>(first)[channel] = sum;
      static_cast<double *>(second)[channel] =
          static_cast<double>(total.squares) + sum * static_cast<double>(total.mean);
    } else {
      mean[channel] = total.mean;
      variance[channel] = total.variance();
      store_element<C>(dtype, first, channel, mean[channel]);
      store_element<C>(dtype, second, channel, variance[channel]);
    }
  }
};

template <typename T, int V>
struct MomentsWork {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  using Finish = MomentsFinish<C>;
  using State = MomentSums<C, V>;
  Finish finish;
  const T *x;
  int64_t channels;

  __device__ State begin(int64_t, int64_t row, bool has_row, int64_t channel) const {
    State state{};
    if (has_row) load_pack<V>(x, row * channels + channel, state.origin);
    return state;
  }
  __device__ void add(State &state, int64_t, int64_t row, int64_t channel) const {
    C pack[V];
    load_pack<V>(x, row * channels + channel, pack);
    state.add(pack);
  }
  __device__ Moments<C> total(const State &state, int v) const { return state.total(v); }
};

/// Of sums: to the results and to `means` and `variances` in scratch memory, as MomentsFinish does. In f64, as where
/// several devices add up such sums: no more digits are lost than in the sums.
__global__ void finish_sums(const BatchNormWork work, const float *sums, const float *squares, float *means,
                            float *variances) {
  const double count = static_cast<double>(work.rows > 1 ? work.rows : 1);
  for (int64_t channel = grid_thread(); channel < work.channels; channel += grid_threads()) {
    const double mean = static_cast<double>(sums[channel]) / count;
    const double variance = static_cast<double>(squares[channel]) / count - mean * mean;
    means[channel] = static_cast<float>(mean);
    variances[channel] = variance < 0 ? 0 : static_cast<float>(variance);
    store_element<float>(work.statistics, work.first, channel, means[channel]);
    store_element<float>(work.statistics, work.second, channel, variances[channel]);
  }
}

__global__ void widen_sums(const BatchNormWork work, const float *sums, const float *squares) {
  for (int64_t channel = grid_thread(); channel < work.channels; channel += grid_threads()) {
    static_cast<double *>(work.first)[channel] = static_cast<double>(sums[channel]);
    static_cast<double *>(work.second)[channel] = static_cast<double>(squares[channel]);
  }
}

// ---- sums of the gradient ----

template <typename C>
struct SlopeSums {
  C dy, dy_xc;  ///< sums of dy and of dy · (x - mean)
};

template <typename C>
struct SlopeFinish {
  using Total = SlopeSums<C>;
  bool as_sums;          ///< first = sum(dy), second = sum(dy · (x - mean)), as f64
  void *first, *second;  ///< else dscale and doffset
  AnyArray variance;
  C epsilon;
  C *sum_dy, *sum_dy_xc;  ///< in scratch memory; not of sums

  __device__ Total none() const { return {C(0), C(0)}; }
  __device__ static Total combine(Total a, Total b) { return {a.dy + b.dy, a.dy_xc + b.dy_xc}; }
  __device__ void write(int64_t, int64_t channel, const Total &total) const {
    if (as_sums) {
      static_cast<double *>(first)[channel] = static_cast<double>(total.dy);
      static_cast<double *>(second)[channel] = static_cast<double>(total.dy_xc);
    } else {
      sum_dy[channel] = total.dy;
      sum_dy_xc[channel] = total.dy_xc;
      const C deviation = std::sqrt(load_any<C>(variance, channel) + epsilon);
      store_element<C>(variance.dtype, first, channel, total.dy_xc / deviation);
      store_element<C>(variance.dtype, second, channel, total.dy);
    }
  }
};

template <typename T, int V>
struct SlopeWork {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  using Finish = SlopeFinish<C>;
  struct State {
    C mean[V];
    SlopeSums<C> sums[V];
  };
  Finish finish;
  const T *dy, *x;
  AnyArray mean;
  int64_t channels;

  __device__ State begin(int64_t, int64_t, bool, int64_t channel) const {
    State state{};
    load_any<V>(mean, channel, state.mean);
    return state;
  }
  __device__ void add(State &state, int64_t, int64_t row, int64_t channel) const {
    C slopes[V], values[V];
    load_pack<V>(dy, row * channels + channel, slopes);
    load_pack<V>(x, row * channels + channel, values);
    for (int v = 0; v < V; ++v) {
      state.sums[v].dy += slopes[v];
      state.sums[v].dy_xc += slopes[v] * (values[v] - state.mean[v]);
    }
  }
  __device__ SlopeSums<C> total(const State &state, int v) const { return state.sums[v]; }
};

// ---- passes over the elements ----

/// Stores V results at `index` as they are, whose first is in `channel`. What it reads is read before x is waited for.
template <typename T>
struct PlainStore {
  T *y;

  template <int V>
  struct Ahead {};

  template <int V>
  __device__ Ahead<V> read(int64_t, int64_t) const {
    return {};
  }
  template <int V>
  __device__ void operator()(int64_t index, int64_t, const Ahead<V> &, Computed<T> (&pack)[V]) const {
    store_pack<V>(y, index, pack);
  }
};

/// Stores what an epilogue makes of them.
struct FinishedStore {
  Epilogue epilogue;
  void *y;
  bool is_wide;    ///< may four neighbours be stored together?
  int32_t loaded;  ///< the operand that is read ahead, -1: none

  template <int V>
  using Ahead = EpilogueLanes<V>;

  template <int V>
  __device__ Ahead<V> read(int64_t index, int64_t channel) const {
    Ahead<V> ahead = {};
    if (loaded >= 0) load_operand(epilogue.operands[loaded], index, channel, V, ahead);
    return ahead;
  }
  template <int V>
  __device__ void operator()(int64_t index, int64_t channel, const Ahead<V> &ahead, float (&pack)[V]) const {
    EpilogueLanes<V> lanes;
    TUTTI_UNROLL
    for (int v = 0; v < V; ++v)
      lanes.lane[v] = pack[v];
    run_epilogue_ahead(epilogue, index, channel, loaded, ahead, lanes);
    if (V % 4 == 0 && is_wide) {
      TUTTI_UNROLL
      for (int v = 0; v + 4 <= V; v += 4)
        store_four(epilogue.dtype, y, index + v,
                   Quad<float>{{lanes.lane[v], lanes.lane[v + 1], lanes.lane[v + 2], lanes.lane[v + 3]}});
    } else {
      TUTTI_UNROLL
      for (int v = 0; v < V; ++v)
        store_float<float>(epilogue.dtype, y, index + v, lanes.lane[v]);
    }
  }
};

/// y = (x - mean) · scale / sqrt(variance + epsilon) + offset.
template <typename T, int V, typename Store>
struct NormalizePass {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  struct Channels {
    int64_t first;
    C mean[V], factor[V], offset[V];
  };
  const T *x;
  Store store;
  AnyArray scale, offset, mean, variance;
  C epsilon;

  __device__ Channels begin(int64_t, int64_t channel) const {
    Channels channels;
    channels.first = channel;
    C spread[V];
    load_any<V>(mean, channel, channels.mean);
    load_any<V>(scale, channel, channels.factor);
    load_any<V>(offset, channel, channels.offset);
    load_any<V>(variance, channel, spread);
    for (int v = 0; v < V; ++v)
      channels.factor[v] /= std::sqrt(spread[v] + epsilon);
    return channels;
  }
  struct Loaded {
    Pack<T, V> x;
    typename Store::template Ahead<V> ahead;
  };
  __device__ Loaded load(const Channels &channels, int64_t index) const {
    return {pack_at<V>(x, index), store.template read<V>(index, channels.first)};
  }
  __device__ void finish(const Channels &channels, int64_t index, const Loaded &loaded) const {
    C pack[V];
    widen_pack(loaded.x, pack);
    for (int v = 0; v < V; ++v)
      pack[v] = (pack[v] - channels.mean[v]) * channels.factor[v] + channels.offset[v];
    store(index, channels.first, loaded.ahead, pack);
  }
};

/// dx = scale · r · (dy - sum_dy / count - (x - mean) · r² · sum_dy_xc / count), r = 1 / sqrt(variance + epsilon).
template <typename T, int V>
struct GradientPass {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  struct Channels {
    C mean[V], factor[V], average[V], slope[V];
  };
  const T *dy, *x;
  T *dx;
  AnyArray scale, mean, variance, sum_dy, sum_dy_xc;
  const double *count;  ///< on the device; null: rows
  C rows, epsilon;

  __device__ Channels begin(int64_t, int64_t channel) const {
    Channels channels;
    C spread[V];
    const C divisor = count != nullptr ? static_cast<C>(*count) : rows;
    load_any<V>(mean, channel, channels.mean);
    load_any<V>(scale, channel, channels.factor);
    load_any<V>(sum_dy, channel, channels.average);
    load_any<V>(sum_dy_xc, channel, channels.slope);
    load_any<V>(variance, channel, spread);
    for (int v = 0; v < V; ++v) {
      const C r = 1 / std::sqrt(spread[v] + epsilon);
      channels.factor[v] *= r;
      channels.average[v] /= divisor;
      channels.slope[v] *= r * r / divisor;
    }
    return channels;
  }
  struct Loaded {
    Pack<T, V> dy, x;
  };
  __device__ Loaded load(const Channels &, int64_t index) const {
    return {pack_at<V>(dy, index), pack_at<V>(x, index)};
  }
  __device__ void finish(const Channels &channels, int64_t index, const Loaded &loaded) const {
    C slopes[V], values[V];
    widen_pack(loaded.dy, slopes);
    widen_pack(loaded.x, values);
    for (int v = 0; v < V; ++v)
      slopes[v] =
          channels.factor[v] * (slopes[v] - channels.average[v] - (values[v] - channels.mean[v]) * channels.slope[v]);
    store_pack<V>(dx, index, slopes);
  }
};

// ---- launches ----

template <typename T, int V, typename Store>
gpuError_t launch_normalize(const BatchNormWork &work, const AnyArray &mean, const AnyArray &variance,
                            const Store &store, gpuStream_t stream) {
  const NormalizePass<T, V, Store> pass{
      static_cast<const T *>(work.x),         store, any_array(work.scale, work.parameter),
      any_array(work.offset, work.parameter), mean,  variance,
      static_cast<Computed<T>>(work.epsilon)};
  return launch_pass(pass, 1, work.rows, work.channels, stream);
}

FinishedStore finished_store(const BatchNormWork &work) {
  FinishedStore store{*work.epilogue, work.y, is_wide(work.y, work.epilogue->dtype, work.channels), -1};
  for (int32_t i = Epilogue::kOperands - 1; i >= 0; --i) {
    EpilogueOperand &operand = store.epilogue.operands[i];
    operand.is_wide = operand.access != EpilogueAccess::scalar && operand.data != nullptr &&
                      is_wide(operand.data, operand.dtype, work.channels);
    if (operand.is_wide != 0 && operand.access == EpilogueAccess::dense) store.loaded = i;
  }
  return store;
}

template <typename T, int V>
gpuError_t launch_normalize(const BatchNormWork &work, const AnyArray &mean, const AnyArray &variance,
                            gpuStream_t stream) {
  if constexpr (sizeof(T) < sizeof(double)) {
    if (work.epilogue != nullptr) return launch_normalize<T, V>(work, mean, variance, finished_store(work), stream);
  }
  return launch_normalize<T, V>(work, mean, variance, PlainStore<T>{static_cast<T *>(work.y)}, stream);
}

template <typename T, int V>
gpuError_t launch_slopes(const BatchNormWork &work, bool as_sums, gpuStream_t stream) {
  using C = Computed<T>;
  const ChannelScratch<C> scratch(work);
  const SlopeFinish<C> finish{
      as_sums,       work.first,    work.second, any_array(work.variance, work.parameter), static_cast<C>(work.epsilon),
      scratch.first, scratch.second};
  const SlopeWork<T, V> slopes{finish, static_cast<const T *>(work.dy), static_cast<const T *>(work.x),
                               any_array(work.mean, work.parameter), work.channels};
  return launch_columns(slopes, 1, work.rows, work.channels, scratch.partials, stream);
}

template <typename T, int V>
gpuError_t launch_gradient(const BatchNormWork &work, const AnyArray &sum_dy, const AnyArray &sum_dy_xc,
                           gpuStream_t stream) {
  using C = Computed<T>;
  const GradientPass<T, V> pass{static_cast<const T *>(work.dy),
                                static_cast<const T *>(work.x),
                                static_cast<T *>(work.y),
                                any_array(work.scale, work.parameter),
                                any_array(work.mean, work.parameter),
                                any_array(work.variance, work.parameter),
                                sum_dy,
                                sum_dy_xc,
                                work.count,
                                static_cast<C>(std::max<int64_t>(work.rows, 1)),
                                static_cast<C>(work.epsilon)};
  return launch_pass(pass, 1, work.rows, work.channels, stream);
}

template <typename T, int V>
gpuError_t launch_moments(const BatchNormWork &work, bool as_sums, gpuStream_t stream) {
  using C = Computed<T>;
  const ChannelScratch<C> scratch(work);
  const MomentsFinish<C> finish{as_sums, work.first, work.second, work.statistics, scratch.first, scratch.second};
  return launch_columns(MomentsWork<T, V>{finish, static_cast<const T *>(work.x), work.channels}, 1, work.rows,
                        work.channels, scratch.partials, stream);
}

template <typename Function>
gpuError_t visit(const BatchNormWork &work, Function function) {
  return visit_floats(work.dtype, is_wide(work.dtype, work.channels, {work.x, work.dy, work.y}), function);
}

}  // namespace

int64_t batch_norm_scratch_bytes(const BatchNormWork &work) {
  const int64_t size = work.dtype == DType::f64 ? 8 : 4;
  return divide_up(2 * work.channels * size, 16) * 16 +
         column_partial_bytes(1, work.rows, work.channels, pack_width(work.dtype), 3 * size);
}

gpuError_t launch_batch_norm_moments(const BatchNormWork &work, gpuStream_t stream) {
  return visit(work, [&](auto storage) {
    using S = decltype(storage);
    return launch_moments<typename S::type, S::kWidth>(work, true, stream);
  });
}

gpuError_t launch_batch_norm_training(const BatchNormWork &work, gpuStream_t stream) {
  return visit(work, [&](auto storage) {
    using S = decltype(storage);
    using C = Computed<typename S::type>;
    const gpuError_t error = launch_moments<typename S::type, S::kWidth>(work, false, stream);
    if (error != gpuSuccess) return error;
    const ChannelScratch<C> scratch(work);
    return launch_normalize<typename S::type, S::kWidth>(work, any_array(scratch.first, kDTypeOf<C>),
                                                         any_array(scratch.second, kDTypeOf<C>), stream);
  });
}

gpuError_t launch_batch_norm_of_sums(const BatchNormWork &work, const float *sums, const float *squares,
                                     gpuStream_t stream) {
  if (work.channels == 0) return gpuSuccess;
  const ChannelScratch<float> scratch(work);
  const gpuError_t error = gpu_launch(finish_sums, blocks_for(work.channels), kBlockThreads, 0, stream, work, sums,
                                      squares, scratch.first, scratch.second);
  if (error != gpuSuccess) return error;
  return visit(work, [&](auto storage) {
    using S = decltype(storage);
    if constexpr (sizeof(typename S::type) == sizeof(double)) {
      return gpuErrorInvalidValue;
    } else {
      return launch_normalize<typename S::type, S::kWidth>(work, any_array(scratch.first, DType::f32),
                                                           any_array(scratch.second, DType::f32), stream);
    }
  });
}

gpuError_t launch_batch_norm_moments_of_sums(const BatchNormWork &work, const float *sums, const float *squares,
                                             gpuStream_t stream) {
  if (work.channels == 0) return gpuSuccess;
  return gpu_launch(widen_sums, blocks_for(work.channels), kBlockThreads, 0, stream, work, sums, squares);
}

gpuError_t launch_batch_norm_inference(const BatchNormWork &work, gpuStream_t stream) {
  return visit(work, [&](auto storage) {
    using S = decltype(storage);
    return launch_normalize<typename S::type, S::kWidth>(work, any_array(work.mean, work.parameter),
                                                         any_array(work.variance, work.parameter), stream);
  });
}

gpuError_t launch_batch_norm_gradient_moments(const BatchNormWork &work, gpuStream_t stream) {
  return visit(work, [&](auto storage) {
    using S = decltype(storage);
    return launch_slopes<typename S::type, S::kWidth>(work, true, stream);
  });
}

gpuError_t launch_batch_norm_training_gradient(const BatchNormWork &work, gpuStream_t stream) {
  return visit(work, [&](auto storage) {
    using S = decltype(storage);
    using C = Computed<typename S::type>;
    const gpuError_t error = launch_slopes<typename S::type, S::kWidth>(work, false, stream);
    if (error != gpuSuccess) return error;
    const ChannelScratch<C> scratch(work);
    return launch_gradient<typename S::type, S::kWidth>(work, any_array(scratch.first, kDTypeOf<C>),
                                                        any_array(scratch.second, kDTypeOf<C>), stream);
  });
}

gpuError_t launch_batch_norm_gradient_apply(const BatchNormWork &work, gpuStream_t stream) {
  return visit(work, [&](auto storage) {
    using S = decltype(storage);
    return launch_gradient<typename S::type, S::kWidth>(work, any_array(work.sum_dy, DType::f64),
                                                        any_array(work.sum_dy_xc, DType::f64), stream);
  });
}

}  // namespace tutti::impl::backend::gpu
