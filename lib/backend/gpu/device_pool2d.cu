// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_pool2d.h"

#include <cmath>

#include "backend/gpu/floats-inl.h"
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

/// Windows that have this position.
__device__ inline Range windows_with(const WindowAxis &axis, int64_t position) {
  const int64_t offset = position + axis.pad_before, before = offset - axis.window;
  const int64_t begin = before < 0 ? 0 : before / axis.stride + 1, end = offset / axis.stride + 1;
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

template <typename C>
__global__ void find_maxima(const Pooling pooling, const ImagePlaces places, int64_t results, const void *x, void *y) {
  for (int64_t result = grid_thread(); result < results; result += grid_threads()) {
    const ImagePlace at = places.at(result);
    const Range rows = positions_of(pooling.window.y, at.row), columns = positions_of(pooling.window.x, at.column);
    C best = -static_cast<C>(INFINITY);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const C value = load_float<C>(pooling.dtype, x, pixel_at(pooling, at, h, w));
        if (value > best || value != value) best = value;
      }
    }
    store_float<C>(pooling.dtype, y, result, best);
  }
}

/// Is the element at (row, column), which is `value`, the one that window (p, q) gives its gradient to?
template <typename C>
__device__ inline bool is_first_maximum(const Pooling &pooling, const ImagePlace &at, C value, int64_t p, int64_t q,
                                        const void *x) {
  const Range rows = positions_of(pooling.window.y, p), columns = positions_of(pooling.window.x, q);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      if (h == at.row && w == at.column) {
        if (value != value) return true;
        continue;
      }
      const C other = load_float<C>(pooling.dtype, x, pixel_at(pooling, at, h, w));
      const bool is_before = h < at.row || (h == at.row && w < at.column);
      // Before a NaN only a NaN wins; before or after a number a NaN or what is larger, and before it the same number.
      if (other != other) return false;
      if (value == value && (other > value || (is_before && other == value))) return false;
    }
  }
  return true;
}

template <typename C>
__global__ void gather_max_gradient(const Pooling pooling, const ImagePlaces places, int64_t pixels, const void *dy,
                                    const void *x, void *dx) {
  for (int64_t pixel = grid_thread(); pixel < pixels; pixel += grid_threads()) {
    const ImagePlace at = places.at(pixel);
    const Range rows = windows_with(pooling.window.y, at.row), columns = windows_with(pooling.window.x, at.column);
    const C value = load_float<C>(pooling.dtype, x, pixel);
    C sum = 0;
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      for (int64_t q = columns.begin; q < columns.end; ++q) {
        if (is_first_maximum(pooling, at, value, p, q, x))
          sum += load_float<C>(pooling.dtype, dy, result_at(pooling, at, p, q));
      }
    }
    store_float<C>(pooling.dtype, dx, pixel, sum);
  }
}

template <typename C>
__global__ void find_averages(const Pooling pooling, const ImagePlaces places, int64_t results, const void *x,
                              void *y) {
  for (int64_t result = grid_thread(); result < results; result += grid_threads()) {
    const ImagePlace at = places.at(result);
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
__global__ void gather_average_gradient(const Pooling pooling, const ImagePlaces places, int64_t pixels, const void *dy,
                                        void *dx) {
  for (int64_t pixel = grid_thread(); pixel < pixels; pixel += grid_threads()) {
    const ImagePlace at = places.at(pixel);
    const Range rows = windows_with(pooling.window.y, at.row), columns = windows_with(pooling.window.x, at.column);
    C sum = 0;
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      for (int64_t q = columns.begin; q < columns.end; ++q)
        sum += load_float<C>(pooling.dtype, dy, result_at(pooling, at, p, q)) *
               share_of<C>(pooling, positions_of(pooling.window.y, p), positions_of(pooling.window.x, q));
    }
    store_float<C>(pooling.dtype, dx, pixel, sum);
  }
}

ImagePlaces result_places(const Pooling &pooling) {
  return ImagePlaces::of(pooling.window.y.output, pooling.window.x.output, pooling.channels);
}
ImagePlaces pixel_places(const Pooling &pooling) {
  return ImagePlaces::of(pooling.window.y.input, pooling.window.x.input, pooling.channels);
}

/// For every result, or every pixel: elements of the places.
template <typename Kernel, typename... Operands>
gpuError_t launch(Kernel *for_float, Kernel *for_double, const Pooling &pooling, const ImagePlaces &places,
                  int64_t down, int64_t across, gpuStream_t stream, Operands... operands) {
  const int64_t elements = pooling.window.rows * down * across * pooling.channels;
  if (elements == 0) return gpuSuccess;
  return gpu_launch(pooling.dtype == DType::f64 ? for_double : for_float, blocks_for(elements, 65536), kBlockThreads, 0,
                    stream, pooling, places, elements, operands...);
}

}  // namespace

gpuError_t launch_max_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream) {
  return launch(find_maxima<float>, find_maxima<double>, pooling, result_places(pooling), pooling.window.y.output,
                pooling.window.x.output, stream, x, y);
}

gpuError_t launch_max_pool2d_gradient(const Pooling &pooling, const void *dy, const void *x, void *dx,
                                      gpuStream_t stream) {
  return launch(gather_max_gradient<float>, gather_max_gradient<double>, pooling, pixel_places(pooling),
                pooling.window.y.input, pooling.window.x.input, stream, dy, x, dx);
}

gpuError_t launch_avg_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream) {
  return launch(find_averages<float>, find_averages<double>, pooling, result_places(pooling), pooling.window.y.output,
                pooling.window.x.output, stream, x, y);
}

gpuError_t launch_avg_pool2d_gradient(const Pooling &pooling, const void *dy, void *dx, gpuStream_t stream) {
  return launch(gather_average_gradient<float>, gather_average_gradient<double>, pooling, pixel_places(pooling),
                pooling.window.y.input, pooling.window.x.input, stream, dy, dx);
}

}  // namespace tutti::impl::backend::gpu
