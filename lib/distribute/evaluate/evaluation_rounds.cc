// SPDX-License-Identifier: Apache-2.0
#include "distribute/evaluate/evaluation_rounds.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Result<EvaluationRounds> EvaluationRounds::begin(const Strategy &strategy, const WorkerState &state,
                                                 const Options &options) {
  EvaluationRounds rounds;
  rounds.workers_ = strategy.workers();
  rounds.max_batches_ = options.max_batches;
  if (rounds.workers_.count == 1) return rounds;
  rounds.turn_ = batch_turn(strategy, strategy.input_pipeline().count > 1);
  rounds.divides_input_ = rounds.turn_.period == 1;
  TUTTI_ASSIGN(rounds.all_, WorkerRounds::begin(strategy, state, options.timeout_ms, options.cancel));
  return rounds;
}

int64_t EvaluationRounds::batches_to_read() const {
  return max_batches_ < 0 ? turn_.period : std::min<int64_t>(turn_.period, max_batches_ - batches_);
}

Status EvaluationRounds::check_same_input(int64_t batches, int64_t rows) const {
  for (size_t w = 1; w < static_cast<size_t>(workers_.count); ++w) {
    if (told_[2 * w] == batches && told_[2 * w + 1] == rows) continue;
    return base::failed_precondition("worker ", w, " has read ", told_[2 * w], " batches with ", told_[2 * w + 1],
                                     " rows after batch ", batches_, ", but worker 0 has read ", batches, " with ",
                                     rows, ": all workers must read the same data unless worker_input is own")
        .with_detail("worker", std::to_string(w));
  }
  return Status();
}

Result<bool> EvaluationRounds::finish_round(const RoundRead &read) {
  const std::array<int64_t, 2> own{read.batches, read.rows};
  if (all_ == nullptr) {
    told_.assign(own.begin(), own.end());
  } else {
    TUTTI_TRY(all_->tell(own, told_));
  }
  RoundRead round{told_[0], told_[1]};
  if (!divides_input_) TUTTI_TRY(check_same_input(round.batches, round.rows));
  for (size_t w = 1; divides_input_ && w < static_cast<size_t>(workers_.count); ++w) {
    round.batches = std::max(round.batches, told_[2 * w]);
    round.rows += told_[2 * w + 1];
  }
  for (int32_t w = 0; first_with_rows_ < 0 && w < workers_.count; ++w) {
    if (told_[2 * static_cast<size_t>(w) + 1] > 0) first_with_rows_ = w;
  }
  batches_ += round.batches;
  rows_ += round.rows;
  return round.batches == turn_.period && batches_ != max_batches_;
}

Status EvaluationRounds::add_up(std::span<const backend::StateEntry *const> entries, std::span<const std::string> known,
                                std::byte *sums) {
  if (all_ == nullptr) return Status();
  for (const backend::StateEntry *entry : entries) {
    const bool is_known = std::ranges::find(known, entry->name) != known.end();
    std::byte *const place = sums + entry->offset;
    if (is_known && workers_.index != first_with_rows_)
      std::memset(place, 0, static_cast<size_t>(entry->storage_bytes));
    TUTTI_TRY(all_->add_up(place, entry->storage_elements(), entry->dtype, entry->name.c_str()));
  }
  return Status();
}

Result<std::vector<double>> EvaluationRounds::gather(std::span<const double> own) {
  std::vector<double> all(own.size() * static_cast<size_t>(workers_.count));
  std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(own.size()) * workers_.index);
  if (all_ == nullptr) return all;
  TUTTI_TRY(all_->add_up(reinterpret_cast<std::byte *>(all.data()), static_cast<int64_t>(all.size()),
                         tensor::DType::f64, "summaries"));
  return all;
}

}  // namespace tutti::impl::distribute
