// SPDX-License-Identifier: Apache-2.0
//
// Counts what a piece of code allocates: calls of operator new on any thread, and of base's aligned memory. A program
// that uses it links allocation_probe_dep, which replaces operator new for the whole program.
//
//   const AllocationProbe probe;
//   run_the_step();
//   assert_int_equal(probe.count(), 0);
#ifndef TUTTI_TESTS_BASE_ALLOCATION_PROBE_H_
#define TUTTI_TESTS_BASE_ALLOCATION_PROBE_H_

#include <cstdint>

#include "base/memory.h"

namespace tutti::testing {

/// Calls of operator new since the program began.
int64_t operator_new_calls();

class AllocationProbe {
 public:
  AllocationProbe() : before_(now()) {}
  /// Allocations since the probe was made.
  int64_t count() const { return now() - before_; }

 private:
  static int64_t now() { return operator_new_calls() + impl::base::allocation_count().calls; }

  int64_t before_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BASE_ALLOCATION_PROBE_H_
