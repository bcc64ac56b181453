// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/folded_stride.h"

#include "backend/gpu/library/library_convolution_steps.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

constexpr int64_t kStride = StrideFold::kStride;

bool is_foldable(const ConvolutionShape &shape, ConvolutionPass pass) {
  const std::array<int64_t, 2> ones = {1, 1}, twos = {kStride, kStride};
  return pass != ConvolutionPass::input_gradient && shape.element_bytes() == 2 && shape.stride == twos &&
         shape.dilation == ones && shape.groups() == 1 && shape.x[3] <= StrideFold::kPlaces &&
         shape.kernel[0] > kStride && shape.kernel[1] > kStride && !is_empty(shape);
}

/// The largest whole number that is not above n / kStride.
int64_t floor_half(int64_t n) { return (n - (n % kStride + kStride) % kStride) / kStride; }

FoldedAxis folded_axis(const ConvolutionShape &shape, size_t axis) {
  FoldedAxis made{};
  made.own = shape.x[1 + axis];
  made.window = shape.kernel[axis];
  made.pad = shape.pad_before[axis];
  made.first = floor_half(-made.pad);
  made.folded_window = floor_half(made.window - 1 - made.pad) - made.first + 1;
  made.folded = shape.y[1 + axis] + made.folded_window - 1;
  return made;
}

}  // namespace

FoldedStride::FoldedStride(const ConvolutionShape &own, ConvolutionPass pass)
    : own_(own), folded_(own), is_needed_(is_foldable(own, pass)) {
  if (!is_needed_) return;
  fold_.images = own.x[0];
  fold_.filters = own.filters();
  fold_.channels = static_cast<int32_t>(own.x[3]);
  folded_.x[3] = folded_.kernel[2] = StrideFold::kChannels;
  for (size_t axis = 0; axis < 2; ++axis) {
    fold_.axes[axis] = folded_axis(own, axis);
    folded_.x[1 + axis] = fold_.axes[axis].folded;
    folded_.kernel[axis] = fold_.axes[axis].folded_window;
    folded_.stride[axis] = 1;
    folded_.pad_before[axis] = folded_.pad_after[axis] = 0;
  }
}

void FoldedStride::reserve(KernelRequest &request) {
  if (is_needed_) scratch_at_ = request.reserve_scratch(folded_.x_bytes());
}

Result<void *> FoldedStride::image(const Frame &frame, const void *x) const {
  if (!is_needed_) return const_cast<void *>(x);
  void *const folded = frame.scratch_as<char>(scratch_at_);
  TUTTI_TRY(fold_image(folded, x, frame.stream()));
  return folded;
}

Status FoldedStride::fold_image(void *to, const void *x, gpuStream_t stream) const {
  return status_of(launch_fold_image(fold_, to, x, stream), "folding an image");
}

Status FoldedStride::to_filters_first(void *to, const void *from, gpuStream_t stream) const {
  if (!is_needed_) return gpu::to_filters_first(own_, to, from, stream);
  return status_of(launch_fold_kernel(fold_, to, from, stream), "folding a kernel");
}

Status FoldedStride::to_filters_last(void *to, const void *from, gpuStream_t stream) const {
  if (!is_needed_) return gpu::to_filters_last(own_, to, from, stream);
  return status_of(launch_unfold_kernel(fold_, to, from, stream), "unfolding a kernel");
}

}  // namespace tutti::impl::backend::gpu
