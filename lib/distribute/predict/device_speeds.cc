// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/device_speeds.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/trace.h"

namespace tutti::impl::distribute {

namespace {

/// Pieces per device that a call is cut into at most.
constexpr int64_t kPieces = 16;
/// Pieces that must have been measured before devices count as uneven, how much slower one must be, and to what its
/// lead must shrink until they count as even again; pieces shorter than this are too short to tell.
constexpr int64_t kMeasured = 16;
constexpr double kUneven = 2.5, kEven = 1.5, kShortSeconds = 5e-4;
/// So many first runs of programs, and none that is not one, tell a device's speed, too.
constexpr int64_t kFirstRuns = 8;
/// Rows of the pieces by which a device is measured first.
constexpr int64_t kProbe = 16;
/// Pieces are as large as they must be for a row to take no more than this times what it takes in the best.
constexpr double kEfficient = 1.25;
/// A device that always leaves rows to others is tried again when it has been idle for so many of its pieces.
constexpr double kIdlePieces = 64, kIdleSeconds = 1;
/// The share of all that a device must compute not to be in the way, and the pieces by which that is judged.
constexpr double kWorthWhile = 0.02;
constexpr int64_t kJudged = 2;

size_t size_of(int64_t rows) { return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(rows))) - 1; }

}  // namespace

double DeviceSpeeds::steady_clock() { return static_cast<double>(base::now_ns()) * 1e-9; }

DeviceSpeeds::DeviceSpeeds(const std::vector<int32_t> &lanes, Clock clock) : clock_(clock) {
  for (const int32_t count : lanes) {
    devices_.emplace_back();
    devices_.back().lanes = count;
  }
}

size_t DeviceSpeeds::Device::next_known(size_t size) const {
  while (size-- > 0) {
    if (row_seconds[size] > 0) return size;
  }
  return kSizes;
}

double DeviceSpeeds::Device::seconds(int64_t rows) const {
  const size_t size = std::min(size_of(rows), kSizes - 1), low = next_known(size + 1);
  if (low == kSizes) {
    size_t high = size;
    while (high + 1 < kSizes && row_seconds[high] == 0)
      ++high;
    return row_seconds[high] * static_cast<double>(rows);
  }
  const double per_row = row_seconds[low], begin = std::exp2(low);
  if (low == size) return per_row * static_cast<double>(rows);
  // Rows beyond those of the largest piece measured cost what they did from the one before to that.
  const size_t lower = next_known(low);
  double more = per_row;
  if (lower < kSizes) {
    const double before = std::exp2(lower);
    more = (per_row * begin - row_seconds[lower] * before) / (begin - before);
  }
  return per_row * begin + std::clamp(more, per_row / 4, per_row) * (static_cast<double>(rows) - begin);
}

double DeviceSpeeds::Device::rate() const {
  double best = 0;
  for (const double seconds : row_seconds)
    best = seconds > 0 ? std::max(best, lanes / seconds) : best;
  return best;
}

void DeviceSpeeds::add(int32_t device, int64_t rows, double seconds, bool is_first) {
  if (rows < 1 || seconds <= 0) return;
  const std::lock_guard lock(mutex_);
  Device &of = devices_[static_cast<size_t>(device)];
  if (is_first && (of.measured > 0 || ++of.first_runs < kFirstRuns)) return;
  ++of.measured;
  of.measured_at = now();
  of.last_seconds = seconds;
  const double row_seconds = seconds / static_cast<double>(rows);
  double &known = of.row_seconds[std::min(size_of(rows), kSizes - 1)];
  if (known == 0) {
    known = row_seconds;
    return;
  }
  // One that was interrupted says little, and of the first two the first may be. What makes pieces of this size slower
  // makes all.
  const double ratio = std::min(row_seconds / known, 2.0);
  const double less = of.measured == 2 ? 1 : 0.5, weight = ratio < 1 ? less : 0.3;
  const double change = 1 - weight + weight * ratio;
  for (double &each : of.row_seconds)
    each *= change;
}

