// SPDX-License-Identifier: Apache-2.0
//
// Libraries of kernels on the emulated GPU, where the environment has TUTTI_EMULATED_LIBRARY: "sums" has products that
// add up the rows of a factor, too (product_sums.h), and convolutions with the sums of what they make, in f32
// (norm_sources.h); "gelu" has these, and products with the approximate gelu behind them that store what it is computed
// of (product_epilogues.h); "relu" has products with relu behind them (algorithm_probes.h), and so has "relu without
// nan", whose relu makes numbers of NaNs; "even padding" has convolutions (emulated_convolution.h), and so has "folded
// strides", which folds them (folded_stride.h); and nothing else. "missing" is not there, which shows when it is asked
// for kernels.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_LIBRARY_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_LIBRARY_H_

#include <memory>

#include "backend/gpu/library/library.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu::platform {

/// Null where there is none.
base::Result<std::unique_ptr<Library>> open_emulated_library();

}  // namespace tutti::impl::backend::gpu::platform

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_LIBRARY_H_
