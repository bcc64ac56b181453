// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_pool2d.h"

#include <algorithm>
#include <cmath>

#include "backend/gpu/device/floats-inl.h"
#include "backend/gpu/device/image_places-inl.h"
#include "backend/gpu/device/storage-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Numbers begin, ..., end - 1.
struct Range {
  int64_t begin, end;
};

/// Positions of window `number` inside of the image.
__device__ inline Range positions_of(const WindowAxis &axis, int64_t number) {
  const int64_t begin = axis.position(number, 0), end = begin + axis.window;
  return {begin > 0 ? begin : 0, end < axis.input ? end : axis.input};
}

/// How elements, or groups of `width` neighbouring channels, are numbered, and what positions of windows are divided
/// by.
struct PoolPlaces {
  int64_t count;
  ImagePlaces groups;
  Divider down, across;

  __device__ ImagePlace at(int64_t group, int width) const {
    ImagePlace place = groups.at(group);
    place.channel *= width;
    return place;
  }
};

/// Windows that have this position; `stride` is that of the axis.
__device__ inline Range windows_with(const WindowAxis &axis, const Divider &stride, int64_t position) {
  const int64_t offset = position + axis.pad_before, before = offset - axis.window;
  const int64_t begin = before < 0 ? 0 : quotient(before, stride) + 1, end = quotient(offset, stride) + 1;
  return {begin, end < axis.output ? end : axis.output};
}

__device__ inline int64_t pixel_at(const Pooling &pooling, const ImagePlace &at, int64_t row, int64_t column) {
  const ImageWindow &window = pooling.window;
  return ((at.image * window.y.input + row) * window.x.input + column) * pooling.channels + at.channel;
}
__device__ inline int64_t result_at(const Pooling &pooling, const ImagePlace &at, int64_t row, int64_t column) {
  const ImageWindow &window = pooling.window;
  return ((at.image * window.y.output + row) * window.x.output + column) * pooling.channels + at.channel;
}

template <typename C>
__device__ inline C share_of(const Pooling &pooling, const Range &rows, const Range &columns) {
  const ImageWindow &window = pooling.window;
  const int64_t inside = rows.begin < rows.end && columns.begin < columns.end
                             ? (rows.end - rows.begin) * (columns.end - columns.begin)
                             : 0;
  const int64_t count = pooling.counts_padding ? window.y.window * window.x.window : inside;
  return count == 0 ? C(0) : C(1) / static_cast<C>(count);
}

// ---- maxima: threads have packs of V neighbouring channels ----

/// Pixels of a line of a window that are on their way at once.
constexpr int kPixelsAhead = 3;

/// Calls visit(number of the position in the whole window, V elements of x) for the positions of window (row, column)
/// that are inside of the image, in row-major order.
template <int V, typename T, typename Visit>
__device__ inline void each_position(const Pooling &pooling, const ImagePlace &at, const T *x, Visit visit) {
  const ImageWindow &window = pooling.window;
  const Range rows = positions_of(window.y, at.row), columns = positions_of(window.x, at.column);
  const int64_t top = window.y.position(at.row, 0), left = window.x.position(at.column, 0);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    const T *pixel = x + pixel_at(pooling, at, h, columns.begin);
    const auto line = static_cast<int32_t>((h - top) * window.x.window - left);
    for (int64_t w = columns.begin; w < columns.end; w += kPixelsAhead, pixel += kPixelsAhead * pooling.channels) {
      Pack<T, V> packs[kPixelsAhead];
      TUTTI_UNROLL
      for (int i = 0; i < kPixelsAhead; ++i) {
        if (w + i < columns.end) packs[i] = pack_at<V>(pixel, i * pooling.channels);
      }
      TUTTI_UNROLL
      for (int i = 0; i < kPixelsAhead; ++i) {
        if (w + i >= columns.end) break;
        Computed<T> values[V];
        widen_pack(packs[i], values);
        visit(line + static_cast<int32_t>(w) + i, values);
      }
    }
  }
}

template <typename T, int V>
__global__ void find_maxima(const Pooling pooling, const PoolPlaces places, const T *x, T *y) {
  using C = Computed<T>;
  for (int64_t group = grid_thread(); group < places.count; group += grid_threads()) {
    C best[V];
    for (int v = 0; v < V; ++v)
      best[v] = -static_cast<C>(INFINITY);
    each_position<V>(pooling, places.at(group, V), x, [&](int32_t, const C(&values)[V]) {
      for (int v = 0; v < V; ++v) {
        if (values[v] > best[v] || values[v] != values[v]) best[v] = values[v];
      }
    });
    store_pack<V>(y, group * V, best);
  }
}

