// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/window.h"

#include <algorithm>

namespace tutti::impl::graph::ops {

Dim WindowAxis::output(const Dim &input) const {
  if (padding == WindowPadding::same) return ceil_divide(input, stride);
  // With Dims throughout: hostile sizes become unrepresentable instead of overflowing.
  const Dim reach = (Dim(window) - 1) * dilation + 1;
  return floor_divide(input + before + after - reach, stride) + 1;
}

int64_t WindowAxis::resolve(int64_t input) {
  if (padding == WindowPadding::same) {
    const int64_t output = (input + stride - 1) / stride;
    const int64_t total = std::max<int64_t>((output - 1) * stride + extent() - input, 0);
    before = total / 2;
    after = total - before;
    return output;
  }
  const int64_t room = input + before + after - extent();
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace tutti::impl::graph::ops
