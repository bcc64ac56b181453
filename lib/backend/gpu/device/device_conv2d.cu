// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_conv2d.h"

#include <algorithm>
#include <numeric>

#include "backend/gpu/device/device_product-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

// ---- patches of an image ----

/// Along an axis, tap t of patch p is at p * stride + t * step + origin of the image.
struct PatchAxis {
  int32_t stride, step, origin, extent;
};

struct Pixel {
  int64_t base;  ///< element of its first channel
  int32_t y, x;
};

/// Patches of images [rows, height, width, pitch]: a matrix of [rows, down, across] patches and [height, width,
/// channels] taps. A batch is a group of channels.
struct Patches {
  PatchAxis y, x;
  Divider down, across;           ///< patches
  Divider tap_columns, channels;  ///< taps
  int64_t pitch, first;

  __device__ Pixel patch(int64_t i) const {
    const int64_t line = quotient(i, across), image = quotient(line, down);
    Pixel pixel;
    pixel.y = static_cast<int32_t>(line - image * down.divisor) * y.stride + y.origin;
    pixel.x = static_cast<int32_t>(i - line * across.divisor) * x.stride + x.origin;
    pixel.base = ((image * y.extent + pixel.y) * x.extent + pixel.x) * pitch + first;
    return pixel;
  }
  __device__ Pixel tap(int64_t i) const {
    const int64_t place = quotient(i, channels), row = quotient(place, tap_columns);
    Pixel tap;
    tap.y = static_cast<int32_t>(row) * y.step;
    tap.x = static_cast<int32_t>(place - row * tap_columns.divisor) * x.step;
    tap.base = (static_cast<int64_t>(tap.y) * x.extent + tap.x) * pitch + i - place * channels.divisor;
    return tap;
  }
  __device__ int64_t position(const Pixel &patch, const Pixel &tap) const {
    const uint32_t row = static_cast<uint32_t>(patch.y + tap.y), column = static_cast<uint32_t>(patch.x + tap.x);
    const bool is_inside = row < static_cast<uint32_t>(y.extent) && column < static_cast<uint32_t>(x.extent);
    return is_inside ? patch.base + tap.base : -1;
  }
};

/// The matrix of patches as the left factor.
struct PatchRows {
  using Line = Pixel;

  FactorArray array;
  int64_t lines, depth;
  Patches patches;

  __device__ PatchRows at_batch(int64_t group) const {
    PatchRows made = *this;
    made.patches.first = group * patches.channels.divisor;
    return made;
  }
  __device__ static constexpr bool runs_along_depth() { return true; }
  __device__ Pixel line(int64_t i) const { return patches.patch(i); }
  __device__ Pixel step(int64_t k) const { return patches.tap(k); }
  __device__ int64_t position(const Pixel &line, const Pixel &step) const { return patches.position(line, step); }
};

/// The same, transposed: taps are the lines.
struct PatchColumns {
  using Line = Pixel;

  FactorArray array;
  int64_t lines, depth;
  Patches patches;

  __device__ PatchColumns at_batch(int64_t group) const {
    PatchColumns made = *this;
    made.patches.first = group * patches.channels.divisor;
    return made;
  }
  __device__ static constexpr bool runs_along_depth() { return false; }
  __device__ Pixel line(int64_t i) const { return patches.tap(i); }
  __device__ Pixel step(int64_t k) const { return patches.patch(k); }
  __device__ int64_t position(const Pixel &line, const Pixel &step) const { return patches.position(step, line); }
};

// ---- matrices of filters ----

/// [depth, filters], of which a group has `lines`: a kernel, or dy.
struct FilterColumns {
  using Line = int64_t;

  FactorArray array;
  int64_t lines, depth, filters, first;

  __device__ FilterColumns at_batch(int64_t group) const {
    FilterColumns made = *this;
    made.first = group * lines;
    return made;
  }
  __device__ static constexpr bool runs_along_depth() { return false; }
  __device__ int64_t line(int64_t i) const { return first + i; }
  __device__ int64_t step(int64_t k) const { return k * filters; }
  __device__ int64_t position(int64_t line, int64_t step) const { return line + step; }
};

