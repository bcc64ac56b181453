// SPDX-License-Identifier: Apache-2.0
#include "monitor/summary_writer.h"

#include "base/exceptions.h"

namespace tutti::impl::monitor {

FolderWriter::~FolderWriter() {
  (void)base::without_exceptions([&] {
    flush();
    return base::Status();
  });
}

void FolderWriter::add(int64_t step, const Summary &summary) {
  if (summary.is_empty()) return;
  const std::lock_guard lock(mutex_);
  note(file_.add({.time_ns = wall_time_ns(), .step = step, .message = summary.bytes()}));
}

void FolderWriter::flush() {
  const std::lock_guard lock(mutex_);
  note(file_.flush());
}

void FolderWriter::note(const base::Status &status) {
  if (status.ok() || has_warned_) return;
  has_warned_ = true;
  logger_->warning("summaries in ", file_.folder(), " cannot be written: ", status.to_string(),
                   "; writing them is tried again");
}

}  // namespace tutti::impl::monitor
