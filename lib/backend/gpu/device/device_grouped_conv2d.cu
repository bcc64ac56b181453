// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_grouped_conv2d.h"

#include <algorithm>

#include "backend/gpu/device/floats-inl.h"
#include "backend/gpu/device/image_places-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Threads that share a sum of the kernel's gradient stand in a column.
constexpr int kColumns = kBlockThreads >= 256 ? 32 : 8;
constexpr int kLanes = kBlockThreads / kColumns;

/// Of numbers below 2^31: positions along an axis, channels.
__device__ inline int64_t narrow_quotient(int64_t n, int64_t by) {
  return static_cast<uint32_t>(n) / static_cast<uint32_t>(by);
}

template <typename C>
__global__ void convolve_groups(const Convolution conv, const ImagePlaces places, const void *x, const void *kernel,
                                const void *bias, void *y) {
  const ImageWindow &window = conv.window;
  const int64_t depth = conv.group_channels(), results = conv.positions() * conv.filters;
  for (int64_t result = grid_thread(); result < results; result += grid_threads()) {
    const ImagePlace at = places.at(result);
    const int64_t first = narrow_quotient(at.channel, conv.group_filters()) * depth;
    C sum = bias == nullptr ? C(0) : load_float<C>(conv.dtype, bias, at.channel);
    for (int64_t i = 0; i < window.y.window; ++i) {
      const int64_t h = window.y.position(at.row, i);
      for (int64_t j = 0; j < window.x.window && window.y.is_inside(h); ++j) {
        const int64_t w = window.x.position(at.column, j);
        if (!window.x.is_inside(w)) continue;
        const int64_t pixel = ((at.image * window.y.input + h) * window.x.input + w) * conv.channels + first;
        const int64_t element = (i * window.x.window + j) * depth * conv.filters + at.channel;
        for (int64_t c = 0; c < depth; ++c)
          sum +=
              load_float<C>(conv.dtype, x, pixel + c) * load_float<C>(conv.dtype, kernel, element + c * conv.filters);
      }
    }
    store_float<C>(conv.dtype, y, result, sum);
  }
}

/// The window whose element `tap` is at `position`, or -1.
__device__ inline int64_t window_at(const WindowAxis &axis, int64_t position, int64_t tap) {
  const int64_t offset = position + axis.pad_before - tap * axis.dilation;
  if (offset < 0) return -1;
  const int64_t number = narrow_quotient(offset, axis.stride);
  return number < axis.output && number * axis.stride == offset ? number : -1;
}

template <typename C>
__global__ void gather_input_gradient(const Convolution conv, const ImagePlaces places, const void *dy,
                                      const void *kernel, void *dx) {
  const ImageWindow &window = conv.window;
  const int64_t depth = conv.group_channels(), width = conv.group_filters();
  const int64_t results = window.rows * window.y.input * window.x.input * conv.channels;
  for (int64_t result = grid_thread(); result < results; result += grid_threads()) {
    const ImagePlace at = places.at(result);
    const int64_t group = narrow_quotient(at.channel, depth), channel = at.channel - group * depth;
    C sum = 0;
    for (int64_t i = 0; i < window.y.window; ++i) {
      const int64_t p = window_at(window.y, at.row, i);
      for (int64_t j = 0; j < window.x.window && p >= 0; ++j) {
        const int64_t q = window_at(window.x, at.column, j);
        if (q < 0) continue;
        const int64_t row = ((at.image * window.y.output + p) * window.x.output + q) * conv.filters + group * width;
        const int64_t element = ((i * window.x.window + j) * depth + channel) * conv.filters + group * width;
        for (int64_t f = 0; f < width; ++f)
          sum += load_float<C>(conv.dtype, dy, row + f) * load_float<C>(conv.dtype, kernel, element + f);
      }
    }
    store_float<C>(conv.dtype, dx, result, sum);
  }
}

/// One element of the kernel at one position: image row, column and channel that it meets, times dy.
struct KernelElement {
  int64_t i, j, channel, filter;
};

__device__ inline KernelElement element_of(const Convolution &conv, int64_t number) {
  const int64_t depth = conv.group_channels();
  const int64_t row = number / conv.filters, tap = row / depth;
  KernelElement element;
  element.filter = number - row * conv.filters;
  element.channel = row - tap * depth + element.filter / conv.group_filters() * depth;
  element.i = tap / conv.window.x.window;
  element.j = tap - element.i * conv.window.x.window;
  return element;
}

template <typename C>
__device__ inline C sum_positions(const Convolution &conv, const ImagePlaces &positions, const KernelElement &element,
                                  const void *x, const void *dy, int64_t begin, int64_t end) {
  const ImageWindow &window = conv.window;
  C sum = 0;
  for (int64_t position = begin; position < end; position += kLanes) {
    const ImagePlace at = positions.at(position);
    const int64_t h = window.y.position(at.row, element.i), w = window.x.position(at.column, element.j);
    if (!window.y.is_inside(h) || !window.x.is_inside(w)) continue;
    const int64_t pixel = (at.image * window.y.input + h) * window.x.input + w;
    sum += load_float<C>(conv.dtype, x, pixel * conv.channels + element.channel) *
           load_float<C>(conv.dtype, dy, position * conv.filters + element.filter);
  }
  return sum;
}

