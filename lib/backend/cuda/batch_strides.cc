// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/batch_strides.h"

#include <algorithm>

namespace tutti::impl::backend::cuda {

namespace {

bool walks_on(const BatchAxis &outer, const BatchAxis &inner) {
  for (size_t operand = 0; operand < inner.steps.size(); ++operand) {
    if (outer.steps[operand] != inner.count * inner.steps[operand]) return false;
  }
  return true;
}

}  // namespace

std::vector<BatchAxis> batch_axes(const std::vector<int64_t> &a, const std::vector<int64_t> &b,
                                  const std::vector<int64_t> &y) {
  const std::array<const std::vector<int64_t> *, 3> operands = {&a, &b, &y};
  std::array<int64_t, 3> strides{};
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<int64_t> &dims = *operands[i];
    strides[i] = dims[dims.size() - 2] * dims[dims.size() - 1];
  }
  std::vector<BatchAxis> innermost_first;
  for (size_t axis = 3; axis <= y.size(); ++axis) {
    BatchAxis found{y[y.size() - axis], {}};
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::vector<int64_t> &dims = *operands[i];
      const int64_t dim = axis <= dims.size() ? dims[dims.size() - axis] : 1;
      found.steps[i] = dim == 1 ? 0 : strides[i];
      strides[i] *= dim;
    }
    if (found.count == 1) continue;
    if (!innermost_first.empty() && walks_on(found, innermost_first.back())) {
      innermost_first.back().count *= found.count;
    } else {
      innermost_first.push_back(found);
    }
  }
  std::reverse(innermost_first.begin(), innermost_first.end());
  return innermost_first;
}

}  // namespace tutti::impl::backend::cuda
