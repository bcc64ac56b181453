// SPDX-License-Identifier: Apache-2.0
//
// Which of a library's algorithms give NaN where all that they read is NaN, for libraries that do not document what
// becomes of one: what the process or the plan cache remembers, else what a call on the device says. At any level.
//
//   AlgorithmProbes probes(cache, memory, log);
//   const bool keeps = probes.keeps_nan({shape, algorithm, bytes, result_at, result_bytes, DType::bf16,
//                                        [&](char *memory, gpuStream_t stream) { return issue(memory, stream); }});
//   probes.remember();                                           // all that was found out, to the plan cache
//
// An answer once given stays, so that all replicas of a process take the same algorithm. It is no where the call could
// not be made: for want of memory, say. That is forgotten with the process.
//
// Threads: objects are used by one thread each; of several, one probes at a time. Never while that thread captures.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_ALGORITHM_PROBES_H_
#define TUTTI_BACKEND_GPU_LIBRARY_ALGORITHM_PROBES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/runtime/runtime.h"
#include "backend/plan_cache.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

/// One call of an algorithm. Its memory begins as bytes of ones, a NaN in each type of floating point, but for the
/// result, which begins as zeros.
struct NanProbe {
  std::string shape;      ///< of what, with the library's version
  std::string algorithm;  ///< which of those for the shape
  int64_t bytes = 0;      ///< of all operands, the result and scratch memory among them
  int64_t result_at = 0;  ///< bytes from the beginning
  int64_t result_bytes = 0;
  tensor::DType result = tensor::DType::f32;  ///< floating point; every element is written
  /// Puts the call on the stream; `memory` is 256-byte aligned.
  std::function<base::Status(char *memory, gpuStream_t stream)> issue;
};

class AlgorithmProbes {
 public:
  using Log = std::function<void(const std::string &line)>;

  /// Of a result, so many bytes of the beginning and of the end are looked at: tiles of every kind, whole ones and
  /// those at each edge, lie there.
  static constexpr int64_t kMostBytesOfAnEnd = int64_t{8} << 20;

  AlgorithmProbes(PlanCache cache, TrialMemory memory, Log log);
  ~AlgorithmProbes();
  AlgorithmProbes(const AlgorithmProbes &) = delete;
  AlgorithmProbes &operator=(const AlgorithmProbes &) = delete;

  bool keeps_nan(const NanProbe &probe);
  /// Writes what was found out to the plan cache. What goes wrong is logged.
  void remember();

  /// Calls that were made by this object.
  int64_t probed_count() const { return probed_count_; }
  /// For tests: as in a new process.
  static void forget();

 private:
  base::Result<bool> run(const NanProbe &probe);
  base::Result<bool> run_in(const NanProbe &probe, char *memory);

  const PlanCache cache_;
  const TrialMemory memory_functions_;
  const Log log_;
  TimesByShape fresh_;
  int64_t probed_count_ = 0;
  gpuStream_t stream_ = nullptr;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_ALGORITHM_PROBES_H_