/// [rows, filters], of which a group has `columns`: y, or the kernel's gradient.
struct FilterTarget {
  ResultArray array;
  int64_t rows, columns, filters, first;

  __device__ FilterTarget at_batch(int64_t group) const {
    FilterTarget made = *this;
    made.first = made.array.first_column = group * columns;
    return made;
  }
  __device__ int64_t row(int64_t row) const { return first + row * filters; }
};

// ---- the gradient of the input ----

/// An axis of the image, whose pixels stride, 2 * stride, ... apart meet the same elements of the kernel.
struct PhaseAxis {
  int32_t stride, dilation, pad, input, output, window;
  int32_t phases;
  int32_t period;  ///< from one element of the kernel to the next one that a phase meets
};

/// Pixels `number`, number + stride, ...: element tap + t * period of the kernel meets pixel i in dy at
/// origin + i - t * (period * dilation / stride).
struct Phase {
  int32_t number, pixels, tap, taps, origin;
};

__device__ inline Phase phase_of(const PhaseAxis &axis, int32_t number) {
  Phase phase{};
  phase.number = number;
  phase.pixels = (axis.input - number + axis.stride - 1) / axis.stride;
  for (int32_t tap = 0; tap < axis.period && tap < axis.window; ++tap) {
    const int32_t offset = number + axis.pad - tap * axis.dilation;
    if (offset % axis.stride != 0) continue;
    phase.tap = tap;
    phase.taps = (axis.window - tap + axis.period - 1) / axis.period;
    phase.origin = offset / axis.stride;
    break;
  }
  return phase;
}

/// The part of the gradient that one batch computes: a group, at a phase of either axis.
struct GradientPart {
  int64_t group;
  Phase y, x;
};

struct GradientPlan {
  PhaseAxis y, x;
  int64_t group_channels, group_filters, channels, filters, images;

  __device__ GradientPart part(int64_t batch) const {
    const int64_t phase_y = batch / x.phases, group = phase_y / y.phases;
    return {group, phase_of(y, static_cast<int32_t>(phase_y - group * y.phases)),
            phase_of(x, static_cast<int32_t>(batch - phase_y * x.phases))};
  }
};

/// Patches of dy: one for each pixel of a phase.
struct GradientPatches {
  FactorArray array;
  GradientPlan plan;

  __device__ PatchRows at_batch(int64_t batch) const {
    const GradientPart part = plan.part(batch);
    const auto axis_of = [](const PhaseAxis &axis, const Phase &phase) {
      return PatchAxis{1, -(axis.period * axis.dilation / axis.stride), phase.origin, axis.output};
    };
    PatchRows made;
    made.array = array;
    made.lines = plan.images * part.y.pixels * part.x.pixels;
    made.depth = plan.group_filters * part.y.taps * part.x.taps;
    made.patches.y = axis_of(plan.y, part.y);
    made.patches.x = axis_of(plan.x, part.x);
    made.patches.down = Divider::of(part.y.pixels);
    made.patches.across = Divider::of(part.x.pixels);
    made.patches.tap_columns = Divider::of(part.x.taps);
    made.patches.channels = Divider::of(plan.group_filters);
    made.patches.pitch = plan.filters;
    made.patches.first = part.group * plan.group_filters;
    return made;
  }
};

/// The elements of the kernel that a phase meets: [taps, filters of the group] by channels of the group.
struct PhaseKernel {
  using Line = int64_t;

  FactorArray array;
  int64_t lines, depth;
  Divider filters, tap_columns;
  int64_t first, row_step, column_step, channel_step;

  __device__ static constexpr bool runs_along_depth() { return true; }
  __device__ int64_t line(int64_t i) const { return first + i * channel_step; }
  __device__ int64_t step(int64_t k) const {
    const int64_t tap = quotient(k, filters), row = quotient(tap, tap_columns);
    return row * row_step + (tap - row * tap_columns.divisor) * column_step + k - tap * filters.divisor;
  }
  __device__ int64_t position(int64_t line, int64_t step) const { return line + step; }
};

