// SPDX-License-Identifier: Apache-2.0
//
// In place of the CUDA runtime, of kernels and of the opening of libraries, as far as the code that calls cuBLASLt and
// cuDNN meets them: device memory is the host's, streams do everything at once, and time passes only in the libraries
// (HostCudnn, HostCublasLt) and in elementwise work and reductions.
#ifndef TUTTI_TESTS_BACKEND_CUDA_HOST_RUNTIME_H_
#define TUTTI_TESTS_BACKEND_CUDA_HOST_RUNTIME_H_

#include <set>

namespace tutti::testing {

struct HostRuntime {
  int current_device = 0;
  bool has_libraries = true;
  int objects = 0;                   ///< streams and events that were not destroyed
  std::set<const void *> streams;    ///< those of them that are streams
  double milliseconds = 0;           ///< that passed in kernels
  double elements_milliseconds = 0;  ///< of one launch of elementwise work
  double reduce_milliseconds = 0;    ///< of one reduction
};

/// The one there is.
HostRuntime &host_runtime();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CUDA_HOST_RUNTIME_H_
