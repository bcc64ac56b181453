// SPDX-License-Identifier: Apache-2.0
//
// A group for tests that behaves like a communication library with its own streams: an engine thread carries operations
// out some time after all ranks have begun them, possibly out of order, and spoils what nobody may read meanwhile. Code
// that passes with it neither relies on begin() doing work, nor on the order of completion, nor on buffers between
// begin and wait.
//
// Operations with a stream are taken where the options say how work is put on one, which tests know whose devices are
// emulated in memory of the host:
//
//   begin       work on the operation's stream, which takes the buffers as they are then, and spoils them
//   (engine)    carries the operation out some time after the streams of all ranks have come there
//   wait        work on the stream, which lasts until that has been done; the thread goes on
//   await_done  the thread waits for it; settle() does, and for all ranks to have come so far
//
// So what is issued between begin and wait reads NaN, and so does what the stream or the host reads without a wait. An
// abort ends the waits of all streams and leaves the buffers spoiled: as with devices that a library connects
// (device/), that data are good is told by settle() and await_done(), or by the byte `alive`.
#ifndef TUTTI_TESTS_COLLECTIVE_FAKE_GROUP_H_
#define TUTTI_TESTS_COLLECTIVE_FAKE_GROUP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "collective/group.h"

namespace tutti::impl::collective::fake {

struct FakeGroupOptions {
  uint64_t seed = 1;
  /// Each operation takes a random time up to this.
  int64_t max_delay_us = 200;
  /// Operations that are ready complete in random order instead of first begun, first done.
  bool reorder = true;
  /// Floating-point buffers are filled with NaN between begin and completion, and so are slices that reduce_scatter
  /// leaves unspecified.
  bool spoil = true;
  /// The group aborts by itself when it comes to this operation; negative = never.
  Ticket abort_at = -1;
  int64_t timeout_ms = 10000;
  /// Null: operations with streams are refused. Else puts work of the group on a stream, behind what was issued there:
  /// when the stream has come to it, it is asked, by any thread, until it says that it is done. The stream goes on by
  /// itself, as a device's does.
  std::function<void(backend::Stream &stream, std::function<bool()> work)> issue;
  /// Null, or a byte that becomes 0 before streams are ended, in memory that outlives the ranks
  /// (device::DeviceGroupOptions).
  std::atomic<uint8_t> *alive = nullptr;
};

class FakeGroup {
 public:
  /// The handles of all ranks, in order.
  static base::Result<std::vector<std::unique_ptr<Group>>> create(int32_t size, int32_t parts,
                                                                  const FakeGroupOptions &options);
};

}  // namespace tutti::impl::collective::fake

#endif  // TUTTI_TESTS_COLLECTIVE_FAKE_GROUP_H_
