// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_group_norm.h"

#include "backend/gpu/device/channel_pass-inl.h"
#include "backend/gpu/device/moments-inl.h"
#include "backend/gpu/device/reduction-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Statistics of a group, or V of those of neighbouring channels.
template <typename C>
struct GroupStatistics {
  AnyArray mean, rstd;
  int64_t channels, group_channels;

  template <int V>
  __device__ void load(int64_t image, int64_t channel, C (&means)[V], C (&rstds)[V]) const {
    for (int v = 0; v < V; ++v) {
      const int64_t group = (image * channels + channel + v) / group_channels;
      means[v] = load_any<C>(mean, group);
      rstds[v] = load_any<C>(rstd, group);
    }
  }
};

template <typename C>
GroupStatistics<C> statistics_of(const GroupNormShape &shape, const void *mean, const void *rstd) {
  return {any_array(mean, shape.statistics), any_array(rstd, shape.statistics), shape.channels,
          shape.channels / shape.groups};
}

// ---- mean and deviation ----

/// Of each image and channel.
template <typename C>
struct ChannelMomentsFinish {
  using Total = Moments<C>;
  Moments<C> *moments;
  int64_t channels;

  __device__ Total none() const { return no_moments<C>(); }
  __device__ static Total combine(Total a, Total b) { return combine_moments(a, b); }
  __device__ void write(int64_t image, int64_t channel, const Total &total) const {
    moments[image * channels + channel] = total;
  }
};

template <typename T, int V>
struct ChannelMomentsWork {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  using Finish = ChannelMomentsFinish<C>;
  using State = MomentSums<C, V>;
  Finish finish;
  const T *x;
  int64_t positions, channels;

  __device__ int64_t index(int64_t image, int64_t position, int64_t channel) const {
    return (image * positions + position) * channels + channel;
  }
  __device__ State begin(int64_t image, int64_t position, bool has_position, int64_t channel) const {
    State state{};
    if (has_position) load_pack<V>(x, index(image, position, channel), state.origin);
    return state;
  }
  __device__ void add(State &state, int64_t image, int64_t position, int64_t channel) const {
    C pack[V];
    load_pack<V>(x, index(image, position, channel), pack);
    state.add(pack);
  }
  __device__ Moments<C> total(const State &state, int v) const { return state.total(v); }
};

/// Of each group.
template <typename C>
struct GroupMomentsFinish {
  using Total = Moments<C>;
  DType dtype;
  void *mean, *rstd;
  C epsilon;

  __device__ Total none() const { return no_moments<C>(); }
  __device__ static Total combine(Total a, Total b) { return combine_moments(a, b); }
  __device__ void write(int64_t group, int64_t, const Total &total) const {
    store_element<C>(dtype, mean, group, total.mean);
    store_element<C>(dtype, rstd, group, C(1) / std::sqrt(total.variance() + epsilon));
  }
};

/// y = (x - mean) · rstd · scale + offset.
template <typename T, int V>
struct NormalizePass {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  struct Channels {
    C mean[V], factor[V], offset[V];
  };
  const T *x;
  T *y;
  AnyArray scale, offset;
  GroupStatistics<C> statistics;

  __device__ Channels begin(int64_t image, int64_t channel) const {
    Channels channels;
    C scales[V];
    statistics.template load<V>(image, channel, channels.mean, channels.factor);
    load_any<V>(scale, channel, scales);
    load_any<V>(offset, channel, channels.offset);
    for (int v = 0; v < V; ++v)
      channels.factor[v] *= scales[v];
    return channels;
  }
  using Loaded = Pack<T, V>;
  __device__ Loaded load(const Channels &, int64_t index) const { return pack_at<V>(x, index); }
  __device__ void finish(const Channels &channels, int64_t index, const Loaded &loaded) const {
    C pack[V];
    widen_pack(loaded, pack);
    for (int v = 0; v < V; ++v)
      pack[v] = (pack[v] - channels.mean[v]) * channels.factor[v] + channels.offset[v];
    store_pack<V>(y, index, pack);
  }
};

// ---- gradient: with n = (x - mean) · rstd and g = dy · scale,
//      dx = rstd · (g - average(g) - n · average(g · n)), dscale = sum(dy · n), doffset = sum(dy)

/// Sums of dy and of dy · n; of a group averages of g and of g · n.
template <typename C>
struct SlopeSums {
  C dy, dy_n;

  __device__ void add(const SlopeSums &other, C factor) {
    dy += other.dy * factor;
    dy_n += other.dy_n * factor;
  }
};

/// For group_combine().
template <typename C>
__device__ SlopeSums<C> exchanged(SlopeSums<C> value, int mask) {
  return {gpu_shuffle_xor(value.dy, mask), gpu_shuffle_xor(value.dy_n, mask)};
}

template <typename C>
struct SlopeFinish {
  using Total = SlopeSums<C>;

  __device__ Total none() const { return {C(0), C(0)}; }
  __device__ static Total combine(Total a, Total b) { return {a.dy + b.dy, a.dy_n + b.dy_n}; }
};

