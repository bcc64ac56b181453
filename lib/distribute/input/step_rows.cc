// SPDX-License-Identifier: Apache-2.0
#include "distribute/input/step_rows.h"

#include <algorithm>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

StepRows::StepRows(const Workers &workers, bool divides_input, int32_t accumulation)
    : workers_(workers),
      divides_input_(divides_input),
      own_(static_cast<size_t>(accumulation)),
      first_(static_cast<size_t>(accumulation)),
      of_workers_(static_cast<size_t>(accumulation) * static_cast<size_t>(workers.count)) {}

/// The first word of a worker whose input is bad; else that is the program.
constexpr int64_t kBad = 1;

// A worker's words: whether its input is bad, or its program; then the rows of its micro-batches.
void StepRows::publish(int64_t *words, const StepInput &input, int64_t program) {
  program_alone_ = program;
  if (workers_.count == 1) return;
  int64_t *const own = words + workers_.index * words_each();
  own[0] = input.status.ok() ? program : kBad;
  for (int32_t m = 0; own[0] != kBad && m < input.count; ++m)
    own[1 + m] = input.rows[static_cast<size_t>(m)];
}

Status StepRows::input_error(const int64_t *words, const StepInput &input) const {
  if (!input.status.ok()) return input.status;
  int32_t worker = 0;
  while (worker + 1 < workers_.count && words_of(words, worker)[0] != kBad)
    ++worker;
  return base::aborted("worker ", worker, " could not read its input").with_detail("worker", std::to_string(worker));
}

/// Of micro-batch m; finds the place of this worker's.
Result<int64_t> StepRows::rows_of_all(const int64_t *words, size_t m, int64_t step) {
  const int64_t of_first = words_of(words, 0)[1 + m];
  int64_t all = 0;
  for (int32_t w = 0; w < workers_.count; ++w) {
    const int64_t rows = words_of(words, w)[1 + m];
    of_workers_[m * static_cast<size_t>(workers_.count) + static_cast<size_t>(w)] = rows;
    if (divides_input_ && w < workers_.index) first_[m] += rows;
    all += rows;
    if (divides_input_ || rows == of_first) continue;
    return base::failed_precondition("worker ", w, " has read ", rows, " rows for step ", step,
                                     ", but worker 0 has read ", of_first,
                                     ": all workers must read the same data unless worker_input is own")
        .with_detail("worker", std::to_string(w));
  }
  return divides_input_ ? all : of_first;
}

Status StepRows::take(const int64_t *words, const StepInput &input, int64_t step) {
  count_ = 0;
  step_rows_ = 0;
  for (size_t m = 0; m < own_.size(); ++m) {
    own_[m] = static_cast<int32_t>(m) < input.count ? input.rows[m] : 0;
    first_[m] = 0;
    int64_t all = own_[m];
    of_workers_[m * static_cast<size_t>(workers_.count)] = all;
    if (workers_.count > 1) {
      TUTTI_ASSIGN(all, rows_of_all(words, m, step));
    }
    step_rows_ += all;
    if (all > 0) count_ = static_cast<int32_t>(m) + 1;
  }
  programs_.clear();
  for (int32_t w = 0; w < workers_.count; ++w)
    programs_.push_back(workers_.count > 1 ? words_of(words, w)[0] : program_alone_);
  if (std::ranges::count(programs_, 0) > 0) programs_.clear();
  return Status();
}

int64_t StepRows::list_places(int32_t contributors, int64_t unit, std::vector<RowRange> &places) const {
  places.clear();
  const int32_t here = divides_input_ ? contributors / workers_.count : contributors;
  if (count_ * contributors == 1) unit = 1;
  int64_t end = 0;
  for (int32_t m = 0; m < count_; ++m) {
    for (int32_t c = 0; c < contributors; ++c) {
      const int32_t worker = c / here;
      const int64_t rows = of_workers_[static_cast<size_t>(m * workers_.count + worker)];
      const int64_t own = share_of_rows(rows, c % here, here).rows(), begin = (end + unit - 1) / unit * unit;
      places.push_back({begin, begin + own});
      if (own > 0) end = begin + own;
    }
  }
  return end;
}

RowRange StepRows::share_of(int64_t own_rows, int32_t contributor, int32_t contributors) const {
  if (!divides_input_) return share_of_rows(own_rows, contributor, contributors);
  const int32_t here = contributors / workers_.count;
  return share_of_rows(own_rows, contributor % here, here);
}

}  // namespace tutti::impl::distribute
