// SPDX-License-Identifier: Apache-2.0
//
// Rows of calls that wait for a device, oldest call first. A device takes a piece of a call, as large as suits it
// (device_speeds.h): fast ones of the oldest, slow ones of the youngest, whose results are wanted last.
//
// Threads: one at a time. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PREDICT_ROW_QUEUE_H_
#define TUTTI_DISTRIBUTE_PREDICT_ROW_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "distribute/input/input_binding.h"
#include "distribute/predict/device_speeds.h"

namespace tutti::impl::distribute {

class RowQueue {
 public:
  using Job = std::function<void(int32_t lane, RowRange rows)>;

  struct Piece {
    std::shared_ptr<const Job> job;  ///< null: none
    RowRange rows;
  };

  /// A call with the rows [0, rows); nothing without any.
  void add(int64_t rows, Job job, const DeviceSpeeds &speeds);
  bool empty() const { return calls_.empty(); }
  /// The next piece for a lane of the device, or none: there are no rows, or it leaves them to others. `must`: it
  /// leaves none.
  Piece take(int32_t device, const DeviceSpeeds &speeds, bool must = false);
  /// How long a device that has left rows to others waits before it asks again, though nothing has happened.
  double patience_seconds(int32_t device, const DeviceSpeeds &speeds) const;

 private:
  struct Call {
    std::shared_ptr<const Job> job;
    int64_t all;
    RowRange left;
    double touched_seconds;  // when it came, or any were taken of it
  };

  Piece take_of(size_t call, int64_t rows, double now_seconds);

  std::deque<Call> calls_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_ROW_QUEUE_H_
