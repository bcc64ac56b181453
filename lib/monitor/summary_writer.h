// SPDX-License-Identifier: Apache-2.0
//
// Who writes summaries: to event files of a folder of its own, or among those of a run.
//
//   const auto writer = base::make_ref<FolderWriter>("folder", 10, logger);
//   monitor::Summary summary;
//   summary.add_scalar("loss", 0.25);
//   writer->add(100, summary);
//
// What cannot be written, as on a full disk, is told the logger once, as a warning, and nobody else.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_MONITOR_SUMMARY_WRITER_H_
#define TUTTI_MONITOR_SUMMARY_WRITER_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/object.h"
#include "base/status.h"
#include "monitor/event_file.h"
#include "monitor/summary.h"

namespace tutti::impl::monitor {

class SummaryWriter : public base::Object {
 public:
  /// Where event files are.
  virtual const std::string &folder() const = 0;
  /// What is to be seen of a step.
  virtual void add(int64_t step, const Summary &summary) = 0;
  virtual void flush() = 0;
};

class FolderWriter : public SummaryWriter {
 public:
  /// The folder is made with the first event. `flush_secs`: how long one may wait to be written while others come.
  FolderWriter(std::string folder, double flush_secs, base::Ref<base::Logger> logger)
      : logger_(std::move(logger)), file_(std::move(folder), flush_secs) {}
  /// Flushes.
  ~FolderWriter() override;

  const std::string &folder() const override { return file_.folder(); }
  void add(int64_t step, const Summary &summary) override;
  void flush() override;

 private:
  void note(const base::Status &status);  // of the mutex's holder

  const base::Ref<base::Logger> logger_;
  std::mutex mutex_;
  // Guarded by mutex_:
  EventFile file_;
  bool has_warned_ = false;
};

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_SUMMARY_WRITER_H_
