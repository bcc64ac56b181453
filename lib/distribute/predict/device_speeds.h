// SPDX-License-Identifier: Apache-2.0
//
// How fast devices compute rows, as measured, and how many of the rows that wait one should take next. Devices may
// differ by any factor: each takes pieces that last about equally long, half of what would be its part of all that
// waits, so that pieces get smaller towards the end and all come to it together (guided self-scheduling,
// Polychronopoulos and Kuck 1987, weighted by speed). One that would be the last to finish even its smallest piece
// leaves the rows to the others.
//
// Pieces are of 2^k rows but for the last ones of a call, so that few programs serve calls of any size.
//
// Threads: any. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PREDICT_DEVICE_SPEEDS_H_
#define TUTTI_DISTRIBUTE_PREDICT_DEVICE_SPEEDS_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tutti::impl::distribute {

/// The rows of a call that no device has taken, among those of all calls, oldest call first.
struct WaitingRows {
  int64_t rows = 0;
  int64_t ahead = 0, behind = 0;  ///< of older and of younger calls
  int64_t call_rows = 0;          ///< what the call came with
  double waited_seconds = 0;      ///< since it came, or any were taken of it
};

class DeviceSpeeds {
 public:
  /// Seconds on a clock that does not go back.
  using Clock = double (*)();
  static double steady_clock();

  /// `lanes`: pieces that may be under way on each device at a time.
  explicit DeviceSpeeds(const std::vector<int32_t> &lanes, Clock clock = steady_clock);

  double now() const { return clock_(); }

  /// A piece took so long on a lane of the device. `is_first`: of its program, which has more to do then; that counts
  /// only where a device has nothing but such.
  void add(int32_t device, int64_t rows, double seconds, bool is_first = false);
  /// Is one of the devices, all measured often, much slower than another? Small changes do not change the answer.
  bool are_uneven() const;
  /// Is it one of the fast ones, which take the oldest rows first? Slow ones take the youngest, which are needed last.
  bool is_fast(int32_t device) const;
  /// Rows that the device should take of a call; 0 = none now, as others will be done with them sooner.
  int64_t piece(int32_t device, const WaitingRows &waiting) const;
  /// How long a device that takes none of such a call waits before it asks again, though nothing has happened.
  double patience_seconds(int32_t device, int64_t call_rows) const;
  /// The slowest device if it computes less than a fiftieth of what all do together, by more than one piece; -1 = none,
  /// or not known yet.
  int32_t hardly_helps() const;

 private:
  static constexpr size_t kSizes = 48;
  struct Device {
    int32_t lanes = 1;
    int64_t measured = 0, first_runs = 0;
    double measured_at = 0, last_seconds = 0;  // when it was measured last, and how long that piece took
    std::array<double, kSizes> row_seconds{};  // of a piece of 2^i to 2^(i+1) - 1 rows on a lane; 0 = not measured

    /// The largest size below this one that was measured; kSizes = none.
    size_t next_known(size_t size) const;
    /// Of a piece on a lane: as measured, or by the nearest sizes that were.
    double seconds(int64_t rows) const;
    /// Rows per second of all lanes of the device together; 0 = not measured.
    double rate() const;
    /// Rows of the smallest piece of which it is not known to be much dearer by the row than others.
    int64_t worth_while() const;
  };

  int64_t unit(int64_t call_rows) const;
  double rate_of_all() const;
  bool is_fast(const Device &own) const;
  /// When the others will be done with what waits up to the end of the call.
  double until_others_done(const Device &own, const WaitingRows &waiting, double all, int64_t least) const;
  bool may_look_again(const Device &device, int64_t rows) const;

  const Clock clock_;
  mutable std::mutex mutex_;
  std::vector<Device> devices_;       // guarded by mutex_
  mutable bool were_uneven_ = false;  // guarded by mutex_
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_DEVICE_SPEEDS_H_
