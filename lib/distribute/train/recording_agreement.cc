// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/recording_agreement.h"

namespace tutti::impl::distribute {

using base::Status;

Status RecordingAgreement::tell(bool can_go_on) {
  int64_t all_can = can_go_on ? 1 : 0;
  void *const word = &all_can;
  TUTTI_TRY(
      rank_.group().all_reduce({&word, 1}, 1, tensor::DType::i64, collective::Reduction::min, "steps are recorded"));
  all_can_ = all_can != 0;
  return Status();
}

Status RecordingAgreement::go_on() {
  if (!is_recording_) return Status();
  TUTTI_TRY(tell(true));
  return all_can_ ? Status() : refused_elsewhere();
}

Status RecordingAgreement::refused_elsewhere() { return base::unavailable("another worker could not record a step"); }

}  // namespace tutti::impl::distribute
