// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/move_plan.h"

#include <algorithm>

namespace tutti::impl::backend::gpu {

namespace {

constexpr int64_t kWidest = 16;

/// The most elements of `bytes` that make one word at both places.
int64_t widest(const void *to, const void *from, int64_t bytes) {
  int64_t elements = kWidest / bytes;
  const uintptr_t both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  while (elements > 1 && both % static_cast<uintptr_t>(elements * bytes) != 0)
    elements /= 2;
  return elements;
}

/// Leaves out axes of one element and merges those that the source has one within the other.
void merge(StridedRead &read) {
  int32_t kept = 0;
  for (int32_t axis = 0; axis < read.rank; ++axis) {
    const int64_t dim = read.dims[axis], stride = read.strides[axis];
    if (dim == 1) continue;
    const bool merges = kept > 0 && read.strides[kept - 1] == stride * dim;
    if (!merges) ++kept;
    read.dims[kept - 1] = merges ? read.dims[kept - 1] * dim : dim;
    read.strides[kept - 1] = stride;
  }
  read.rank = kept;
}

/// Does an axis have all its elements in their places?
bool is_whole(const Placement &placement, int32_t axis) {
  return placement.counts[axis] == placement.dims[axis] && placement.low[axis] == 0 && placement.step[axis] == 1;
}

void merge(Placement &placement) {
  int32_t kept = 0;
  for (int32_t axis = 0; axis < placement.rank; ++axis) {
    const int64_t dim = placement.dims[axis];
    if (is_whole(placement, axis) && (dim == 1 || (kept > 0 && placement.step[kept - 1] == 1))) {
      // Each element of the axis before is a run of elements of this one.
      if (dim == 1) continue;
      for (int64_t *const sizes : {placement.dims, placement.low, placement.counts})
        sizes[kept - 1] *= dim;
      continue;
    }
    for (int64_t *const sizes : {placement.dims, placement.low, placement.step, placement.counts})
      sizes[kept] = sizes[axis];
    ++kept;
  }
  placement.rank = kept;
}

}  // namespace

StridedRead simplified(StridedRead read) {
  merge(read);
  if (read.rank == 0 || read.strides[read.rank - 1] != 1) return read;
  const int32_t last = read.rank - 1;
  int64_t elements = widest(read.to, read.from, read.element_bytes);
  const auto fits = [&] {
    return read.dims[last] % elements == 0 &&
           std::all_of(read.strides, read.strides + last, [&](int64_t stride) { return stride % elements == 0; });
  };
  while (!fits())
    elements /= 2;
  read.element_bytes *= elements;
  read.dims[last] /= elements;
  for (int32_t axis = 0; axis < last; ++axis)
    read.strides[axis] /= elements;
  merge(read);
  return read;
}

Placement simplified(Placement placement) {
  merge(placement);
  if (placement.rank == 0 || placement.step[placement.rank - 1] != 1) return placement;
  const int32_t last = placement.rank - 1;
  int64_t elements = widest(placement.to, placement.from, placement.element_bytes);
  while (placement.dims[last] % elements != 0 || placement.low[last] % elements != 0 ||
         placement.counts[last] % elements != 0)
    elements /= 2;
  placement.element_bytes *= elements;
  for (int64_t *const sizes : {placement.dims, placement.low, placement.counts})
    sizes[last] /= elements;
  return placement;
}

}  // namespace tutti::impl::backend::gpu
