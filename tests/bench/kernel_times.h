// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a case goes: each kernel by name, and what is left for the executor. Taken from the trace spans of
// a program, whose own cost is measured and taken off; on GPUs those of the device's clock. Threads: the one that runs
// the case.
#ifndef TUTTI_TESTS_BENCH_KERNEL_TIMES_H_
#define TUTTI_TESTS_BENCH_KERNEL_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "step_case.h"

namespace tutti::testing {

struct KernelTime {
  std::string name;
  double ms = 0;      ///< of one step
  int64_t bytes = 0;  ///< that it reads and writes at least, each operand once, where the backend says so
};

/// Every kernel of a step, the slowest first; medians over several steps.
impl::base::Result<std::vector<KernelTime>> kernel_times(const std::string &backend, const CaseSpec &spec);

/// What a step costs beside its kernels.
struct Overhead {
  double step_us = 0;     ///< a step, untraced
  double kernels_us = 0;  ///< of it in kernels
  int64_t kernel_calls = 0;

  double executor_us() const { return step_us - kernels_us; }
};

/// Medians over `rounds` rounds of many steps.
impl::base::Result<Overhead> executor_overhead(const std::string &backend, const CaseSpec &spec, int rounds = 21);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BENCH_KERNEL_TIMES_H_
