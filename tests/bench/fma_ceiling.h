// SPDX-License-Identifier: Apache-2.0
//
// The ceiling of f32 arithmetic: fused multiply-adds on registers alone, with the widest vectors of the machine. What a
// program that multiplies and adds can come near but not pass, short of algorithms that multiply less. Threads: any.
#ifndef TUTTI_TESTS_BENCH_FMA_CEILING_H_
#define TUTTI_TESTS_BENCH_FMA_CEILING_H_

#include <cstdint>

namespace tutti::testing {

/// Billions of operations (a multiply-add is two) per second: of one thread by its processor time, the best of several
/// stretches over `seconds`.
double fma_gflops(double seconds);

/// The same by the wall clock, of `threads` threads together over one stretch of `seconds`: falls when somebody else
/// uses the cores.
double fma_gflops_wall(int32_t threads, double seconds);

/// Name of the instruction set used.
const char *fma_target_name();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BENCH_FMA_CEILING_H_
