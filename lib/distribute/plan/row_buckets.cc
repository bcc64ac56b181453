// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/row_buckets.h"

#include <algorithm>
#include <bit>

namespace tutti::impl::distribute {

namespace {

constexpr int64_t kPartsOfDevice = 4, kPartRows = 64, kPartBytes = int64_t{1} << 20;
/// Calls of one size, one after the other, that are worth a program: sizes that change by chance do not come so often.
constexpr int64_t kUsual = 16;

int64_t ceil_divide(int64_t number, int64_t by) { return (number + by - 1) / by; }

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

int64_t rows_of_part(int64_t rows, int64_t bytes, int64_t devices) {
  if (rows < 1 || bytes < 1) return 0;
  const int64_t least = std::max(kPartRows, ceil_divide(kPartBytes, std::max<int64_t>(bytes / rows, 1)));
  const int64_t part = bucket_of_rows(std::max(ceil_divide(rows, devices * kPartsOfDevice), least));
  return 2 * part <= ceil_divide(rows, devices) ? part : 0;
}

int64_t UsualRows::note(int64_t rows) {
  const std::lock_guard lock(mutex_);
  calls_ = rows == rows_ ? calls_ + 1 : 0;
  rows_ = rows;
  return calls_ >= kUsual ? rows : 0;
}

}  // namespace tutti::impl::distribute
