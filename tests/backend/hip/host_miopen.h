// SPDX-License-Identifier: Apache-2.0
//
// In place of MIOpen: the functions of its header, which do on the host, at once, what that promises. Convolutions of
// images NHWC in plain loops, in double, rounded once; of f32, f16 and bf16. What the header does not allow, and what
// no program of tutti's should do, is BadParm and told (`misuse`).
#ifndef TUTTI_TESTS_BACKEND_HIP_HOST_MIOPEN_H_
#define TUTTI_TESTS_BACKEND_HIP_HOST_MIOPEN_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/hip/miopen.h"

namespace tutti::testing {

/// What it offers for every convolution.
struct HostSolution {
  uint64_t id = 0;
  double milliseconds = 1;  ///< that it takes
  size_t workspace = 0;
  miopenConvAlgorithm_t algorithm = miopenConvolutionAlgoImplicitGEMM;
  bool repeats = true;  ///< does it give the same bits every time?
  miopenStatus_t compiling = miopenStatusSuccess, running = miopenStatusSuccess;
};

struct HostMiopen {
  // What it was asked for.
  int handles = 0, descriptors = 0;  ///< that were not destroyed
  int calls = 0, compiled = 0, streams_set = 0;
  int strict_calls = 0;   ///< while the thread may not load modules though it captures
  int late_compiles = 0;  ///< calls of what was not compiled for the handle
  std::string misuse;     ///< the first
  std::set<std::pair<miopenHandle_t, uint64_t>> ready;
  // What it answers.
  bool is_missing = false;
  std::vector<HostSolution> solutions;
  miopenStatus_t asked = miopenStatusSuccess;
};

/// The one there is.
HostMiopen &host_miopen();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_HIP_HOST_MIOPEN_H_
