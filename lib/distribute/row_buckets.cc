// SPDX-License-Identifier: Apache-2.0
#include "distribute/row_buckets.h"

#include <algorithm>
#include <bit>

namespace tutti::impl::distribute {

namespace {

/// Calls of one size, one after the other, that are worth a program: sizes that change by chance do not come so often.
constexpr int64_t kUsual = 16;

}  // namespace

int64_t bucket_of_rows(int64_t rows) {
  if (rows < 3) return rows;
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  return rows <= power / 4 * 3 ? power / 4 * 3 : power;
}

int64_t rows_to_compute(int64_t rows, int64_t usual) {
  const int64_t bucket = bucket_of_rows(rows);
  return rows <= usual ? std::min(bucket, usual) : bucket;
}

int64_t UsualRows::note(int64_t rows) {
  const std::lock_guard lock(mutex_);
  calls_ = rows == rows_ ? calls_ + 1 : 0;
  rows_ = rows;
  return calls_ >= kUsual ? rows : 0;
}

}  // namespace tutti::impl::distribute
