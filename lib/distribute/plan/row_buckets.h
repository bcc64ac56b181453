// SPDX-License-Identifier: Apache-2.0
//
// How many rows a device computes for those that it is given. Where it costs much to build a program (compiled and
// captured, on devices with memory of their own) not every number of rows has one: numbers are rounded up to
//
//   1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ...
//
// so that calls of any sizes up to n need about 2 log2(n) programs, and less than a third of what is computed is for
// nothing. Numbers that come all the time are not rounded: whole batches of a dataset, and what has come many times in
// a row. And how a large call is cut, so that rows are copied while others are computed.
//
// Threads: any. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PLAN_ROW_BUCKETS_H_
#define TUTTI_DISTRIBUTE_PLAN_ROW_BUCKETS_H_

#include <cstdint>
#include <mutex>

namespace tutti::impl::distribute {

/// The least bucket of at least so many rows, less than 3/2 times as many.
int64_t bucket_of_rows(int64_t rows);

/// Rows to compute for so many: their bucket, or `usual` (0 = none) if that is smaller and enough. So with `rows` as
/// the usual number nothing is rounded.
int64_t rows_to_compute(int64_t rows, int64_t usual);

/// Rows of each part of a call of so many rows and bytes, in and out together, that is cut finer than one part for each
/// of the devices; a bucket. 0 where it is too small for that: a part has 64 rows and a MiB at least.
int64_t rows_of_part(int64_t rows, int64_t bytes, int64_t devices);

/// Tells whether a number of rows comes again and again.
class UsualRows {
 public:
  /// Notes a call; `rows` if so many calls before had as many, else 0.
  int64_t note(int64_t rows);

 private:
  std::mutex mutex_;
  int64_t rows_ = 0, calls_ = 0;  // guarded by mutex_
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_ROW_BUCKETS_H_
