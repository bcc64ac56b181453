// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a batch normalisation: sums over the rows, then a pass over the elements, which begins where the sums
// ended: what was read last is still near.
#include <type_traits>

#include "backend/gpu/device/batch_norm-inl.h"
#include "backend/gpu/device/channel_pass-inl.h"
#include "backend/gpu/device/usual_epilogue-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

// ---- where dy comes from ----

/// From memory, as it lies there.
template <typename T, int V>
struct GivenSlopes {
  using C = Computed<T>;
  static constexpr int kRowsAhead = 2, kBlocksAtOnce = 4;
  struct Channels {};
  using Loaded = Pack<T, V>;
  const T *dy;

  __device__ Channels begin(int64_t) const { return {}; }
  __device__ Loaded load(int64_t index) const { return pack_at<V>(dy, index); }
  /// Of elements whose x, less its mean, is `centred`.
  __device__ void get(const Channels &, const Loaded &loaded, int64_t, int64_t, const C (&)[V], C (&slopes)[V]) const {
    widen_pack(loaded, slopes);
  }
};

/// Up to here a positive number is rounded to 0.
template <typename T>
inline constexpr float kRoundedToZero = 0;
template <>
inline constexpr float kRoundedToZero<Float16> = 0x1p-25f;
template <>
inline constexpr float kRoundedToZero<BFloat16> = 0x1p-134f;

/// Those of relu of the normalisation's own results: what is not positive has none. The results are computed again, and
/// looked at as if they were rounded as they were stored.
template <typename T, int V>
struct ReluSlopes {
  using C = Computed<T>;
  static constexpr int kRowsAhead = 4, kBlocksAtOnce = 2;
  struct Channels {
    C factor[V], offset[V];
  };
  using Loaded = Pack<T, V>;
  const T *dy;  ///< of relu's results
  AnyArray scale, offset, variance;
  C epsilon;

  __device__ Channels begin(int64_t channel) const {
    Channels channels;
    C spread[V];
    load_any<V>(scale, channel, channels.factor);
    load_any<V>(offset, channel, channels.offset);
    load_any<V>(variance, channel, spread);
    for (int v = 0; v < V; ++v)
      channels.factor[v] = norm_factor(channels.factor[v], spread[v], epsilon);
    return channels;
  }
  __device__ Loaded load(int64_t index) const { return pack_at<V>(dy, index); }
  __device__ void get(const Channels &channels, const Loaded &loaded, int64_t, int64_t, const C (&centred)[V],
                      C (&slopes)[V]) const {
    widen_pack(loaded, slopes);
    for (int v = 0; v < V; ++v) {
      const C result = normalized(centred[v], channels.factor[v], channels.offset[v]);
      if (!(result > C(kRoundedToZero<T>))) slopes[v] = 0;
    }
  }
};

/// What an epilogue of usual steps makes of an array, which is stored, too.
template <typename T, int V, typename Usual>
struct MadeSlopes {
  static constexpr int kRowsAhead = 2, kBlocksAtOnce = 2;
  struct Channels {};
  struct Loaded {
    Pack<T, V> first;
    typename Usual::Loaded operands;
  };
  const T *first;
  T *dy;
  Usual epilogue;

  __device__ Channels begin(int64_t) const { return {}; }
  __device__ Loaded load(int64_t index) const { return {pack_at<V>(first, index), epilogue.load(index)}; }
  __device__ void get(const Channels &, const Loaded &loaded, int64_t index, int64_t channel, const float (&)[V],
                      float (&slopes)[V]) const {
    EpilogueLanes<V> lanes;
    widen_pack(loaded.first, lanes.lane);
    epilogue.run(loaded.operands, index, channel, lanes);
    Pack<T, V> pack;
    for (int v = 0; v < V; ++v)
      narrow(lanes.lane[v], pack.items[v]);
    *reinterpret_cast<Pack<T, V> *>(dy + index) = pack;
    widen_pack(pack, slopes);
  }
};

// ---- sums ----

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

template <typename T, int V, typename Slopes>
struct SlopeWork {
  static constexpr int kWidth = V, kRowsAhead = Slopes::kRowsAhead, kBlocksAtOnce = Slopes::kBlocksAtOnce;
  static constexpr bool kTakesTurns = true;
  using C = Computed<T>;
  using Finish = SlopeFinish<C>;
  struct State {
    C mean[V];
    SlopeSums<C> sums[V];
    typename Slopes::Channels channels;
  };
  struct Loaded {
    Pack<T, V> x;
    typename Slopes::Loaded dy;
  };
  Finish finish;
  const T *x;
  AnyArray mean;
  Slopes slopes;
  int64_t channels;

