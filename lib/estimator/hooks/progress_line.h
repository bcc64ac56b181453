// SPDX-License-Identifier: Apache-2.0
//
// How far a training is, in one line: for a terminal, where it is written again and again, or for a file.
//
//   step 1200/5000 [======>                 ]  24%  loss 0.3141  accuracy 0.912  12345 examples/s  1:20 left
//   step 1200 of 5000 (24%): loss 0.3141, accuracy 0.912, 12345 examples/s, 1:20 left
#ifndef TUTTI_ESTIMATOR_HOOKS_PROGRESS_LINE_H_
#define TUTTI_ESTIMATOR_HOOKS_PROGRESS_LINE_H_

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

/// What a line tells. Numbers below 0 are not known and left out.
struct ProgressFacts {
  int64_t step = 0;
  int64_t goal_step = -1;
  int64_t epoch = -1;                   // told where the end is not known
  double examples_per_second = -1;      // lately
  double seconds_left = -1;             // until the goal
  double seconds_taken = -1;            // told at the end
  std::span<const NamedNumber> values;  // loss and metrics, in this order
};

/// For a terminal of so many columns, of which the line takes one less: the bar becomes shorter, then
/// metrics are left out from the last one on, then speed and time. No line end.
std::string progress_bar(const ProgressFacts &facts, int columns);
/// Everything, without a bar. No line end.
std::string progress_sentence(const ProgressFacts &facts);
/// Four digits.
std::string short_number(double value);
/// "loss 0.3141, accuracy 0.912"; what is no number is left out.
std::string values_text(std::span<const NamedNumber> values, std::string_view separator);
/// "0:09", "1:20", "2:05:00".
std::string duration_text(double seconds);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_PROGRESS_LINE_H_