/// The number, in its window, of the first maximum or the first NaN of each: of windows with something inside.
template <typename T, int V, typename Number>
__global__ void find_first_maxima(const Pooling pooling, const PoolPlaces places, const T *x, Number *firsts) {
  using C = Computed<T>;
  for (int64_t group = grid_thread(); group < places.count; group += grid_threads()) {
    C best[V] = {};
    int32_t first[V];
    for (int v = 0; v < V; ++v)
      first[v] = -1;
    each_position<V>(pooling, places.at(group, V), x, [&](int32_t number, const C(&values)[V]) {
      for (int v = 0; v < V; ++v) {
        const bool is_nan = values[v] != values[v], has_nan = best[v] != best[v];
        if (first[v] >= 0 && !(values[v] > best[v]) && (!is_nan || has_nan)) continue;
        best[v] = values[v];
        first[v] = number;
      }
    });
    Pack<Number, V> stored;
    for (int v = 0; v < V; ++v)
      stored.items[v] = static_cast<Number>(first[v]);
    *reinterpret_cast<Pack<Number, V> *>(firsts + group * V) = stored;
  }
}

template <typename T, int V, typename Number>
__global__ void gather_max_gradient(const Pooling pooling, const PoolPlaces places, const T *dy, const Number *firsts,
                                    T *dx) {
  using C = Computed<T>;
  const ImageWindow &window = pooling.window;
  for (int64_t group = grid_thread(); group < places.count; group += grid_threads()) {
    const ImagePlace at = places.at(group, V);
    const Range rows = windows_with(window.y, places.down, at.row);
    const Range columns = windows_with(window.x, places.across, at.column);
    C sums[V] = {};
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      const int64_t line = (at.row - window.y.position(p, 0)) * window.x.window + at.column;
      for (int64_t q = columns.begin; q < columns.end; ++q) {
        const int64_t result = result_at(pooling, at, p, q);
        const auto own = static_cast<Number>(line - window.x.position(q, 0));
        const Pack<Number, V> first = *reinterpret_cast<const Pack<Number, V> *>(firsts + result);
        bool is_any = false;
        for (int v = 0; v < V; ++v)
          is_any = is_any || first.items[v] == own;
        if (!is_any) continue;
        C slopes[V];
        load_pack<V>(dy, result, slopes);
        for (int v = 0; v < V; ++v)
          sums[v] += first.items[v] == own ? slopes[v] : C(0);
      }
    }
    store_pack<V>(dx, group * V, sums);
  }
}

/// Pixels as a stride groups them: those of group g of an axis begin at g * stride - pad_before, and lie in windows
/// g - N + 1, ..., g at most, N the windows' size in strides.
struct PixelGroups {
  int64_t first, count;

  static PixelGroups of(const WindowAxis &axis) {
    const int64_t first = axis.pad_before / axis.stride;
    return {first, (axis.input - 1 + axis.pad_before) / axis.stride - first + 1};
  }
};

/// What the windows have that a group of pixels may lie in.
template <typename T, int V, int N>
struct WindowsOfGroup {
  Pack<uint8_t, V> firsts[N][N];
  Pack<T, V> slopes[N][N];
  bool are_there[N][N];

  __device__ WindowsOfGroup(const Pooling &pooling, const ImagePlace &last, const T *dy, const uint8_t *numbers) {
    TUTTI_UNROLL
    for (int p = 0; p < N; ++p) {
      TUTTI_UNROLL
      for (int q = 0; q < N; ++q) {
        const int64_t row = last.row - (N - 1) + p, column = last.column - (N - 1) + q;
        are_there[p][q] = row >= 0 && row < pooling.window.y.output && column >= 0 && column < pooling.window.x.output;
        if (!are_there[p][q]) continue;
        const int64_t result = result_at(pooling, last, row, column);
        firsts[p][q] = *reinterpret_cast<const Pack<uint8_t, V> *>(numbers + result);
        slopes[p][q] = pack_at<V>(dy, result);
      }
    }
  }