  __device__ State begin(int64_t, int64_t, bool, int64_t channel) const {
    State state{};
    load_any<V>(mean, channel, state.mean);
    state.channels = slopes.begin(channel);
    return state;
  }
  __device__ Loaded load(int64_t, int64_t row, int64_t channel) const {
    const int64_t index = row * channels + channel;
    return {pack_at<V>(x, index), slopes.load(index)};
  }
  __device__ void add(State &state, int64_t, int64_t row, int64_t channel, const Loaded &loaded) const {
    C dy[V], centred[V];
    widen_pack(loaded.x, centred);
    for (int v = 0; v < V; ++v)
      centred[v] -= state.mean[v];
    slopes.get(state.channels, loaded.dy, row * channels + channel, channel, centred, dy);
    for (int v = 0; v < V; ++v) {
      state.sums[v].dy += dy[v];
      state.sums[v].dy_xc += dy[v] * centred[v];
    }
  }
  __device__ SlopeSums<C> total(const State &state, int v) const { return state.sums[v]; }
};

// ---- the pass over the elements ----

/// dx = factor · (dy - sum_dy / count - (x - mean) · sum_dy_xc / (count · (variance + epsilon))), factor = scale /
/// sqrt(variance + epsilon).
template <typename T, int V, typename Slopes>
struct GradientPass {
  static constexpr int kWidth = V, kBlocksAtOnce = 3;
  static constexpr bool kBeginsAtTheEnd = true;
  using C = Computed<T>;
  /// Slopes may have it, too.
  static constexpr bool kIsKnown = requires(typename Slopes::Channels own) { own.factor; };
  struct OwnFactor {
    C factor[V];
  };
  struct NoFactor {};
  struct Channels : std::conditional_t<kIsKnown, NoFactor, OwnFactor> {
    int64_t first;
    C mean[V], average[V], slope[V];
    typename Slopes::Channels own;
  };
  Slopes slopes;
  const T *x;
  T *dx;
  AnyArray scale, mean, variance, sum_dy, sum_dy_xc;
  const double *count;  ///< on the device; null: rows
  C rows, epsilon;

  __device__ Channels begin(int64_t, int64_t channel) const {
    Channels channels;
    C spread[V];
    const C divisor = count != nullptr ? static_cast<C>(*count) : rows;
    channels.first = channel;
    load_any<V>(mean, channel, channels.mean);
    load_any<V>(sum_dy, channel, channels.average);
    load_any<V>(sum_dy_xc, channel, channels.slope);
    load_any<V>(variance, channel, spread);
    for (int v = 0; v < V; ++v) {
      channels.average[v] /= divisor;
      channels.slope[v] /= divisor * (spread[v] + epsilon);
    }
    channels.own = slopes.begin(channel);
    if constexpr (!kIsKnown) {
      load_any<V>(scale, channel, channels.factor);
      for (int v = 0; v < V; ++v)
        channels.factor[v] = norm_factor(channels.factor[v], spread[v], epsilon);
    }
    return channels;
  }
  struct Loaded {
    typename Slopes::Loaded dy;
    Pack<T, V> x;
  };
  __device__ Loaded load(const Channels &, int64_t index) const { return {slopes.load(index), pack_at<V>(x, index)}; }
  __device__ void finish(const Channels &channels, int64_t index, const Loaded &loaded) const {
    C dy[V], centred[V];
    widen_pack(loaded.x, centred);
    for (int v = 0; v < V; ++v)
      centred[v] -= channels.mean[v];
    slopes.get(channels.own, loaded.dy, index, channels.first, centred, dy);
    for (int v = 0; v < V; ++v)
      dy[v] = factor_of(channels, v) * (dy[v] - channels.average[v] - centred[v] * channels.slope[v]);
    store_pack<V>(dx, index, dy);
  }

 private:
  __device__ static C factor_of(const Channels &channels, int v) {
    if constexpr (kIsKnown) {
      return channels.own.factor[v];
    } else {
      return channels.factor[v];
    }
  }
};

// ---- launches ----

template <typename T, int V>
GivenSlopes<T, V> given_slopes(const BatchNormWork &work) {
  return {static_cast<const T *>(work.dy)};
}

template <typename T, int V>
ReluSlopes<T, V> relu_slopes(const BatchNormWork &work) {
  return {static_cast<const T *>(work.dy), any_array(work.scale, work.parameter),
          any_array(work.offset, work.parameter), any_array(work.variance, work.parameter),
          static_cast<Computed<T>>(work.epsilon)};
}

