// SPDX-License-Identifier: Apache-2.0
//
// What a trace says, in numbers: how busy each device was, what steps waited for, which layers cost how much. Counted
// is the time from the first to the last traced step, less what a full ring has forgotten.
//
//   {"seconds", "steps",
//    "devices":  [{"device", "utilisation", "idle", "kernels"}, ...],                        shares of the seconds
//    "replicas": [{"replica", "steps", "step_ms", "compute_ms", "input_ms", "communication_ms", "host_ms"}, ...],
//    "layers":   [{"layer", "forward_ms", "backward_ms", "update_ms", "share"}, ...],   of a step, the dearest first
//    "forgotten", "text"}
//
// Rows with spans of category "kernel" or "copy" are devices, rows with spans "step" are replicas; a processor is both,
// a replica "... on gpu:0" has a row beside that of its device. Steps of a replica are split into waits for input and
// communication, computing (work of the device, as far as it was not hidden behind waits) and the rest, the host's.
// Times of layers are those of kernels, summed over the devices and divided by the steps of all replicas. What one
// launch does for several layers (a GPU updates all variables at once) stands under the scope that they share, or under
// its op where they share none.
#ifndef TUTTI_ESTIMATOR_PROFILE_PROFILE_REPORT_H_
#define TUTTI_ESTIMATOR_PROFILE_PROFILE_REPORT_H_

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/trace.h"

namespace tutti::impl::estimator::profile {

enum class Phase { forward, backward, update };

/// Which layer a kernel works for, from the name of its span: that of a node, perhaps with the kernel's behind a space.
/// A layer is the scope of a node, or the node where it has none.
struct KernelPlace {
  std::string layer;
  Phase phase = Phase::forward;
};
KernelPlace place_of(std::string_view span_name);

base::Json profile_report(std::span<const base::Tracer::Row> rows);

}  // namespace tutti::impl::estimator::profile

#endif  // TUTTI_ESTIMATOR_PROFILE_PROFILE_REPORT_H_
