// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/running.h"

#include <algorithm>

namespace tutti::impl::backend::cpu {
namespace {

constexpr int64_t kLines = 8;

/// kCount lines that begin `apart` elements apart.
template <bool kProduct, bool kExclusive, int64_t kCount>
void walk(const RunningLines &lines, int64_t apart, const float *x, float *y) {
  double total[kCount];
  std::fill_n(total, kCount, kProduct ? 1.0 : 0.0);
  const int64_t step = lines.step();
  for (int64_t i = 0; i < lines.length; ++i, x += step, y += step) {
    double value[kCount];
    for (int64_t k = 0; k < kCount; ++k)
      value[k] = static_cast<double>(x[k * apart]);
    for (int64_t k = 0; k < kCount; ++k) {
      const double next = kProduct ? total[k] * value[k] : total[k] + value[k];
      value[k] = kExclusive ? total[k] : next;
      total[k] = next;
    }
    for (int64_t k = 0; k < kCount; ++k)
      y[k * apart] = static_cast<float>(value[k]);
  }
}

template <bool kProduct, bool kExclusive>
void walk_group(const RunningLines &lines, int64_t group, const float *x, float *y) {
  // Lines of one column each, or neighbours in the columns of one matrix.
  const bool is_dense = lines.inner == 1;
  const int64_t in_row = is_dense ? lines.outer : lines.inner, in_groups = (in_row + kLines - 1) / kLines;
  const int64_t begin = group % in_groups * kLines, count = std::min(kLines, in_row - begin);
  const int64_t first = lines.first(is_dense ? begin : group / in_groups * lines.inner + begin);
  if (count == kLines) {
    if (is_dense) return walk<kProduct, kExclusive, kLines>(lines, lines.length, x + first, y + first);
    return walk<kProduct, kExclusive, kLines>(lines, 1, x + first, y + first);
  }
  const int64_t apart = is_dense ? lines.length : 1;
  for (int64_t k = 0; k < count; ++k)
    walk<kProduct, kExclusive, 1>(lines, 1, x + first + k * apart, y + first + k * apart);
}

}  // namespace

int64_t running_groups(const RunningLines &lines) {
  if (lines.length == 0) return 0;
  if (lines.inner == 1) return (lines.outer + kLines - 1) / kLines;
  return lines.outer * ((lines.inner + kLines - 1) / kLines);
}

void run_lines(const RunningLines &lines, bool is_product, int64_t first, int64_t end, const float *x, float *y) {
  const auto walk_one = is_product ? (lines.is_exclusive ? walk_group<true, true> : walk_group<true, false>)
                                   : (lines.is_exclusive ? walk_group<false, true> : walk_group<false, false>);
  for (int64_t group = first; group < end; ++group)
    walk_one(lines, group, x, y);
}

// With p the product of the elements before one, and s = dy + (the next element) · (the next s): dx = p · s. Of the
// exclusive product dy is that of the next element.
void run_product_gradient(const RunningLines &lines, int64_t first, int64_t end, const float *dy, const float *x,
                          float *dx, double *scratch) {
  const int64_t step = lines.step();
  for (int64_t line = first; line < end; ++line) {
    const int64_t begin = lines.first(line);
    double product = 1;
    for (int64_t i = 0; i < lines.length; ++i) {
      scratch[i] = product;
      product *= static_cast<double>(x[begin + i * step]);
    }
    double sum = 0;
    for (int64_t i = lines.length - 1; i >= 0; --i) {
      const int64_t at = begin + i * step;
      const bool is_last = i + 1 == lines.length;
      if (!is_last) sum *= static_cast<double>(x[at + step]);
      if (!lines.is_exclusive) sum += static_cast<double>(dy[at]);
      if (lines.is_exclusive && !is_last) sum += static_cast<double>(dy[at + step]);
      dx[at] = static_cast<float>(scratch[i] * sum);
    }
  }
}

}  // namespace tutti::impl::backend::cpu
