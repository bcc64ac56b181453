// SPDX-License-Identifier: Apache-2.0
#include "distribute/workers/worker_rounds.h"

#include <algorithm>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

BatchTurn batch_turn(const Strategy &strategy, bool divides_input) {
  const Workers &workers = strategy.workers();
  return divides_input ? BatchTurn() : BatchTurn{workers.count, workers.index};
}

Result<std::unique_ptr<WorkerRounds>> WorkerRounds::begin(const Strategy &strategy, const WorkerState &own,
                                                          int64_t timeout_ms, const base::CancelToken *cancel) {
  GroupOptions options;
  options.timeout_ms = timeout_ms;
  options.cancel = cancel;
  TUTTI_ASSIGN(std::unique_ptr<collective::Group> group, strategy.make_worker_group(options));
  collective::Group *const compared = group.get();
  TUTTI_TRY(check_same_state({&compared, 1}, strategy.workers(), 1, own, cancel));
  group->set_cancel(cancel);
  return std::unique_ptr<WorkerRounds>(new WorkerRounds(strategy.workers(), std::move(group)));
}

// Each fills its own block and leaves 0 in the others, so that the maximum has all of them.
Status WorkerRounds::tell(std::span<const int64_t> own, std::vector<int64_t> &all) {
  all.assign(own.size() * static_cast<size_t>(workers_.count), 0);
  std::ranges::copy(own, all.begin() + static_cast<int64_t>(own.size()) * workers_.index);
  void *const words = all.data();
  return group_->all_reduce({&words, 1}, static_cast<int64_t>(all.size()), tensor::DType::i64,
                            collective::Reduction::max, "round of the workers");
}

Status WorkerRounds::add_up(void *elements, int64_t count, tensor::DType dtype, const char *label) {
  return group_->all_reduce({&elements, 1}, count, dtype, collective::Reduction::sum, label);
}

Status WorkerRounds::gather(std::byte *bytes, std::span<const int64_t> bounds) {
  slices_.clear();
  for (int32_t w = 0; w < workers_.count; ++w) {
    const collective::Slice slice{bounds[static_cast<size_t>(w)], bounds[static_cast<size_t>(w) + 1], w};
    if (slice.begin < slice.end) slices_.push_back(slice);
  }
  void *const buffer = bytes;
  return group_->all_gather({&buffer, 1}, slices_, bounds.back(), tensor::DType::u8, "rows of the workers");
}

}  // namespace tutti::impl::distribute
