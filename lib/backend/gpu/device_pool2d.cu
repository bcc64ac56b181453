// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_pool2d.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "backend/gpu/floats-inl.h"
#include "backend/gpu/fours-inl.h"
#include "backend/gpu/image_places-inl.h"

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

/// kWidth neighbours, 4 or 1.
template <int kWidth, typename C>
__device__ inline void load_group(DType dtype, const void *source, int64_t first, C (&out)[kWidth]) {
  if constexpr (kWidth == 4) {
    load_four<C>(dtype, source, first / 4, out);
  } else {
    out[0] = load_float<C>(dtype, source, first);
  }
}
template <int kWidth, typename C>
__device__ inline void store_group(DType dtype, void *target, int64_t first, const C (&in)[kWidth]) {
  if constexpr (kWidth == 4) {
    store_four<C>(dtype, target, first / 4, in);
  } else {
    store_float<C>(dtype, target, first, in[0]);
  }
}

template <typename C, int kWidth>
__global__ void find_maxima(const Pooling pooling, const PoolPlaces places, const void *x, void *y) {
  for (int64_t group = grid_thread(); group < places.count; group += grid_threads()) {
    const ImagePlace at = places.at(group, kWidth);
    const Range rows = positions_of(pooling.window.y, at.row), columns = positions_of(pooling.window.x, at.column);
    C best[kWidth];
    for (int i = 0; i < kWidth; ++i)
      best[i] = -static_cast<C>(INFINITY);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        C values[kWidth];
        load_group<kWidth>(pooling.dtype, x, pixel_at(pooling, at, h, w), values);
        for (int i = 0; i < kWidth; ++i) {
          if (values[i] > best[i] || values[i] != values[i]) best[i] = values[i];
        }
      }
    }
    store_group<kWidth>(pooling.dtype, y, group * kWidth, best);
  }
}

/// Is it the maximum of a window, which is `best`?
template <typename C>
__device__ inline bool is_maximum(C value, C best) {
  return value == best || (value != value && best != best);
}

/// dy of window (p, q) for those of the neighbours at `at` that are its first maxima. All neighbours are looked at
/// together: threads that wait for one another would do so nearly always.
template <typename C, int kWidth>
__device__ inline void add_where_first(const Pooling &pooling, const ImagePlace &at, int64_t p, int64_t q,
                                       const C (&values)[kWidth], const void *dy, const void *x, const void *y,
                                       C (&sums)[kWidth]) {
  const int64_t result = result_at(pooling, at, p, q);
  C best[kWidth];
  load_group<kWidth>(pooling.dtype, y, result, best);
  bool is_first[kWidth], is_any = false;
  for (int i = 0; i < kWidth; ++i) {
    is_first[i] = is_maximum(values[i], best[i]);
    is_any = is_any || is_first[i];
  }
  if (!is_any) return;
  const Range rows = positions_of(pooling.window.y, p), columns = positions_of(pooling.window.x, q);
  for (int64_t h = rows.begin; h <= at.row; ++h) {
    const int64_t end = h == at.row ? at.column : columns.end;
    int64_t pixel = pixel_at(pooling, at, h, columns.begin);
    for (int64_t w = columns.begin; w < end; ++w, pixel += pooling.channels) {
      C before[kWidth];
      load_group<kWidth>(pooling.dtype, x, pixel, before);
      for (int i = 0; i < kWidth; ++i)
        is_first[i] = is_first[i] && !is_maximum(before[i], best[i]);
    }
  }
  C slopes[kWidth];
  load_group<kWidth>(pooling.dtype, dy, result, slopes);
  for (int i = 0; i < kWidth; ++i)
    sums[i] += is_first[i] ? slopes[i] : C(0);
}

template <typename C, int kWidth>
__global__ void gather_max_gradient(const Pooling pooling, const PoolPlaces places, const void *dy, const void *x,
                                    const void *y, void *dx) {
  for (int64_t group = grid_thread(); group < places.count; group += grid_threads()) {
    const ImagePlace at = places.at(group, kWidth);
    const Range rows = windows_with(pooling.window.y, places.down, at.row);
    const Range columns = windows_with(pooling.window.x, places.across, at.column);
    C values[kWidth], sums[kWidth] = {};
    load_group<kWidth>(pooling.dtype, x, group * kWidth, values);
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      for (int64_t q = columns.begin; q < columns.end; ++q)
        add_where_first<C, kWidth>(pooling, at, p, q, values, dy, x, y, sums);
    }
    store_group<kWidth>(pooling.dtype, dx, group * kWidth, sums);
  }
}

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
gpuError_t launch(Kernel *for_float, Kernel *for_double, const Pooling &pooling, const PoolPlaces &places,
                  gpuStream_t stream, Operands... operands) {
  if (places.count == 0) return gpuSuccess;
  return gpu_launch(pooling.dtype == DType::f64 ? for_double : for_float, blocks_for(places.count, 65536),
                    kBlockThreads, 0, stream, pooling, places, operands...);
}

/// May channels be taken four at a time?
bool has_fours(const Pooling &pooling, std::initializer_list<const void *> arrays) {
  return pooling.channels % 4 == 0 && std::all_of(arrays.begin(), arrays.end(), [&](const void *array) {
           return gpu::has_fours(pooling.dtype, array);
         });
}

}  // namespace

gpuError_t launch_max_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream) {
  if (has_fours(pooling, {x, y}))
    return launch(find_maxima<float, 4>, find_maxima<double, 4>, pooling, result_places(pooling, 4), stream, x, y);
  return launch(find_maxima<float, 1>, find_maxima<double, 1>, pooling, result_places(pooling), stream, x, y);
}

gpuError_t launch_max_pool2d_gradient(const Pooling &pooling, const void *dy, const void *x, const void *y, void *dx,
                                      gpuStream_t stream) {
  if (has_fours(pooling, {dy, x, y, dx}))
    return launch(gather_max_gradient<float, 4>, gather_max_gradient<double, 4>, pooling, pixel_places(pooling, 4),
                  stream, dy, x, y, dx);
  return launch(gather_max_gradient<float, 1>, gather_max_gradient<double, 1>, pooling, pixel_places(pooling), stream,
                dy, x, y, dx);
}

gpuError_t launch_avg_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream) {
  return launch(find_averages<float>, find_averages<double>, pooling, result_places(pooling), stream, x, y);
}

gpuError_t launch_avg_pool2d_gradient(const Pooling &pooling, const void *dy, void *dx, gpuStream_t stream) {
  return launch(gather_average_gradient<float>, gather_average_gradient<double>, pooling, pixel_places(pooling), stream,
                dy, dx);
}

}  // namespace tutti::impl::backend::gpu