  /// The sums of a pixel that is (row, column) from where the last window begins.
  __device__ void add(const Pooling &pooling, int32_t row, int32_t column, Computed<T> (&sums)[V]) const {
    const auto height = static_cast<int32_t>(pooling.window.y.window),
               width = static_cast<int32_t>(pooling.window.x.window);
    const auto down = static_cast<int32_t>(pooling.window.y.stride),
               across = static_cast<int32_t>(pooling.window.x.stride);
    TUTTI_UNROLL
    for (int p = 0; p < N; ++p) {
      TUTTI_UNROLL
      for (int q = 0; q < N; ++q) {
        const int32_t h = row + (N - 1 - p) * down, w = column + (N - 1 - q) * across;
        if (!are_there[p][q] || h >= height || w >= width) continue;
        const int32_t own = h * width + w;
        for (int v = 0; v < V; ++v)
          sums[v] += firsts[p][q].items[v] == own ? widen(slopes[p][q].items[v]) : Computed<T>(0);
      }
    }
  }
};

/// As gather_max_gradient, for windows of at most N strides: what the windows have is read once for all pixels of a
/// group.
template <typename T, int V, int N>
__global__ void gather_max_gradient_of_groups(const Pooling pooling, const PoolPlaces places, const PixelGroups rows,
                                              const PixelGroups columns, const T *dy, const uint8_t *firsts, T *dx) {
  const WindowAxis &y = pooling.window.y, &x = pooling.window.x;
  for (int64_t group = grid_thread(); group < places.count; group += grid_threads()) {
    ImagePlace at = places.at(group, V);
    at.row += rows.first;
    at.column += columns.first;
    const WindowsOfGroup<T, V, N> windows(pooling, at, dy, firsts);
    for (int32_t i = 0; i < y.stride; ++i) {
      for (int32_t j = 0; j < x.stride; ++j) {
        const int64_t row = y.position(at.row, 0) + i, column = x.position(at.column, 0) + j;
        if (!y.is_inside(row) || !x.is_inside(column)) continue;
        Computed<T> sums[V] = {};
        windows.add(pooling, i, j, sums);
        store_pack<V>(dx, pixel_at(pooling, at, row, column), sums);
      }
    }
  }
}

// ---- averages ----

template <typename C>
__global__ void find_averages(const Pooling pooling, const PoolPlaces places, const void *x, void *y) {
  for (int64_t result = grid_thread(); result < places.count; result += grid_threads()) {
    const ImagePlace at = places.at(result, 1);
    const Range rows = positions_of(pooling.window.y, at.row), columns = positions_of(pooling.window.x, at.column);
    C sum = 0;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w)
        sum += load_float<C>(pooling.dtype, x, pixel_at(pooling, at, h, w));
    }
    store_float<C>(pooling.dtype, y, result, sum * share_of<C>(pooling, rows, columns));
  }
}

template <typename C>
__global__ void gather_average_gradient(const Pooling pooling, const PoolPlaces places, const void *dy, void *dx) {
  for (int64_t pixel = grid_thread(); pixel < places.count; pixel += grid_threads()) {
    const ImagePlace at = places.at(pixel, 1);
    const Range rows = windows_with(pooling.window.y, places.down, at.row);
    const Range columns = windows_with(pooling.window.x, places.across, at.column);
    C sum = 0;
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      for (int64_t q = columns.begin; q < columns.end; ++q)
        sum += load_float<C>(pooling.dtype, dy, result_at(pooling, at, p, q)) *
               share_of<C>(pooling, positions_of(pooling.window.y, p), positions_of(pooling.window.x, q));
    }
    store_float<C>(pooling.dtype, dx, pixel, sum);
  }
}

PoolPlaces places_of(const Pooling &pooling, int64_t down, int64_t across, int width) {
  const int64_t groups = pooling.channels / width;
  return {pooling.window.rows * down * across * groups, ImagePlaces::of(down, across, groups),
          Divider::of(pooling.window.y.stride), Divider::of(pooling.window.x.stride)};
}
PoolPlaces result_places(const Pooling &pooling, int width = 1) {
  return places_of(pooling, pooling.window.y.output, pooling.window.x.output, width);
}
PoolPlaces pixel_places(const Pooling &pooling, int width = 1) {
  return places_of(pooling, pooling.window.y.input, pooling.window.x.input, width);
}

/// For every result, or every pixel: groups of the places.
template <typename Kernel, typename... Operands>
gpuError_t launch(Kernel *kernel, const Pooling &pooling, const PoolPlaces &places, gpuStream_t stream,
                  Operands... operands) {
  if (places.count == 0) return gpuSuccess;
  return gpu_launch(kernel, blocks_for(places.count, 65536), kBlockThreads, 0, stream, pooling, places, operands...);
}

