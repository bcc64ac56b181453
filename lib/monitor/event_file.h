// SPDX-License-Identifier: Apache-2.0
//
// A file of events as TensorFlow writes and TensorBoard reads them: records (data/format/record.h) of the message Event
// (core/util/event.proto), the first of which says "brain.Event:2".
//
//   EventFile file("run", 10);
//   TUTTI_TRY(file.start(501));  // steps from there on come, perhaps again
//   TUTTI_TRY(file.add({.time_ns = now, .step = 501, .kind = EventKind::summary, .message = summary.bytes()}));
//   TUTTI_TRY(file.flush());
//
// The file is made with the first event, in a folder that is made too, and called
// events.out.tfevents.<seconds>.<host>.<process>.<number>. The seconds are those since 1970, or more where the folder
// has event files of such names: readers take a folder's files in the order of their names, as one.
//
// Whole records are written, so what a process leaves that is killed is readable. A write that fails, as on a full
// disk, leaves nothing in the file; its events are kept and written with the next ones, up to kMostWaiting bytes; more
// are lost.
//
// Threads: one at a time.
#ifndef TUTTI_MONITOR_EVENT_FILE_H_
#define TUTTI_MONITOR_EVENT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace tutti::impl::monitor {

/// What an event says; the number of its field.
enum class EventKind : int32_t { graph = 4, summary = 5 };

struct Event {
  int64_t time_ns = 0;  ///< since 1970
  int64_t step = 0;
  EventKind kind = EventKind::summary;
  std::string_view message{};  ///< a Summary or GraphDef, encoded
};

class EventFile {
 public:
  static constexpr size_t kMostWaiting = size_t{1} << 20;

  /// `flush_secs`: how long an event may wait to be written while others come.
  EventFile(std::string folder, double flush_secs) : folder_(std::move(folder)), flush_secs_(flush_secs) {}

  const std::string &folder() const { return folder_; }
  /// Events of steps from `step` on that are in the folder hold no more: TensorBoard drops them when it reads this.
  base::Status start(int64_t step);
  /// Errors are those of writing what waits. An event that there is no room for, since writes fail, is lost.
  base::Status add(const Event &event);
  /// Writes what has waited long enough.
  base::Status flush_if_due();
  /// Writes all; the system then has it, which is not the disk yet.
  base::Status flush();

 private:
  base::Status open();
  base::Status append_waiting();
  bool is_due() const;

  const std::string folder_;
  const double flush_secs_;
  std::optional<base::AppendFile> file_;
  std::string waiting_;             // records
  std::string message_;             // kept for its memory
  int64_t flushed_ns_ = INT64_MIN;  // of the clock of base::now_ns(): when it was tried
  bool has_failed_ = false;         // then
};

/// Of now, as Event has it.
int64_t wall_time_ns();
/// As names of files have it.
std::string host_name();

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_EVENT_FILE_H_
