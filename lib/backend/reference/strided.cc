// SPDX-License-Identifier: Apache-2.0
#include "backend/reference/strided.h"

#include <algorithm>

namespace tutti::impl::backend::reference {

Extents dense_strides(const Extents &dims) {
  Extents strides(dims.size());
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

Extents broadcast_strides(const Extents &dims, const Extents &to) {
  const Extents dense = dense_strides(dims);
  Extents strides(to.size(), 0);
  const size_t missing = to.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1) strides[missing + axis] = dense[axis];
  }
  return strides;
}

void StridedWalk::finish() {
  const bool is_empty = std::find(dims_.begin(), dims_.end(), 0) != dims_.end();
  // An axis joins the one before it when every operand steps over it without a gap; axes of length 1 vanish.
  for (size_t axis = dims_.size(); axis-- > 0;) {
    const bool is_mergeable =
        dims_[axis] == 1 || (axis > 0 && std::all_of(strides_.begin(), strides_.end(), [&](const Extents &strides) {
                               return strides[axis - 1] == strides[axis] * dims_[axis];
                             }));
    if (!is_mergeable) continue;
    if (dims_[axis] != 1) {
      dims_[axis - 1] *= dims_[axis];
      for (Extents &strides : strides_)
        strides[axis - 1] = strides[axis];
    }
    dims_.erase(dims_.begin() + static_cast<std::ptrdiff_t>(axis));
    for (Extents &strides : strides_)
      strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  run_length_ = is_empty ? 0 : dims_.empty() ? 1 : dims_.back();
  for (size_t operand = 0; operand < strides_.size(); ++operand)
    steps_[operand] = strides_[operand].empty() ? 0 : strides_[operand].back();
}

}  // namespace tutti::impl::backend::reference