struct GradientKernel {
  FactorArray array;
  GradientPlan plan;

  __device__ PhaseKernel at_batch(int64_t batch) const {
    const GradientPart part = plan.part(batch);
    const int64_t element = plan.group_channels * plan.filters, row = plan.x.window * element;
    PhaseKernel made;
    made.array = array;
    made.lines = plan.group_channels;
    made.depth = plan.group_filters * part.y.taps * part.x.taps;
    made.filters = Divider::of(plan.group_filters);
    made.tap_columns = Divider::of(part.x.taps);
    made.first = part.y.tap * row + part.x.tap * element + part.group * plan.group_filters;
    made.row_step = plan.y.period * row;
    made.column_step = plan.x.period * element;
    made.channel_step = plan.filters;
    return made;
  }
};

/// The pixels of a phase in dx.
struct PhasePixels {
  ResultArray array;
  int64_t rows, columns, first;
  Divider down, across;
  int64_t pixel_step, line_step, image_step;

  __device__ int64_t row(int64_t i) const {
    const int64_t line = quotient(i, across), image = quotient(line, down);
    return first + image * image_step + (line - image * down.divisor) * line_step +
           (i - line * across.divisor) * pixel_step;
  }
};

struct GradientTarget {
  ResultArray array;
  GradientPlan plan;

  __device__ PhasePixels at_batch(int64_t batch) const {
    const GradientPart part = plan.part(batch);
    const int64_t line = plan.x.input * plan.channels;
    PhasePixels made;
    made.array = array;
    made.array.first_column = part.group * plan.group_channels;
    made.rows = plan.images * part.y.pixels * part.x.pixels;
    made.columns = plan.group_channels;
    made.first = part.y.number * line + part.x.number * plan.channels + part.group * plan.group_channels;
    made.down = Divider::of(part.y.pixels);
    made.across = Divider::of(part.x.pixels);
    made.pixel_step = plan.x.stride * plan.channels;
    made.line_step = plan.y.stride * line;
    made.image_step = plan.y.input * line;
    return made;
  }
};

// ---- on the host ----

Patches patches_of(const Convolution &convolution) {
  const auto axis_of = [](const WindowAxis &axis) {
    return PatchAxis{static_cast<int32_t>(axis.stride), static_cast<int32_t>(axis.dilation),
                     static_cast<int32_t>(-axis.pad_before), static_cast<int32_t>(axis.input)};
  };
  const ImageWindow &window = convolution.window;
  return {axis_of(window.y),
          axis_of(window.x),
          Divider::of(window.y.output),
          Divider::of(window.x.output),
          Divider::of(window.x.window),
          Divider::of(convolution.group_channels()),
          convolution.channels,
          0};
}

PhaseAxis phases_of(const WindowAxis &axis) {
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  return {narrow(axis.stride),
          narrow(axis.dilation),
          narrow(axis.pad_before),
          narrow(axis.input),
          narrow(axis.output),
          narrow(axis.window),
          narrow(std::min(axis.stride, axis.input)),
          narrow(axis.stride / std::gcd(axis.stride, axis.dilation))};
}

/// A factor or result that has the channels, or the filters, of a group together.
FactorArray factor(const Convolution &convolution, const void *data, int64_t in_group, int64_t in_all) {
  return {data, convolution.dtype, is_wide(data, convolution.dtype, in_group | in_all)};
}
ResultArray result(const Convolution &convolution, void *data, int64_t in_group, int64_t in_all) {
  const DType dtype = convolution.epilogue == nullptr ? convolution.dtype : convolution.epilogue->dtype;
  return {data, dtype, is_wide(data, dtype, in_group | in_all), nullptr, convolution.dtype, 0, 0, 0};
}

template <typename AnyProduct>
void set_size(const ProductSize &size, AnyProduct &product) {
  product.batches = size.batches;
  product.m = size.m;
  product.n = size.n;
}

}  // namespace

