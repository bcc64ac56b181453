// SPDX-License-Identifier: Apache-2.0
//
// A program of several devices is issued once for all of them, but each device's run comes from a thread of its own:
// each brings what its device runs with, and the one that comes last issues the program. Nobody waits here; whoever
// takes results sees to it that all have come (tutti_program_table).
//
// Threads: any; the runs of one device by one at a time.
#ifndef TUTTI_BACKEND_PJRT_PROGRAM_SHARED_LAUNCH_H_
#define TUTTI_BACKEND_PJRT_PROGRAM_SHARED_LAUNCH_H_

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "backend/pjrt/interface/pjrt_client.h"
#include "base/status.h"
#include "base/thread.h"

namespace tutti::impl::backend::pjrt {

class SharedLaunch {
 public:
  explicit SharedLaunch(size_t devices) : brought_(devices, nullptr), outcomes_(devices) {}

  using Issue = base::FunctionRef<base::Status(std::span<DeviceRun *const> runs)>;
  /// The run of a device, by its place among those of the program; it stays where it is until it was issued or
  /// withdrawn. The last one of a launch issues it, and hears what came of that.
  base::Status bring(size_t place, DeviceRun &run, Issue issue);
  /// A run that was brought and not issued is forgotten.
  void withdraw(size_t place, const DeviceRun &run);
  /// What came of the launch that the device's last run was brought for. FAILED_PRECONDITION where others have not
  /// come: it is withdrawn. So a launch is taken by all devices or by none.
  base::Status take(size_t place);

 private:
  std::mutex mutex_;
  // Guarded by mutex_, by place:
  std::vector<DeviceRun *> brought_;  // null: not yet
  std::vector<base::Status> outcomes_;
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_PROGRAM_SHARED_LAUNCH_H_
