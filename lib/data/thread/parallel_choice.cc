// SPDX-License-Identifier: Apache-2.0
#include "data/thread/parallel_choice.h"

#include <algorithm>

namespace tutti::impl::data {

namespace {

template <size_t n>
double median(std::array<double, n> &values) {
  const auto middle = values.begin() + n / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool ParallelChoice::next() const {
  if (!is_trying()) return spreads_;
  const int turn = loops_tried_ / kLoopsOfTurn;  // A B B A A B
  return ((turn ^ (turn >> 1)) & 1) == 0;
}

void ParallelChoice::took(bool was_spread, int64_t rows, int64_t nanoseconds) {
  if (!is_trying()) {
    if (--until_trial_ > 0 || nanoseconds < kLongNanoseconds) return;
    spreads_ = true;
    until_trial_ = distance_;
    return;
  }
  const size_t kind = was_spread ? 1 : 0;
  if (loops_tried_ % kLoopsOfTurn != 0) {
    ns_per_row_[kind][tried_[kind]++] =
        static_cast<double>(nanoseconds) / static_cast<double>(std::max<int64_t>(rows, 1));
  }
  if (++loops_tried_ == kTrialLoops) decide();
}

void ParallelChoice::decide() {
  const bool before = spreads_;
  spreads_ = median(ns_per_row_[1]) < median(ns_per_row_[0]);
  distance_ = spreads_ == before ? std::min(2 * distance_, kLongestDistance) : kFirstDistance;
  until_trial_ = distance_;
  loops_tried_ = 0;
  tried_ = {};
}

}  // namespace tutti::impl::data