int64_t Convolution::phases() const {
  return std::min(window.y.stride, window.y.input) * std::min(window.x.stride, window.x.input);
}

ProductSize conv2d_size(const Convolution &convolution) {
  return {convolution.groups, convolution.positions(), convolution.group_filters(),
          convolution.taps() * convolution.group_channels(), false};
}

ProductSize conv2d_input_gradient_size(const Convolution &convolution) {
  const PhaseAxis y = phases_of(convolution.window.y), x = phases_of(convolution.window.x);
  const int64_t pixels = int64_t{(y.input + y.stride - 1) / y.stride} * ((x.input + x.stride - 1) / x.stride);
  const int64_t taps = int64_t{(y.window + y.period - 1) / y.period} * ((x.window + x.period - 1) / x.period);
  return {convolution.groups * convolution.phases(), convolution.window.rows * pixels, convolution.group_channels(),
          taps * convolution.group_filters(), false};
}

ProductSize conv2d_kernel_gradient_size(const Convolution &convolution) {
  return {convolution.groups, convolution.taps() * convolution.group_channels(), convolution.group_filters(),
          convolution.positions(), false};
}

gpuError_t launch_conv2d(const Convolution &convolution, const void *x, const void *kernel, const void *bias, void *y,
                         const ProductPlan &plan, void *scratch, gpuStream_t stream) {
  const ProductSize size = conv2d_size(convolution);
  const int64_t filters = convolution.filters, group_filters = convolution.group_filters();
  MatrixProduct<PatchRows, FilterColumns, FilterTarget> product{};
  product.a = {factor(convolution, x, convolution.group_channels(), convolution.channels), size.m, size.k,
               patches_of(convolution)};
  product.b = {factor(convolution, kernel, group_filters, filters), size.n, size.k, filters, 0};
  product.target = {result(convolution, y, group_filters, filters), size.m, size.n, filters, 0};
  product.target.array.addend = bias;
  product.target.array.addend_column = 1;
  set_size(size, product);
  return launch_finished(product, convolution.epilogue, plan, scratch, stream);
}

gpuError_t launch_conv2d_input_gradient(const Convolution &convolution, const void *dy, const void *kernel, void *dx,
                                        const ProductPlan &plan, void *scratch, gpuStream_t stream) {
  const int64_t channels = convolution.channels, group_channels = convolution.group_channels();
  const int64_t filters = convolution.filters, group_filters = convolution.group_filters();
  const GradientPlan gradient{phases_of(convolution.window.y),
                              phases_of(convolution.window.x),
                              group_channels,
                              group_filters,
                              channels,
                              filters,
                              convolution.window.rows};
  MatrixProduct<GradientPatches, GradientKernel, GradientTarget> product{};
  product.a = {factor(convolution, dy, group_filters, filters), gradient};
  product.b = {factor(convolution, kernel, group_filters, filters), gradient};
  product.target = {result(convolution, dx, group_channels, channels), gradient};
  set_size(conv2d_input_gradient_size(convolution), product);
  return launch_finished(product, convolution.epilogue, plan, scratch, stream);
}

gpuError_t launch_conv2d_kernel_gradient(const Convolution &convolution, const void *x, const void *dy, void *dkernel,
                                         const ProductPlan &plan, void *scratch, gpuStream_t stream) {
  const ProductSize size = conv2d_kernel_gradient_size(convolution);
  const int64_t filters = convolution.filters, group_filters = convolution.group_filters();
  MatrixProduct<PatchColumns, FilterColumns, FilterTarget> product{};
  product.a = {factor(convolution, x, convolution.group_channels(), convolution.channels), size.m, size.k,
               patches_of(convolution)};
  product.b = {factor(convolution, dy, group_filters, filters), size.n, size.k, filters, 0};
  product.target = {result(convolution, dkernel, group_filters, filters), size.m, size.n, filters, 0};
  set_size(size, product);
  return launch_product<float>(product, plan, scratch, stream);
}

}  // namespace tutti::impl::backend::gpu
