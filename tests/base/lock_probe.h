// SPDX-License-Identifier: Apache-2.0
//
// Counts the locks taken and the heap blocks asked for by a piece of code, those of other libraries included: calls
// of pthread_mutex_lock, of the read-write lock's, and of malloc and its relatives, on any thread of the program. A
// program that uses it links lock_probe_dep, which replaces these functions of libc for the whole program.
//
//   const LockProbe probe;
//   run_the_step();
//   assert_int_equal(probe.locks(), 0);
//   assert_int_equal(probe.heap_calls(), 0);
//
// Sanitizers replace the same functions: there nothing is counted, and counts() says so.
#ifndef TUTTI_TESTS_BASE_LOCK_PROBE_H_
#define TUTTI_TESTS_BASE_LOCK_PROBE_H_

#include <cstdint>

namespace tutti::testing {

class LockProbe {
 public:
  LockProbe() : locks_(locks_now()), heap_calls_(heap_calls_now()) {}
  /// False where the program cannot count.
  static bool counts();
  /// Since the probe was made.
  int64_t locks() const { return locks_now() - locks_; }
  int64_t heap_calls() const { return heap_calls_now() - heap_calls_; }

  /// While it lives, heap calls of this thread do not count: they are another library's and cannot be helped.
  class Excuse {
   public:
    Excuse();
    ~Excuse();
    Excuse(const Excuse &) = delete;
    Excuse &operator=(const Excuse &) = delete;
  };

 private:
  static int64_t locks_now();
  static int64_t heap_calls_now();

  int64_t locks_, heap_calls_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BASE_LOCK_PROBE_H_