/// Blocks along x: kColumns elements of the kernel each; along y: splits. `parts` is null where there is one split.
template <typename C>
__global__ void sum_kernel_gradient(const Convolution conv, const GroupedPlan plan, const ImagePlaces positions,
                                    const void *x, const void *dy, void *dkernel, void *parts) {
  __shared__ C lanes[kLanes][kColumns];
  const int column = static_cast<int>(threadIdx.x) % kColumns, lane = static_cast<int>(threadIdx.x) / kColumns;
  const int64_t elements = conv.taps() * conv.group_channels() * conv.filters;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * kColumns + column;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * plan.split_positions;
  const int64_t last = begin + plan.split_positions, end = last < conv.positions() ? last : conv.positions();
  lanes[lane][column] =
      number < elements ? sum_positions<C>(conv, positions, element_of(conv, number), x, dy, begin + lane, end) : C(0);
  __syncthreads();
  if (lane != 0 || number >= elements) return;
  C sum = lanes[0][column];
  for (int i = 1; i < kLanes; ++i)
    sum += lanes[i][column];
  if (parts == nullptr) {
    store_float<C>(conv.dtype, dkernel, number, sum);
  } else {
    static_cast<C *>(parts)[static_cast<int64_t>(blockIdx.y) * elements + number] = sum;
  }
}

template <typename C>
__global__ void add_kernel_gradients(DType dtype, const C *parts, int64_t splits, int64_t elements, void *dkernel) {
  for (int64_t i = grid_thread(); i < elements; i += grid_threads()) {
    C sum = 0;
    for (int64_t split = 0; split < splits; ++split)
      sum += parts[split * elements + i];
    store_float<C>(dtype, dkernel, i, sum);
  }
}

int64_t kernel_elements(const Convolution &conv) { return conv.taps() * conv.group_channels() * conv.filters; }

template <typename C>
gpuError_t launch_sums(const Convolution &conv, const void *x, const void *dy, void *dkernel, const GroupedPlan &plan,
                       void *scratch, gpuStream_t stream) {
  const int64_t elements = kernel_elements(conv), blocks = (elements + kColumns - 1) / kColumns;
  if (blocks > INT32_MAX) return gpuErrorInvalidValue;
  void *const parts = plan.splits > 1 ? scratch : nullptr;
  const gpuError_t error = gpu_launch(
      sum_kernel_gradient<C>, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(plan.splits)), kBlockThreads, 0,
      stream, conv, plan, ImagePlaces::of(conv.window.y.output, conv.window.x.output, 1), x, dy, dkernel, parts);
  if (error != gpuSuccess || parts == nullptr) return error;
  return gpu_launch(add_kernel_gradients<C>, blocks_for(elements), kBlockThreads, 0, stream, conv.dtype,
                    static_cast<const C *>(parts), plan.splits, elements, dkernel);
}

}  // namespace

GroupedPlan plan_grouped_kernel_gradient(const Convolution &convolution) {
  constexpr int64_t kFillingBlocks = kBlockThreads >= 256 ? 1024 : 8, kLeastPositions = 16 * kLanes;
  const int64_t elements = kernel_elements(convolution), positions = convolution.positions();
  const int64_t blocks = std::max<int64_t>((elements + kColumns - 1) / kColumns, 1);
  GroupedPlan plan;
  const int64_t wanted =
      std::clamp<int64_t>((kFillingBlocks + blocks - 1) / blocks, 1, std::max<int64_t>(positions / kLeastPositions, 1));
  plan.split_positions = std::max<int64_t>((positions + wanted - 1) / wanted, 1);
  plan.splits = std::max<int64_t>((positions + plan.split_positions - 1) / plan.split_positions, 1);
  if (plan.splits > 1)
    plan.scratch_bytes =
        plan.splits * elements * static_cast<int64_t>(convolution.dtype == DType::f64 ? sizeof(double) : sizeof(float));
  return plan;
}

gpuError_t launch_grouped_conv2d(const Convolution &convolution, const void *x, const void *kernel, const void *bias,
                                 void *y, gpuStream_t stream) {
  const int64_t results = convolution.positions() * convolution.filters;
  if (results == 0) return gpuSuccess;
  return gpu_launch(convolution.dtype == DType::f64 ? convolve_groups<double> : convolve_groups<float>,
                    blocks_for(results, 65536), kBlockThreads, 0, stream, convolution,
                    ImagePlaces::of(convolution.window.y.output, convolution.window.x.output, convolution.filters), x,
                    kernel, bias, y);
}

gpuError_t launch_grouped_conv2d_input_gradient(const Convolution &convolution, const void *dy, const void *kernel,
                                                void *dx, gpuStream_t stream) {
  const ImageWindow &window = convolution.window;
  const int64_t results = window.rows * window.y.input * window.x.input * convolution.channels;
  if (results == 0) return gpuSuccess;
  return gpu_launch(convolution.dtype == DType::f64 ? gather_input_gradient<double> : gather_input_gradient<float>,
                    blocks_for(results, 65536), kBlockThreads, 0, stream, convolution,
                    ImagePlaces::of(window.y.input, window.x.input, convolution.channels), dy, kernel, dx);
}

gpuError_t launch_grouped_conv2d_kernel_gradient(const Convolution &convolution, const void *x, const void *dy,
                                                 void *dkernel, const GroupedPlan &plan, void *scratch,
                                                 gpuStream_t stream) {
  if (kernel_elements(convolution) == 0) return gpuSuccess;
  return convolution.dtype == DType::f64 ? launch_sums<double>(convolution, x, dy, dkernel, plan, scratch, stream)
                                         : launch_sums<float>(convolution, x, dy, dkernel, plan, scratch, stream);
}

}  // namespace tutti::impl::backend::gpu
