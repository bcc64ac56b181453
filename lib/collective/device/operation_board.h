// SPDX-License-Identifier: Apache-2.0
//
// Where ranks of one process write down which operation they begin, for those who wait to learn who did not come, and
// for those who come later to see that they mean the same. Nobody waits here.
//
// Threads: post() of a rank by one thread at a time; everything else by any.
#ifndef TUTTI_COLLECTIVE_DEVICE_OPERATION_BOARD_H_
#define TUTTI_COLLECTIVE_DEVICE_OPERATION_BOARD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/group.h"

namespace tutti::impl::collective::device {

class OperationBoard {
 public:
  /// Of the ranks from `first_rank` on.
  explicit OperationBoard(int32_t ranks, int32_t first_rank = 0)
      : first_rank_(first_rank), ranks_(static_cast<size_t>(ranks)) {}

  /// Rank `rank` begins operation `number`, counted from 0. INVALID_ARGUMENT when a rank that has begun it before does
  /// something else; a rank that is max_pending_operations further is not asked.
  base::Status post(int32_t rank, int64_t number, const Operation &operation);
  /// "1, 3": the ranks that have not begun it.
  std::string missing(int64_t number) const;

 private:
  struct Entry {
    std::atomic<int64_t> number{-1};  // -1 while the rest changes
    std::atomic<int64_t> count{0};
    std::atomic<int32_t> kind{0}, reduction{0}, dtype{0}, root{0}, slice_count{0};

    void write(int64_t new_number, const Operation &operation);
    /// The operation, as far as it is written down; false when another is.
    bool read(int64_t expected, Operation &operation) const;
  };
  struct alignas(64) Rank {
    std::atomic<int64_t> begun{0};
    std::array<Entry, max_pending_operations> ring;
  };

  const int32_t first_rank_;
  std::vector<Rank> ranks_;
};

}  // namespace tutti::impl::collective::device

#endif  // TUTTI_COLLECTIVE_DEVICE_OPERATION_BOARD_H_
