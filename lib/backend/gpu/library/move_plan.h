// SPDX-License-Identifier: Apache-2.0
//
// Moves with as few axes and as wide elements as they allow: the same bytes come to the same places. Done when a move
// is launched, for pointers decide how wide its words may be.
//
//   StridedRead read = ...;                     // of a node's shapes
//   launch_strided_read(simplified(read), stream);
//
// Threads: pure functions.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_MOVE_PLAN_H_
#define TUTTI_BACKEND_GPU_LIBRARY_MOVE_PLAN_H_

#include "backend/gpu/device/device_move.h"

namespace tutti::impl::backend::gpu {

/// Axes of one element are left out, those that lie one within the other in the source are merged, and runs become
/// words.
StridedRead simplified(StridedRead read);
Placement simplified(Placement placement);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_MOVE_PLAN_H_
