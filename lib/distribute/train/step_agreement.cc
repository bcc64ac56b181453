// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/step_agreement.h"

#include <algorithm>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

void StepAgreement::open(size_t contributors) {
  words_per_part_ = word_count + rows_.word_count();
  words_.resize(contributors * static_cast<size_t>(words_per_part_));
  for (size_t c = 0; c < contributors; ++c)
    pointers_.push_back(&words_[c * static_cast<size_t>(words_per_part_)]);
}

void StepAgreement::propose(const StepProposal &proposal) {
  const base::Ref<base::Tracer> &tracer = rank_.programs().tracer;
  std::fill(words_.begin(), words_.end(), 0);
  words_[word_stop] = proposal.stops ? 1 : 0;
  words_[word_limit] = proposal.reaches_limit ? 1 : 0;
  words_[word_error] = proposal.input != nullptr && !proposal.input->status.ok() ? 1 : 0;
  words_[word_trace] = tracer && tracer->enabled() ? 1 : 0;
  if (proposal.input != nullptr) rows_.publish(words_.data() + word_count, *proposal.input, proposal.program);
  for (size_t c = 1; c < pointers_.size(); ++c)
    std::copy_n(words_.begin(), words_per_part_, words_.begin() + static_cast<int64_t>(c) * words_per_part_);
}

Status StepAgreement::exchange() {
  return rank_.group().all_reduce(pointers_, words_per_part_, tensor::DType::i64, collective::Reduction::max,
                                  "control word");
}

Result<bool> StepAgreement::conclude(const StepInput &input, int64_t step, StopReason &reason) {
  if (is_over()) {
    reason = words_[word_limit] != 0 ? StopReason::steps_done : StopReason::stopped;
    return false;
  }
  const int64_t *const words = words_.data() + word_count;
  if (words_[word_error] != 0)
    return rows_.input_error(words, input).wrap(base::concat("reading the input of step ", step, " failed"));
  TUTTI_TRY(rows_.take(words, input, step));
  if (rows_.count() == 0) reason = StopReason::end_of_input;
  return rows_.count() > 0;
}

}  // namespace tutti::impl::distribute