template <typename Kernel, typename... Operands>
gpuError_t launch(Kernel *for_float, Kernel *for_double, const Pooling &pooling, const PoolPlaces &places,
                  gpuStream_t stream, Operands... operands) {
  return launch(pooling.dtype == DType::f64 ? for_double : for_float, pooling, places, stream, operands...);
}

/// Positions of a window have numbers of one byte where that is enough.
bool has_small_windows(const Pooling &pooling) { return pooling.window.y.window * pooling.window.x.window <= 256; }

int64_t strides_of(const WindowAxis &axis) { return (axis.window + axis.stride - 1) / axis.stride; }

template <typename T, int V, int N>
gpuError_t launch_gather_of_groups(const Pooling &pooling, const T *dy, const uint8_t *firsts, T *dx,
                                   gpuStream_t stream) {
  const PixelGroups rows = PixelGroups::of(pooling.window.y), columns = PixelGroups::of(pooling.window.x);
  return launch(gather_max_gradient_of_groups<T, V, N>, pooling, places_of(pooling, rows.count, columns.count, V),
                stream, rows, columns, dy, firsts, dx);
}

template <typename T, int V, typename Number>
gpuError_t launch_gather(const Pooling &pooling, const T *dy, const Number *firsts, T *dx, gpuStream_t stream) {
  if constexpr (sizeof(Number) == 1) {
    const int64_t strides = std::max(strides_of(pooling.window.y), strides_of(pooling.window.x));
    if (strides == 1) return launch_gather_of_groups<T, V, 1>(pooling, dy, firsts, dx, stream);
    if (strides == 2) return launch_gather_of_groups<T, V, 2>(pooling, dy, firsts, dx, stream);
  }
  return launch(gather_max_gradient<T, V, Number>, pooling, pixel_places(pooling, V), stream, dy, firsts, dx);
}

template <typename T, int V, typename Number>
gpuError_t launch_max_gradient(const Pooling &pooling, const void *dy, const void *x, Number *firsts, void *dx,
                               gpuStream_t stream) {
  const gpuError_t error = launch(find_first_maxima<T, V, Number>, pooling, result_places(pooling, V), stream,
                                  static_cast<const T *>(x), firsts);
  if (error != gpuSuccess) return error;
  return launch_gather<T, V, Number>(pooling, static_cast<const T *>(dy), firsts, static_cast<T *>(dx), stream);
}

}  // namespace

gpuError_t launch_max_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream) {
  const bool wide = is_wide(pooling.dtype, pooling.channels, {x, y});
  return visit_floats(pooling.dtype, wide, [&]<typename T, int V>(Storage<T, V>) {
    return launch(find_maxima<T, V>, pooling, result_places(pooling, V), stream, static_cast<const T *>(x),
                  static_cast<T *>(y));
  });
}

int64_t max_pool2d_gradient_scratch_bytes(const Pooling &pooling) {
  const size_t number = has_small_windows(pooling) ? sizeof(uint8_t) : sizeof(int32_t);
  return result_places(pooling).count * static_cast<int64_t>(number);
}

gpuError_t launch_max_pool2d_gradient(const Pooling &pooling, const void *dy, const void *x, void *scratch, void *dx,
                                      gpuStream_t stream) {
  const bool wide = is_wide(pooling.dtype, pooling.channels, {dy, x, dx});
  return visit_floats(pooling.dtype, wide, [&]<typename T, int V>(Storage<T, V>) {
    if (has_small_windows(pooling))
      return launch_max_gradient<T, V>(pooling, dy, x, static_cast<uint8_t *>(scratch), dx, stream);
    return launch_max_gradient<T, V>(pooling, dy, x, static_cast<int32_t *>(scratch), dx, stream);
  });
}

gpuError_t launch_avg_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream) {
  return launch(find_averages<float>, find_averages<double>, pooling, result_places(pooling), stream, x, y);
}

gpuError_t launch_avg_pool2d_gradient(const Pooling &pooling, const void *dy, void *dx, gpuStream_t stream) {
  return launch(gather_average_gradient<float>, gather_average_gradient<double>, pooling, pixel_places(pooling), stream,
                dy, dx);
}

}  // namespace tutti::impl::backend::gpu
