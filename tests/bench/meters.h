// SPDX-License-Identifier: Apache-2.0
//
// What a run costs this process: seconds of processor time over all its threads, seconds on the wall, the most memory
// it ever held. Processor time hardly sees what else the machine does; with more than one thread it says nothing about
// how long one waits. Threads: any.
#ifndef TUTTI_TESTS_BENCH_METERS_H_
#define TUTTI_TESTS_BENCH_METERS_H_

#include <sys/resource.h>

#include <cstdint>
#include <ctime>

namespace tutti::testing {

inline double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double cpu_seconds() { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }
inline double wall_seconds() { return clock_seconds(CLOCK_MONOTONIC); }

inline int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BENCH_METERS_H_
