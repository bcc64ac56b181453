// SPDX-License-Identifier: Apache-2.0
//
// A group over devices that their backend connects (backend/clique.h: NCCL, RCCL): operations on memory of devices are
// work on a stream of each rank's own, operations on memory of the host go to a group over that.
//
//   TUTTI_ASSIGN(auto ranks, LocalGroup::create(2, 1, options));
//   TUTTI_ASSIGN(ranks, connect(std::move(ranks), devices, options));   // devices[r] is rank r's
//
//   begin       the rank's stream of collectives waits for the operation's stream; the operation is enqueued there
//   wait        the operation's stream waits for it; the thread goes on
//   settle      the thread waits until the devices have done it, and for all ranks to have come so far
//   await_done  the thread waits until its own device has done it
//
// Recordings: begin() forks the rank's stream of collectives from the operation's, by an event, and wait() joins it
// again. A replay is one operation more, known by its number as any; what the thread waits for is an event behind it.
// At record_settle() the device waits for settle() by a StreamHold, which nobody but the rank's thread lets go.
//
// Exceptions to the contract of Group:
//  * Sums are added in the order that the devices' library chooses. All ranks get the same bits; the same bits run to
//    run when `repeatable` was asked for.
//  * One part per rank, and no gather.
//  * Disagreement about an operation is found by the rank that comes later, before it takes part.
//
// Never a hang: the thread waits in settle() and await_done(), in wait() only when it is run_ahead operations ahead of
// the device or when the library still connects, in begin() only when the device has not done the operation that is
// max_pending_operations older, for which wait() has returned. Each wait ends with the deadline, the token, an error
// that the library reports or an abort, and then ends the operations of all ranks on their devices. That data are good
// is told by settle(), or on the devices by the byte `alive`: an operation that was ended leaves anything in memory.
//
// Devices of several processes: connected_workers.h.
#ifndef TUTTI_COLLECTIVE_DEVICE_DEVICE_GROUP_H_
#define TUTTI_COLLECTIVE_DEVICE_DEVICE_GROUP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/clique.h"
#include "base/status.h"
#include "collective/group.h"

namespace tutti::impl::collective::device {

struct DeviceGroupOptions {
  /// How long a rank waits for the others, or the devices, before it gives the group up; negative = for ever. Also for
  /// connecting.
  int64_t timeout_ms = 600000;
  /// The same bits in every run on the same devices.
  bool repeatable = false;
  /// Null, or a byte that becomes 0 before an operation of any rank is ended; in memory that the devices read. It
  /// outlives the ranks. So work on a stream behind an operation that sees another value knows that it was done, and by
  /// ranks whose work before it had seen the same. Of several processes it is in memory that the device writes, too,
  /// and tells of each replay, behind where that settles, whether all workers have settled it.
  std::atomic<uint8_t> *alive = nullptr;

  backend::CliqueOptions of_clique() const { return {.repeatable = repeatable}; }
};

/// Operations on memory of devices that a rank's thread may be ahead of its device.
constexpr int64_t run_ahead = 32;

/// Ok when a group of so many parts per rank can be made over these devices; else UNAVAILABLE or UNIMPLEMENTED and one
/// sentence why not.
base::Status check(std::span<const backend::DeviceRef> devices, int32_t parts, const DeviceGroupOptions &options);

/// Ranks over host memory -> ranks over memory of devices, one device for each. The ranks are new: nothing was begun.
base::Result<std::vector<std::unique_ptr<Group>>> connect(std::vector<std::unique_ptr<Group>> ranks,
                                                          std::span<const backend::DeviceRef> devices,
                                                          const DeviceGroupOptions &options);

/// The same over a clique of several processes (connected_workers.h), which is connected; the ranks of each follow one
/// another.
base::Result<std::vector<std::unique_ptr<Group>>> connect_clique(std::vector<std::unique_ptr<Group>> ranks,
                                                                 std::span<const backend::DeviceRef> devices,
                                                                 std::unique_ptr<backend::Clique> clique,
                                                                 const DeviceGroupOptions &options);

}  // namespace tutti::impl::collective::device

#endif  // TUTTI_COLLECTIVE_DEVICE_DEVICE_GROUP_H_
