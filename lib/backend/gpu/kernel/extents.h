// SPDX-License-Identifier: Apache-2.0
//
// Dims and strides of arrays on the host, where kernels are prepared. Strides count elements.
#ifndef TUTTI_BACKEND_GPU_KERNEL_EXTENTS_H_
#define TUTTI_BACKEND_GPU_KERNEL_EXTENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::impl::backend::gpu {

using Extents = std::vector<int64_t>;

/// Strides that read a dense array of `dims` as if it had been broadcast to `to`: 0 on repeated axes.
inline Extents broadcast_strides(const Extents &dims, const Extents &to) {
  Extents strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 1; i <= dims.size(); ++i) {
    const int64_t dim = dims[dims.size() - i];
    strides[to.size() - i] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  return strides;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNEL_EXTENTS_H_
