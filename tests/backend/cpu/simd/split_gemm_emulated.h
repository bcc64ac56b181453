// SPDX-License-Identifier: Apache-2.0
//
// The products of simd_split_gemm.h on a matrix unit that is emulated with loops, so that they are tested on every
// processor with AVX-512.
#ifndef TUTTI_TESTS_BACKEND_CPU_SPLIT_GEMM_EMULATED_H_
#define TUTTI_TESTS_BACKEND_CPU_SPLIT_GEMM_EMULATED_H_

#include <cstdint>

#include "backend/cpu/simd/simd_split_gemm.h"
#include "backend/cpu/simd/simd_update.h"

namespace tutti::impl::backend::cpu {

/// Are there vectors that the kernels are made for?
bool has_emulated_split();

int64_t emulated_split_scratch_floats(const SplitShape &shape);
/// Rows that are done: those above a factor that cannot be split, or none, where there is one.
int64_t emulated_split_rows(const SplitShape &shape, const float *a, const float *b, float *c,
                            const GemmEpilogue &epilogue, float *scratch);

int64_t emulated_split_update_scratch_floats(const GemmShape &shape);
/// False where a factor cannot be split.
bool emulated_split_gemm_update(const GemmShape &shape, const float *a, const float *b, const UpdateRule &rule,
                                const UpdateArrays &arrays, float *scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_TESTS_BACKEND_CPU_SPLIT_GEMM_EMULATED_H_