bool DeviceSpeeds::are_uneven() const {
  const std::lock_guard lock(mutex_);
  double least = INFINITY, most = 0, longest = 0;
  for (const Device &device : devices_) {
    if (device.measured < kMeasured) return false;
    least = std::min(least, device.rate());
    most = std::max(most, device.rate());
    longest = std::max(longest, device.last_seconds);
  }
  were_uneven_ = were_uneven_ ? most > least * kEven : most > least * kUneven && longest >= kShortSeconds;
  return were_uneven_;
}

double DeviceSpeeds::rate_of_all() const {
  double sum = 0;
  for (const Device &device : devices_) {
    if (device.measured == 0) return 0;
    sum += device.rate();
  }
  return sum;
}

bool DeviceSpeeds::is_fast(const Device &own) const {
  return std::ranges::all_of(devices_, [&](const Device &other) { return other.rate() <= 2 * own.rate(); });
}

bool DeviceSpeeds::is_fast(int32_t device) const {
  const std::lock_guard lock(mutex_);
  return is_fast(devices_[static_cast<size_t>(device)]);
}

int32_t DeviceSpeeds::hardly_helps() const {
  const std::lock_guard lock(mutex_);
  const auto slowest = std::ranges::min_element(devices_, {}, &Device::rate);
  const double all = rate_of_all();
  const bool is_slow = slowest->measured >= kJudged && slowest->rate() < kWorthWhile * all;
  return is_slow ? static_cast<int32_t>(slowest - devices_.begin()) : -1;
}

int64_t DeviceSpeeds::unit(int64_t call_rows) const {
  const int64_t pieces = kPieces * static_cast<int64_t>(devices_.size());
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(call_rows / pieces, 1))));
}

bool DeviceSpeeds::may_look_again(const Device &device, int64_t rows) const {
  return now() - device.measured_at > std::max(kIdleSeconds, kIdlePieces * device.seconds(rows));
}

double DeviceSpeeds::patience_seconds(int32_t device, int64_t call_rows) const {
  const std::lock_guard lock(mutex_);
  const Device &own = devices_[static_cast<size_t>(device)];
  return std::clamp(2 * own.seconds(unit(call_rows)), 1e-3, 1.0);
}

double DeviceSpeeds::until_others_done(const Device &own, const WaitingRows &waiting, double all, int64_t least) const {
  const double others = all - own.rate();
  if (devices_.size() == 1 || others <= 0) return INFINITY;
  // Together they take so long, and not less than one of them for a piece.
  double one = INFINITY;
  for (const Device &device : devices_) {
    if (&device != &own) one = std::min(one, device.seconds(least));
  }
  return std::max(one, static_cast<double>(waiting.ahead + waiting.rows) / others);
}

int64_t DeviceSpeeds::Device::worth_while() const {
  const double enough = kEfficient * lanes / rate();
  size_t size = kSizes;
  while (size > 0 && row_seconds[size - 1] <= enough)
    --size;
  return int64_t{1} << size;
}

int64_t DeviceSpeeds::piece(int32_t device, const WaitingRows &waiting) const {
  const std::lock_guard lock(mutex_);
  const Device &own = devices_[static_cast<size_t>(device)];
  const int64_t unit = this->unit(waiting.call_rows), rows = waiting.rows;
  const int64_t least = rows < 2 * unit ? rows : unit;
  const double all = rate_of_all();
  // Until all are measured nobody takes much, and those that are not next to nothing.
  if (all == 0) return own.measured == 0 ? std::min(least, kProbe) : least;
  const double part = static_cast<double>(rows + waiting.ahead + waiting.behind) / (2 * all);
  const auto suits = [&](int64_t some) {
    return size_of(some) <= own.next_known(kSizes) + 2 && own.seconds(some) <= part;  // no leap in the dark
  };
  int64_t piece = std::clamp(own.worth_while(), least, rows);
  if (suits(rows)) piece = rows;
  while (2 * piece <= rows && suits(2 * piece))
    piece *= 2;
  if (!is_fast(own)) {
    const double until_done = until_others_done(own, waiting, all, least);
    while (piece > least && own.seconds(piece) > until_done)
      piece = std::max(least, piece / 2);
    const double seconds = own.seconds(piece);
    if (seconds > until_done && waiting.waited_seconds <= 2 * seconds && !may_look_again(own, piece)) return 0;
  }
  return rows - piece < unit ? rows : piece;
}

}  // namespace tutti::impl::distribute