/// Of each image and channel.
template <typename C>
struct ChannelSlopeFinish : SlopeFinish<C> {
  SlopeSums<C> *sums;
  int64_t channels;

  __device__ void write(int64_t image, int64_t channel, const SlopeSums<C> &total) const {
    sums[image * channels + channel] = total;
  }
};

template <typename T, int V>
struct ChannelSlopeWork {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  using Finish = ChannelSlopeFinish<C>;
  struct State {
    C mean[V], rstd[V];
    SlopeSums<C> sums[V];
  };
  Finish finish;
  const T *dy, *x;
  GroupStatistics<C> statistics;
  int64_t positions, channels;

  __device__ State begin(int64_t image, int64_t, bool, int64_t channel) const {
    State state{};
    statistics.template load<V>(image, channel, state.mean, state.rstd);
    return state;
  }
  __device__ void add(State &state, int64_t image, int64_t position, int64_t channel) const {
    const int64_t index = (image * positions + position) * channels + channel;
    C slopes[V], values[V];
    load_pack<V>(dy, index, slopes);
    load_pack<V>(x, index, values);
    for (int v = 0; v < V; ++v)
      state.sums[v].add({slopes[v], slopes[v] * (values[v] - state.mean[v]) * state.rstd[v]}, C(1));
  }
  __device__ SlopeSums<C> total(const State &state, int v) const { return state.sums[v]; }
};

/// Of each group: lines are its channels.
template <typename C>
struct GroupSlopeFinish : SlopeFinish<C> {
  SlopeSums<C> *averages;
  C share;

  __device__ void write(int64_t group, int64_t, const SlopeSums<C> &total) const {
    averages[group] = {total.dy * share, total.dy_n * share};
  }
};

template <typename C>
struct GroupSlopeWork {
  static constexpr int kWidth = 1;
  using Finish = GroupSlopeFinish<C>;
  using State = SlopeSums<C>;
  Finish finish;
  const SlopeSums<C> *sums;
  AnyArray scale;
  int64_t groups, group_channels;

  __device__ State begin(int64_t, int64_t, bool, int64_t) const { return finish.none(); }
  __device__ void add(State &state, int64_t group, int64_t channel, int64_t) const {
    state.add(sums[group * group_channels + channel], load_any<C>(scale, group % groups * group_channels + channel));
  }
  __device__ SlopeSums<C> total(const State &state, int) const { return state; }
};

/// Of each channel, over the images.
template <typename C>
struct ParameterFinish : SlopeFinish<C> {
  DType dtype;
  void *dscale, *doffset;

  __device__ void write(int64_t, int64_t channel, const SlopeSums<C> &total) const {
    store_element<C>(dtype, dscale, channel, total.dy_n);
    store_element<C>(dtype, doffset, channel, total.dy);
  }
};

template <typename C>
struct ParameterWork {
  static constexpr int kWidth = 1;
  using Finish = ParameterFinish<C>;
  using State = SlopeSums<C>;
  Finish finish;
  const SlopeSums<C> *sums;
  int64_t channels;

  __device__ State begin(int64_t, int64_t, bool, int64_t) const { return finish.none(); }
  __device__ void add(State &state, int64_t, int64_t image, int64_t channel) const {
    state.add(sums[image * channels + channel], C(1));
  }
  __device__ SlopeSums<C> total(const State &state, int) const { return state; }
};

template <typename T, int V>
struct GradientPass {
  static constexpr int kWidth = V;
  using C = Computed<T>;
  struct Channels {
    C mean[V], rstd[V], scale[V];
    SlopeSums<C> average[V];
  };
  const T *dy, *x;
  T *dx;
  AnyArray scale;
  GroupStatistics<C> statistics;
  const SlopeSums<C> *averages;

  __device__ Channels begin(int64_t image, int64_t channel) const {
    Channels channels;
    statistics.template load<V>(image, channel, channels.mean, channels.rstd);
    load_any<V>(scale, channel, channels.scale);
    for (int v = 0; v < V; ++v)
      channels.average[v] = averages[(image * statistics.channels + channel + v) / statistics.group_channels];
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
    for (int v = 0; v < V; ++v) {
      const SlopeSums<C> &average = channels.average[v];
      const C n = (values[v] - channels.mean[v]) * channels.rstd[v];
      slopes[v] = channels.rstd[v] * (slopes[v] * channels.scale[v] - average.dy - n * average.dy_n);
    }
    store_pack<V>(dx, index, slopes);
  }
};

// ---- scratch memory ----

int64_t aligned(int64_t bytes) { return divide_up(bytes, 16) * 16; }
int64_t computed_bytes(DType dtype) { return dtype == DType::f64 ? 8 : 4; }

/// What the gradient has in its scratch memory.
template <typename C>
struct GradientScratch {
  SlopeSums<C> *sums;      ///< [images, channels]
  SlopeSums<C> *averages;  ///< [images, groups]
  void *partials;

