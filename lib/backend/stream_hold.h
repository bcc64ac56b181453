// SPDX-License-Identifier: Apache-2.0
//
// A point of a stream at which the device waits until the host lets it go on. It may be in a recording, of which each
// replay comes to it once more.
//
//   TUTTI_ASSIGN(StreamHold hold, StreamHold::create(device));
//   TUTTI_TRY(hold.issue(stream, nullptr));   // while the stream records
//   ...
//   hold.expect();                            // before each replay
//   TUTTI_TRY(recording.replay(stream));
//   while (!hold.has_come()) ...              // what is before the point on the stream is done then
//   hold.let_go(true);
//
// Between replay() and let_go() the thread calls nothing of the backend: what another thread does there may wait for
// the device and keep this one from it. It outlives what was issued. Threads: that of the stream.
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

  /// Streams of one device, one after the other. `verdict`: null, or a byte in memory of Device::allocate_host() that
  /// is 1 or 0 behind the point, as let_go() said of it.
  base::Status issue(Stream &stream, void *verdict) { return stream.hold(memory_, verdict); }
  /// The device will come to the point once more. One that was expected before has been let go.
  void expect() { ++expected_; }
  /// It waits at the last one that is expected.
  bool has_come() const { return arrivals().load(std::memory_order_seq_cst) == expected_; }
  /// From there; also before it has come.
  void let_go(bool verdict) {
    if (verdict) approved().store(expected_, std::memory_order_seq_cst);
    departures().store(expected_, std::memory_order_seq_cst);
  }

 private:
  explicit StreamHold(HostMemory memory);
  std::atomic<uint32_t> &arrivals() const { return words()[0]; }
  std::atomic<uint32_t> &departures() const { return words()[1]; }
  std::atomic<uint32_t> &approved() const { return words()[2]; }  // the last whose verdict is true
  std::atomic<uint32_t> *words() const { return reinterpret_cast<std::atomic<uint32_t> *>(memory_.data()); }

  HostMemory memory_;
  uint32_t expected_ = 0;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_STREAM_HOLD_H_
