// SPDX-License-Identifier: Apache-2.0
//
// Whether short loops are spread over threads. To wake a thread may cost more than it brings, and how much it costs
// differs from machine to machine and with what else runs there; so loops of both kinds are timed in turns, now and
// then again, and the kind that was faster is kept. A turn is several loops, of which the first does not count: threads
// that had nothing to do in the turn before have gone to sleep, which they do not between loops that are all spread.
// Long loops are always spread.
//
//   const bool is_spread = choice.next();
//   ... the loop, over so many rows ...
//   choice.took(is_spread, rows, nanoseconds);
//
// Threads: an object belongs to one thread at a time.
#ifndef TUTTI_DATA_THREAD_PARALLEL_CHOICE_H_
#define TUTTI_DATA_THREAD_PARALLEL_CHOICE_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti::impl::data {

class ParallelChoice {
 public:
  /// A loop that takes longer is worth the waking of a thread anywhere.
  static constexpr int64_t kLongNanoseconds = 1'000'000;
  /// Turns of a trial, and loops of a turn.
  static constexpr int kTurns = 6, kLoopsOfTurn = 4, kTrialLoops = kTurns * kLoopsOfTurn;
  /// Loops before the first trial; between that and the next; at most, after trials with the same outcome.
  static constexpr int64_t kWarmUps = 4, kFirstDistance = 256, kLongestDistance = 8192;

  /// Is the next loop to be spread?
  bool next() const;
  /// It was, or was not, and took so long.
  void took(bool was_spread, int64_t rows, int64_t nanoseconds);

 private:
  /// Loops of each kind that are compared, by the medians of their times per row.
  static constexpr int kTries = kTurns / 2 * (kLoopsOfTurn - 1);

  bool is_trying() const { return until_trial_ == 0; }
  void decide();

  bool spreads_ = true;
  int64_t until_trial_ = kWarmUps;
  int64_t distance_ = kFirstDistance;
  // Of the trial, the latter two by whether loops were spread:
  int loops_tried_ = 0;
  std::array<size_t, 2> tried_{};
  std::array<std::array<double, kTries>, 2> ns_per_row_{};
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_THREAD_PARALLEL_CHOICE_H_
