// SPDX-License-Identifier: Apache-2.0
//
// Streams and events. PJRT orders work by the arrays it touches, so a stream is only a list of what has begun and may
// not have ended: runs, copies to the host, and the data faults that runs may have found.
//
// Threads: a stream is used by one thread at a time, an event by any.
#ifndef TUTTI_BACKEND_PJRT_MEMORY_PJRT_STREAM_H_
#define TUTTI_BACKEND_PJRT_MEMORY_PJRT_STREAM_H_

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/pjrt/interface/pjrt_client.h"
#include "base/status.h"

namespace tutti::impl::backend::pjrt {

/// One thing that has begun. Shared by the stream and events recorded on it.
class PendingWork {
 public:
  /// `then` is asked once the work is done, and tells what came to light.
  explicit PendingWork(Completion done, std::function<base::Status()> then = nullptr)
      : done_(std::move(done)), then_(std::move(then)) {}

  /// Waits; the same answer again for whoever asks later.
  base::Status wait();
  bool is_done();

 private:
  std::mutex mutex_;
  Completion done_;
  std::function<base::Status()> then_;
  bool has_ended_ = false;
  base::Status status_;
};
using PendingList = std::vector<std::shared_ptr<PendingWork>>;

class StreamState {
 public:
  void add(Completion done, std::function<base::Status()> then = nullptr);
  /// What is there already is not added again.
  void add(const PendingList &list);
  /// Waits for all of it; the first error.
  base::Status synchronize();
  bool has_failed();
  const PendingList &pending() const { return pending_; }

 private:
  void drop_ended();

  PendingList pending_;
  base::Status failed_;  // of what has been dropped
};

class EventState {
 public:
  void record(const StreamState &stream);
  base::Status synchronize();
  bool is_done();
  PendingList pending();

 private:
  std::mutex mutex_;
  PendingList pending_;
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_MEMORY_PJRT_STREAM_H_
