// SPDX-License-Identifier: Apache-2.0
//
// Devices of several processes (workers) in one group: what each worker says of its own, whether they fit, and how they
// are connected. All workers come to the same end, in the same round of words, whatever happens to one of them: the
// devices are connected, or all go on without, or all refuse. Nobody waits for one that has chosen differently.
//
//   TUTTI_ASSIGN(const WorkersConnection made, connect_workers(ranks, devices, options, workers));
//   if (!made.unconnected.ok()) ...           // "worker 1 (node2:7000) says: there is no libnccl.so.2"
//
// How: a word of each worker and one of each device goes round by the group over host memory, so that who dies, hangs
// or cancels is named as in any operation. If all can and want to, worker 0 leaves an id in the shared table; then each
// begins to connect, and a word goes round until all are ready or one has failed.
//
// The group is one of device_group.h, whose ranks are those of the cluster. What differs:
//  * Between processes words of the host go along with each operation of devices (Group::announce) and workers watch
//    one another (Group::watch): who dies, hangs or gives up is named on all, and the operations of devices are ended.
//  * settle() lets the ranks of all workers pass or none, as that of the group over host memory. signals_end() is
//    false: an operation that another process has ended may look as if it were done, and a worker that was ahead could
//    not give its weights to those of another process. So an update waits for settle(), on the host or, where it was
//    recorded, on the device (Group::record_settle), and is then made whatever ends afterwards.
//  * Memory is registered by all processes or by none, and windows are not made.
//  * Operations may be recorded (Group::begin_recording) where each worker has one device and the library allows it.
//  * `repeatable` holds for the same devices in the same machines.
#ifndef TUTTI_COLLECTIVE_DEVICE_CONNECTED_WORKERS_H_
#define TUTTI_COLLECTIVE_DEVICE_CONNECTED_WORKERS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "collective/device/device_group.h"
#include "collective/shared_table.h"

namespace tutti::impl::collective::device {

/// Why the devices are not connected, on all workers the same and naming one; or ok, and by what they are: "NCCL
/// 2.27.7".
struct WorkersConnection {
  base::Status unconnected;
  std::string library;
};

struct WorkersOptions {
  std::shared_ptr<SharedTable> table;
  /// Begins every key of this group.
  std::string key_prefix;
  /// What workers are called in messages, in order.
  std::vector<std::string> names;
  int32_t worker = 0;
  /// Ok, or why the devices of this worker are not to be connected: it was asked not to, their memory is the host's.
  base::Status own;
  /// All workers refuse if the devices cannot be connected, where one of them demands that.
  bool is_demanded = false;
  /// Ends the waits.
  const base::CancelToken *cancel = nullptr;
};

/// `ranks`: of this process, over host memory, which become ranks over memory of the devices, devices[r] for ranks[r].
/// Where they are not connected the ranks stay what they were. An error when a worker demands what cannot be had, when
/// connecting fails or a worker is lost. All workers call it, with as many ranks each.
base::Result<WorkersConnection> connect_workers(std::vector<std::unique_ptr<Group>> &ranks,
                                                std::span<const backend::DeviceRef> devices,
                                                const DeviceGroupOptions &options, const WorkersOptions &workers);

}  // namespace tutti::impl::collective::device

#endif  // TUTTI_COLLECTIVE_DEVICE_CONNECTED_WORKERS_H_
