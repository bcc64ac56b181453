// SPDX-License-Identifier: Apache-2.0
//
// In place of cuDNN: its graph interface for convolutions of images in host memory and what follows them, and for
// attention, done at once and plainly (host_cudnn_graph.h). It proposes three engines: 7 uses tensor cores, 8 adds in
// any order, 9 has no note. Each needs 512 bytes. For graphs of several operations they are 27, 28 and 29 and need 768.
#ifndef TUTTI_TESTS_BACKEND_CUDA_HOST_CUDNN_H_
#define TUTTI_TESTS_BACKEND_CUDA_HOST_CUDNN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "backend/cuda/dynamic_library.h"

namespace tutti::testing {

struct HostCudnn {
  impl::backend::cuda::Cudnn functions;
  int descriptors = 0, calls = 0;   ///< descriptors that were not destroyed; plans that were executed
  int compiled = 0, read = 0;       ///< plans of several operations: made, read from text
  double compile_seconds = 0;       ///< that each of them takes to be made
  cudaStream_t stream = nullptr;    ///< of the handle
  int asked_lost_streams = 0;       ///< plans that were made while the handle had a stream that was gone
  size_t version = 91900;           ///< that it says it has
  bool supports = true;             ///< false: no plan can be made
  bool has_only_fallbacks = false;  ///< true: heuristics A and B propose nothing
  std::set<int32_t> refused_modes;  ///< of pointwise operations that no engine takes
  std::set<int32_t> summed_types = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF};  ///< of what channels are added up
  size_t operations = 0;                                                 ///< of the graph that was executed last
  double milliseconds = 0;                                               ///< that passed in it
  std::map<int64_t, double> engine_milliseconds;                         ///< of one call, by engine
  double stride_milliseconds = 0;                                        ///< more, of a convolution with a stride
};

/// The one there is.
HostCudnn &host_cudnn();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CUDA_HOST_CUDNN_H_
