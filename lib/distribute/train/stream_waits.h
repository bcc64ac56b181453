// SPDX-License-Identifier: Apache-2.0
//
// How long a device had nothing to do because its stream waited for operations of the group: a pair of events with
// times around each wait, read when the stream has been synchronized. Events are made when they are first needed, and
// kept. On backends without such events nothing is known, and nothing counted.
//
// Waits of a recording: begin() and end() while the stream records, UNIMPLEMENTED where events have no times then;
// sum() after each replay.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STREAM_WAITS_H_
#define TUTTI_DISTRIBUTE_TRAIN_STREAM_WAITS_H_

#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "base/trace.h"

namespace tutti::impl::distribute {

class StreamWaits {
 public:
  /// The stream's work so far is done, and what comes next waits.
  base::Status begin(backend::Device &device, backend::Stream &stream);
  /// What is issued from now on computes again.
  base::Status end(backend::Stream &stream);
  /// Nanoseconds of the waits since the last take() or drop(). All work on the stream is done.
  base::Result<int64_t> sum() const;
  /// Nanoseconds of all waits since the last call, told to `tracer` (nullable), too. All work on the stream is done.
  base::Result<int64_t> take(backend::Device &device, backend::Stream &stream, base::Tracer *tracer);
  /// Forgets waits of a step that was given up.
  void drop();

 private:
  struct Wait {
    backend::Event begin, end;
  };

  std::vector<Wait> waits_;
  size_t count_ = 0;
  bool is_open_ = false;  // between begin() and end()
  backend::Event now_;    // recorded where the host reads its clock; made for a tracer
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STREAM_WAITS_H_
