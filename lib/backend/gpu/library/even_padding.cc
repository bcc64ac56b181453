// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/even_padding.h"

#include <algorithm>

#include "backend/gpu/library/move_plan.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

void EvenPadding::reserve(KernelRequest &request) {
  if (is_needed()) scratch_at_ = request.reserve_scratch(even_.x_bytes());
}

Result<void *> EvenPadding::widen(const Frame &frame, const void *x) const {
  if (!is_needed()) return const_cast<void *>(x);
  Placement placement{};
  placement.to = frame.scratch_as<char>(scratch_at_);
  placement.from = x;
  placement.element_bytes = placement.fill_bytes = own_.element_bytes();
  placement.rank = 4;
  std::copy(even_.x.begin(), even_.x.end(), placement.dims);
  std::copy(own_.x.begin(), own_.x.end(), placement.counts);
  std::fill_n(placement.step, placement.rank, 1);
  for (const size_t axis : {1, 2})
    placement.low[axis] = zeros_before(axis);
  TUTTI_TRY(status_of(launch_placement(simplified(placement), frame.stream()), "launching a move"));
  return placement.to;
}

void *EvenPadding::gradient(const Frame &frame, void *dx) const {
  return is_needed() ? frame.scratch_as<char>(scratch_at_) : dx;
}

Status EvenPadding::narrow(const Frame &frame, void *dx) const {
  if (!is_needed()) return Status();
  const auto &[images, height, width, channels] = even_.x;
  StridedRead read{};
  read.to = dx;
  read.element_bytes = own_.element_bytes();
  read.rank = 4;
  std::copy(own_.x.begin(), own_.x.end(), read.dims);
  read.strides[0] = height * width * channels;
  read.strides[1] = width * channels;
  read.strides[2] = channels;
  read.strides[3] = 1;
  const int64_t origin = zeros_before(1) * read.strides[1] + zeros_before(2) * read.strides[2];
  read.from = frame.scratch_as<char>(scratch_at_ + origin * read.element_bytes);
  return status_of(launch_strided_read(simplified(read), frame.stream()), "launching a move");
}

}  // namespace tutti::impl::backend::gpu
