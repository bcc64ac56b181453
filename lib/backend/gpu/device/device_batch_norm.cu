// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_batch_norm.h"

#include "backend/gpu/device/batch_norm-inl.h"
#include "backend/gpu/device/channel_pass-inl.h"
#include "backend/gpu/device/moments-inl.h"
#include "backend/gpu/device/usual_epilogue-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

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
  static constexpr int kWidth = V, kBlocksAtOnce = 4;
  static constexpr bool kTakesTurns = true;
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

// ---- passes over the elements ----

// Stores V results at `index`, whose first is in `channel`. What a store reads is read before x is waited for.

/// As they are.
template <typename T, int V>
struct PlainStore {
  struct Ahead {};
  T *y;

  __device__ Ahead read(int64_t) const { return {}; }
  __device__ void put(int64_t index, int64_t, const Ahead &, Computed<T> (&pack)[V]) const {
    store_pack<V>(y, index, pack);
  }
};

/// What an epilogue of usual steps makes of them, as results of the same type.
template <typename T, int V, typename Usual>
struct UsualStore {
  using Ahead = typename Usual::Loaded;
  Usual epilogue;
  T *y;

  __device__ Ahead read(int64_t index) const { return epilogue.load(index); }
  __device__ void put(int64_t index, int64_t channel, const Ahead &ahead, float (&pack)[V]) const {
    EpilogueLanes<V> lanes;
    for (int v = 0; v < V; ++v)
      lanes.lane[v] = pack[v];
    epilogue.run(ahead, index, channel, lanes);
    store_pack<V>(y, index, lanes.lane);
  }
};

/// What any epilogue makes of them.
template <int V>
struct FinishedStore {
  struct Ahead {};
  Epilogue epilogue;
  void *y;
  bool is_wide;  ///< may four neighbours be stored together?

  __device__ Ahead read(int64_t) const { return {}; }
  __device__ void put(int64_t index, int64_t channel, const Ahead &, float (&pack)[V]) const {
    EpilogueLanes<V> lanes;
    TUTTI_UNROLL
    for (int v = 0; v < V; ++v)
      lanes.lane[v] = pack[v];
    run_epilogue(epilogue, index, channel, V, lanes);
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

/// y = (x - mean) · scale / sqrt(variance + epsilon) + offset. It begins where the sums, or who made x, ended.
template <typename T, int V, typename Store>
struct NormalizePass {
  static constexpr int kWidth = V;
  static constexpr bool kBeginsAtTheEnd = true;
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
      channels.factor[v] = norm_factor(channels.factor[v], spread[v], epsilon);
    return channels;
  }
  struct Loaded {
    Pack<T, V> x;
    typename Store::Ahead ahead;
  };
  __device__ Loaded load(const Channels &, int64_t index) const { return {pack_at<V>(x, index), store.read(index)}; }
  __device__ void finish(const Channels &channels, int64_t index, const Loaded &loaded) const {
    C pack[V];
    widen_pack(loaded.x, pack);
    for (int v = 0; v < V; ++v)
      pack[v] = normalized(pack[v] - channels.mean[v], channels.factor[v], channels.offset[v]);
    store.put(index, channels.first, loaded.ahead, pack);
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

/// Followed by the work's epilogue.
template <typename T, int V>
gpuError_t launch_followed(const BatchNormWork &work, const AnyArray &mean, const AnyArray &variance,
                           gpuStream_t stream) {
  const Epilogue &epilogue = *work.epilogue;
  if (epilogue.dtype == work.dtype && is_usual(epilogue)) {
    return visit_usual_epilogue<T, V>(epilogue, work.dtype, work.channels, [&]<typename Usual>(const Usual &usual) {
      const UsualStore<T, V, Usual> store{usual, static_cast<T *>(work.y)};
      return launch_normalize<T, V>(work, mean, variance, store, stream);
    });
  }
  const FinishedStore<V> store{with_widths(epilogue, work.channels), work.y,
                               is_wide(work.y, epilogue.dtype, work.channels)};
  return launch_normalize<T, V>(work, mean, variance, store, stream);
}

template <typename T, int V>
gpuError_t launch_normalize(const BatchNormWork &work, const AnyArray &mean, const AnyArray &variance,
                            gpuStream_t stream) {
  if constexpr (sizeof(T) < sizeof(double)) {
    if (work.epilogue != nullptr) return launch_followed<T, V>(work, mean, variance, stream);
  }
  return launch_normalize<T, V>(work, mean, variance, PlainStore<T, V>{static_cast<T *>(work.y)}, stream);
}

template <typename T, int V>
gpuError_t launch_moments(const BatchNormWork &work, bool as_sums, gpuStream_t stream) {
  using C = Computed<T>;
  const ChannelScratch<C> scratch(work);
  const MomentsFinish<C> finish{as_sums, work.first, work.second, work.statistics, scratch.first, scratch.second};
  return launch_columns(MomentsWork<T, V>{finish, static_cast<const T *>(work.x), work.channels}, 1, work.rows,
                        work.channels, scratch.partials, stream);
}

}  // namespace

int64_t batch_norm_scratch_bytes(const BatchNormWork &work) {
  const int64_t size = work.dtype == DType::f64 ? 8 : 4;
  return divide_up(2 * work.channels * size, 16) * 16 +
         column_partial_bytes(1, work.rows, work.channels, pack_width(work.dtype), 3 * size);
}

gpuError_t launch_batch_norm_moments(const BatchNormWork &work, gpuStream_t stream) {
  return visit_batch_norm(work, [&](auto storage) {
    using S = decltype(storage);
    return launch_moments<typename S::type, S::kWidth>(work, true, stream);
  });
}

gpuError_t launch_batch_norm_training(const BatchNormWork &work, gpuStream_t stream) {
  return visit_batch_norm(work, [&](auto storage) {
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
  return visit_batch_norm(work, [&](auto storage) {
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
  return visit_batch_norm(work, [&](auto storage) {
    using S = decltype(storage);
    return launch_normalize<typename S::type, S::kWidth>(work, any_array(work.mean, work.parameter),
                                                         any_array(work.variance, work.parameter), stream);
  });
}

}  // namespace tutti::impl::backend::gpu
