// SPDX-License-Identifier: Apache-2.0
//
// Writes checkpoints on a thread of its own. save() takes a snapshot (a reference to an immutable version and some
// JSON) and returns; the step loop goes on while the version is converted, written, fsynced and older checkpoints are
// removed. At most `max_waiting` snapshots wait, because each pins a version in memory: when a disk cannot keep up,
// save() waits for it, rather than leave out checkpoints that were asked for.
//
// Errors: a save that failed is logged at once and returned by every later save(), flush() and close(); what the
// callback got before stays valid. Checkpoints already on disk are never touched by a failing save.
//
// Threads: one thread at a time calls save(), flush(), close(); `on_saved` runs on the saver's thread.
#ifndef TUTTI_CHECKPOINT_BACKGROUND_SAVER_H_
#define TUTTI_CHECKPOINT_BACKGROUND_SAVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/cancel.h"
#include "base/log.h"
#include "base/object.h"
#include "base/status.h"
#include "base/thread.h"
#include "checkpoint/writer.h"

namespace tutti::impl::checkpoint {

class BackgroundSaver {
 public:
  struct Options {
    std::string directory;
    int64_t keep_max = 5;     // 0 keeps all
    int64_t max_waiting = 2;  // snapshots that wait while another is written
    /// Called after a checkpoint became visible.
    std::function<void(int64_t step, const std::string &path)> on_saved;
    base::Ref<base::Logger> logger;  // nullable
  };

  /// Makes the directory, removes what killed writers left there, proves that it can be written, starts the thread.
  static base::Result<std::unique_ptr<BackgroundSaver>> start(Options options);
  /// As close() with a token cancelled already: does not wait for the disk longer than one tensor takes.
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver &) = delete;
  BackgroundSaver &operator=(const BackgroundSaver &) = delete;

  /// Queues a snapshot; waits only while `max_waiting` others wait.
  base::Status save(Snapshot snapshot, const base::CancelToken *cancel);
  /// Waits until everything queued is on disk.
  base::Status flush(const base::CancelToken *cancel);
  /// flush(), then ends the thread. When `cancel` is raised to cancel, what is not on disk yet is given up and the
  /// result is CANCELLED. A second call returns ok.
  base::Status close(const base::CancelToken *cancel);

  /// Ok, or the first failure so far.
  base::Status status() const;
  /// Checkpoints written, and times that save() had to wait.
  int64_t saved_count() const { return saved_count_.load(std::memory_order_relaxed); }
  int64_t wait_count() const { return wait_count_.load(std::memory_order_relaxed); }

 private:
  explicit BackgroundSaver(Options options);
  void loop();
  base::Status write(Snapshot snapshot);
  /// Ends the thread, after what it writes now; with `gives_up` as soon as it can.
  void end(bool gives_up);

  const Options options_;
  const base::Ref<base::CancelToken> abandon_;  // raised when the snapshots left are given up
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<Snapshot> waiting_;
  bool writing_ = false;
  bool ending_ = false;
  base::Status failure_;

  std::atomic<int64_t> saved_count_{0};
  std::atomic<int64_t> wait_count_{0};
  base::Thread thread_;
};

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_BACKGROUND_SAVER_H_
