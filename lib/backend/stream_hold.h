// SPDX-License-Identifier: Apache-2.0
//
// A point of a stream at which the device waits until the host lets it go on. It may be in a recording, of which each
// replay comes to it once more.
//
//   TUTTI_ASSIGN(StreamHold hold, StreamHold::create(device));
//   TUTTI_TRY(hold.issue(stream));            // while the stream records
//   ...
//   hold.expect();                            // before each replay
//   TUTTI_TRY(recording.replay(stream));
//   while (!hold.has_come()) ...              // what is before the point on the stream is done then
//   hold.let_go();
//
// It outlives what was issued. Threads: that of the stream.
#ifndef TUTTI_BACKEND_STREAM_HOLD_H_
#define TUTTI_BACKEND_STREAM_HOLD_H_

#include <atomic>
#include <cstdint>

#include "backend/memory.h"
#include "base/status.h"

namespace tutti::impl::backend {

class StreamHold {
 public:
  /// UNIMPLEMENTED where the backend has nothing of the kind.
  static base::Result<StreamHold> create(Device &device);

  /// Streams of one device, one after the other.
  base::Status issue(Stream &stream);
  /// The device will come to the point once more. One that was expected before has been let go.
  void expect() { ++expected_; }
  /// It waits at the last one that is expected.
  bool has_come() const { return arrivals().load(std::memory_order_seq_cst) == expected_; }
  /// From there; also before it has come.
  void let_go() { departures().store(expected_, std::memory_order_seq_cst); }

 private:
  explicit StreamHold(HostMemory memory);
  std::atomic<uint32_t> &arrivals() const { return words()[0]; }
  std::atomic<uint32_t> &departures() const { return words()[1]; }
  std::atomic<uint32_t> *words() const { return reinterpret_cast<std::atomic<uint32_t> *>(memory_.data()); }

  HostMemory memory_;
  uint32_t expected_ = 0;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_STREAM_HOLD_H_
