// SPDX-License-Identifier: Apache-2.0
//
// A trace as TensorBoard's profile page and the program xprof read it: a message XSpace (tsl/profiler/protobuf/
// xplane.proto) in a file LOG_FOLDER/plugins/profile/RUN/HOST.xplane.pb.
//
// Rows of replicas and other threads are lines of the plane "/host:CPU"; a device that works beside its replicas, whose
// rows are called "... on DEVICE", has a plane "/device:GPU:N", whatever its kind, since that is what these pages know.
// Kernels are called "NODE:OP", as TensorFlow's ops are, so that they are counted by op; a step carries its number,
// counted from the begin of the profile. What a device does belongs to the step that its replica was in when it began;
// it is tied to that by an event of a nanosecond, "launch".
//
// Threads: functions without state.
#ifndef TUTTI_MONITOR_PROFILE_PLANES_H_
#define TUTTI_MONITOR_PROFILE_PLANES_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/trace.h"

namespace tutti::impl::monitor {

/// The message's bytes. `epoch_ns`: what the clock of base::now_ns() showed in 1970. Texts that are not UTF-8 have
/// U+FFFD in place of what is not.
std::string profile_planes(std::span<const base::Tracer::Row> rows, int64_t epoch_ns);

/// Where TensorBoard looks for a profile that was made now: a file in a folder of its own in `log_folder`, that is not
/// there yet.
std::string profile_planes_path(const std::string &log_folder);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_PROFILE_PLANES_H_
