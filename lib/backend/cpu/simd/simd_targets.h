// SPDX-License-Identifier: Apache-2.0
//
// Which instruction sets the vector kernels are compiled for. Every simd_*.cc includes this before Highway: it is
// compiled once per target and the best one for the machine is chosen when the program runs. AVX-512, AVX2 and the
// x86-64 baseline cover what is in use; the sets between them, and those beyond AVX-512, whose bits Highway puts below
// its own, add size (half a megabyte each) and no speed here.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_TARGETS_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_TARGETS_H_

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | (HWY_AVX3 - 1))

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_TARGETS_H_