  GradientScratch(const GroupNormShape &shape, void *scratch) {
    char *const first = static_cast<char *>(scratch);
    const auto bytes = static_cast<int64_t>(sizeof(SlopeSums<C>));
    char *const second = first + aligned(shape.images * shape.channels * bytes);
    sums = reinterpret_cast<SlopeSums<C> *>(first);
    averages = reinterpret_cast<SlopeSums<C> *>(second);
    partials = second + aligned(shape.images * shape.groups * bytes);
  }
};

// ---- launches ----

template <typename T, int V>
gpuError_t launch_forward(const GroupNormWork &work, gpuStream_t stream) {
  using C = Computed<T>;
  const GroupNormShape &s = work.shape;
  auto *const moments = static_cast<Moments<C> *>(work.scratch);
  char *const partials =
      static_cast<char *>(work.scratch) + aligned(s.images * s.channels * static_cast<int64_t>(sizeof(Moments<C>)));
  const auto *const x = static_cast<const T *>(work.x);
  gpuError_t error = launch_columns(ChannelMomentsWork<T, V>{{moments, s.channels}, x, s.positions, s.channels},
                                    s.images, s.positions, s.channels, partials, stream, s.order);
  if (error != gpuSuccess || s.images == 0) return error;
  const GroupMomentsFinish<C> finish{s.statistics, work.mean, work.rstd, static_cast<C>(work.epsilon)};
  error = launch_line_partials(finish, s.images * s.groups, s.channels / s.groups, moments, stream, s.order);
  if (error != gpuSuccess) return error;
  const NormalizePass<T, V> pass{x, static_cast<T *>(work.y), any_array(work.scale, s.parameter),
                                 any_array(work.offset, s.parameter), statistics_of<C>(s, work.mean, work.rstd)};
  return launch_pass(pass, s.images, s.positions, s.channels, stream);
}

template <typename T, int V>
gpuError_t launch_backward(const GroupNormGradientWork &work, gpuStream_t stream) {
  using C = Computed<T>;
  const GroupNormShape &s = work.shape;
  const GradientScratch<C> scratch(s, work.scratch);
  const auto *const dy = static_cast<const T *>(work.dy), *const x = static_cast<const T *>(work.x);
  const AnyArray scale = any_array(work.scale, s.parameter);
  const GroupStatistics<C> statistics = statistics_of<C>(s, work.mean, work.rstd);
  const int64_t group_channels = s.channels / s.groups;
  const ChannelSlopeWork<T, V> slopes{{{}, scratch.sums, s.channels}, dy, x, statistics, s.positions, s.channels};
  gpuError_t error = launch_columns(slopes, s.images, s.positions, s.channels, scratch.partials, stream);
  if (error != gpuSuccess) return error;
  const ParameterWork<C> parameters{{{}, s.parameter, work.dscale, work.doffset}, scratch.sums, s.channels};
  error = launch_columns(parameters, 1, s.images, s.channels, scratch.partials, stream);
  if (error != gpuSuccess || s.images * s.positions * s.channels == 0) return error;
  const C share = C(1) / static_cast<C>(s.positions * group_channels);
  const GroupSlopeWork<C> groups{{{}, scratch.averages, share}, scratch.sums, scale, s.groups, group_channels};
  error = launch_lines(groups, s.images * s.groups, group_channels, scratch.partials, stream);
  if (error != gpuSuccess) return error;
  const GradientPass<T, V> pass{dy, x, static_cast<T *>(work.dx), scale, statistics, scratch.averages};
  return launch_pass(pass, s.images, s.positions, s.channels, stream);
}

template <typename Function>
gpuError_t visit(const GroupNormShape &shape, std::initializer_list<const void *> arrays, Function function) {
  return visit_floats(shape.dtype, is_wide(shape.dtype, shape.channels, arrays), function);
}

}  // namespace

int64_t group_norm_scratch_bytes(const GroupNormShape &s) {
  const int64_t moments = 3 * computed_bytes(s.dtype);
  return aligned(s.images * s.channels * moments) +
         column_partial_bytes(s.images, s.positions, s.channels, pack_width(s.dtype), moments, s.order);
}

gpuError_t launch_group_norm(const GroupNormWork &work, gpuStream_t stream) {
  return visit(work.shape, {work.x, work.y}, [&](auto storage) {
    using S = decltype(storage);
    return launch_forward<typename S::type, S::kWidth>(work, stream);
  });
}

int64_t group_norm_gradient_scratch_bytes(const GroupNormShape &s) {
  const int64_t sums = 2 * computed_bytes(s.dtype);
  return aligned(s.images * s.channels * sums) + aligned(s.images * s.groups * sums) +
         std::max({column_partial_bytes(s.images, s.positions, s.channels, pack_width(s.dtype), sums),
                   column_partial_bytes(1, s.images, s.channels, 1, sums),
                   line_partial_bytes(s.images * s.groups, s.channels / s.groups, 1, sums)});
}

gpuError_t launch_group_norm_gradient(const GroupNormGradientWork &work, gpuStream_t stream) {
  return visit(work.shape, {work.dy, work.x, work.dx}, [&](auto storage) {
    using S = decltype(storage);
    return launch_backward<typename S::type, S::kWidth>(work, stream);
  });
}

}  // namespace tutti::impl::backend::gpu