template <typename T, int V, typename Slopes>
gpuError_t launch_sums(const BatchNormWork &work, bool as_sums, const Slopes &slopes, gpuStream_t stream) {
  using C = Computed<T>;
  const ChannelScratch<C> scratch(work);
  const SlopeFinish<C> finish{
      as_sums,       work.first,    work.second, any_array(work.variance, work.parameter), static_cast<C>(work.epsilon),
      scratch.first, scratch.second};
  const SlopeWork<T, V, Slopes> sums{finish, static_cast<const T *>(work.x), any_array(work.mean, work.parameter),
                                     slopes, work.channels};
  return launch_columns(sums, 1, work.rows, work.channels, scratch.partials, stream);
}

template <typename T, int V, typename Slopes>
gpuError_t launch_gradient(const BatchNormWork &work, const AnyArray &sum_dy, const AnyArray &sum_dy_xc,
                           const Slopes &slopes, gpuStream_t stream) {
  using C = Computed<T>;
  const GradientPass<T, V, Slopes> pass{slopes,
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

/// The sums of what the epilogue makes, which is stored.
template <typename T, int V>
gpuError_t launch_made_sums(const BatchNormWork &work, bool as_sums, gpuStream_t stream) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return gpuErrorInvalidValue;
  } else {
    return visit_usual_epilogue<T, V>(
        *work.epilogue, work.dtype, work.channels, [&]<typename Usual>(const Usual &usual) {
          const MadeSlopes<T, V, Usual> made{static_cast<const T *>(work.dy), static_cast<T *>(work.made_dy), usual};
          return launch_sums<T, V>(work, as_sums, made, stream);
        });
  }
}

/// The sums, then the pass, both of the same slopes.
template <typename T, int V, typename Slopes>
gpuError_t launch_both(const BatchNormWork &work, const Slopes &slopes, gpuStream_t stream) {
  using C = Computed<T>;
  const gpuError_t error = launch_sums<T, V>(work, false, slopes, stream);
  if (error != gpuSuccess) return error;
  const ChannelScratch<C> scratch(work);
  return launch_gradient<T, V>(work, any_array(scratch.first, kDTypeOf<C>), any_array(scratch.second, kDTypeOf<C>),
                               slopes, stream);
}

/// The sums while dy is made, then the pass over what was stored.
template <typename T, int V>
gpuError_t launch_making(const BatchNormWork &work, gpuStream_t stream) {
  using C = Computed<T>;
  const gpuError_t error = launch_made_sums<T, V>(work, false, stream);
  if (error != gpuSuccess) return error;
  const ChannelScratch<C> scratch(work);
  return launch_gradient<T, V>(work, any_array(scratch.first, kDTypeOf<C>), any_array(scratch.second, kDTypeOf<C>),
                               GivenSlopes<T, V>{static_cast<const T *>(work.made_dy)}, stream);
}

}  // namespace

gpuError_t launch_batch_norm_gradient_moments(const BatchNormWork &work, gpuStream_t stream) {
  return visit_batch_norm(work, [&](auto storage) {
    using T = typename decltype(storage)::type;
    constexpr int kWidth = decltype(storage)::kWidth;
    if (work.made_dy != nullptr) return launch_made_sums<T, kWidth>(work, true, stream);
    return launch_sums<T, kWidth>(work, true, given_slopes<T, kWidth>(work), stream);
  });
}

gpuError_t launch_batch_norm_training_gradient(const BatchNormWork &work, gpuStream_t stream) {
  return visit_batch_norm(work, [&](auto storage) {
    using T = typename decltype(storage)::type;
    constexpr int kWidth = decltype(storage)::kWidth;
    if (work.made_dy != nullptr) return launch_making<T, kWidth>(work, stream);
    if (work.offset != nullptr) return launch_both<T, kWidth>(work, relu_slopes<T, kWidth>(work), stream);
    return launch_both<T, kWidth>(work, given_slopes<T, kWidth>(work), stream);
  });
}

gpuError_t launch_batch_norm_gradient_apply(const BatchNormWork &work, gpuStream_t stream) {
  return visit_batch_norm(work, [&](auto storage) {
    using T = typename decltype(storage)::type;
    constexpr int kWidth = decltype(storage)::kWidth;
    return launch_gradient<T, kWidth>(work, any_array(work.sum_dy, DType::f64), any_array(work.sum_dy_xc, DType::f64),
                                      given_slopes<T, kWidth>(work), stream);
  });
}

}  // namespace tutti::impl::backend::gpu
