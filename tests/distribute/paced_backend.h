// SPDX-License-Identifier: Apache-2.0
//
// The reference backend as three backends of their own, "paced0" to "paced2", whose devices take as long as they are
// told for each row, on top of what the reference takes; two pieces that are under way on a device take their turns.
// They count what they are given, and fail, or end the process, when they are told to.
//
//   set_pace(1, 0, {.row_us = 100});
//   TUTTI_ASSIGN(BackendRef slow, open_paced(1, 1));
//
// Threads: every function is safe from any thread.
#ifndef TUTTI_TESTS_DISTRIBUTE_PACED_BACKEND_H_
#define TUTTI_TESTS_DISTRIBUTE_PACED_BACKEND_H_

#include <cstdint>

#include "backend/backend.h"
#include "base/status.h"

namespace tutti::testing {

struct Pace {
  double run_us = 0;  ///< of each run
  double row_us = 0;  ///< and of each row
  bool fails = false;
  bool kills = false;  ///< the process, as by kill -9
};

/// From now on, of a device of one of the backends; counts begin anew.
void set_pace(int32_t backend, int32_t device, Pace pace);
/// Rows that the device was given, and in how many runs.
int64_t paced_rows(int32_t backend, int32_t device);
int64_t paced_runs(int32_t backend, int32_t device);

/// An instance of one of the backends with so many devices.
impl::base::Result<impl::backend::BackendRef> open_paced(int32_t backend, int32_t devices);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_PACED_BACKEND_H_
