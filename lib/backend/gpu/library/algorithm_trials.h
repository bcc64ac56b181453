// SPDX-License-Identifier: Apache-2.0
//
// Which of a library's algorithms is fastest for a shape on this kind of GPU: what the process or the plan cache
// remembers, else what a trial on the device says. Of one compilation, at level `fast`.
//
//   AlgorithmTrials trials(cache, memory, log);
//   const std::optional<std::string> known = trials.known(shape);       // "engine 38", or nothing
//   const size_t best = trials.fastest(shape, names, bytes, [&](size_t candidate, char *memory, gpuStream_t stream) {
//     return issue(candidate, memory, stream);                           // puts one call on the stream
//   });
//   trials.remember();                                                   // all that was measured, to the plan cache
//
// An answer once given stays, so that all replicas of a process take the same algorithm. Trials of one compilation
// share a budget of time; what is met after it is spent is not measured, and the library's own estimate stands.
//
// Threads: objects are used by one thread each; of several, one measures at a time.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_ALGORITHM_TRIALS_H_
#define TUTTI_BACKEND_GPU_LIBRARY_ALGORITHM_TRIALS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "backend/gpu/runtime/runtime.h"
#include "backend/plan_cache.h"
#include "base/memory.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// Device memory for operands whose contents do not matter.
struct TrialMemory {
  std::function<base::Result<void *>(int64_t bytes)> allocate;
  std::function<void(void *memory, int64_t bytes)> release;
};

/// Where operands of so many bytes lie in the memory of a trial, one behind the other, each aligned to 256; the end.
template <size_t count>
std::array<int64_t, count + 1> trial_offsets(const std::array<int64_t, count> &bytes) {
  std::array<int64_t, count + 1> offsets{};
  for (size_t i = 0; i < count; ++i)
    offsets[i + 1] = offsets[i] + static_cast<int64_t>(base::round_up(static_cast<size_t>(bytes[i]), 256));
  return offsets;
}

class AlgorithmTrials {
 public:
  /// One call of a candidate on operands in `memory`, 256-byte aligned.
  using Issue = std::function<base::Status(size_t candidate, char *memory, gpuStream_t stream)>;
  using Log = std::function<void(const std::string &line)>;

  /// Seconds that the trials of one compilation may take, those of the last shape not counted.
  static constexpr double kBudgetSeconds = 60;
  /// Candidates of one shape that are worth a trial.
  static constexpr size_t kMostCandidates = 8;

  AlgorithmTrials(PlanCache cache, TrialMemory memory, Log log);
  ~AlgorithmTrials();
  AlgorithmTrials(const AlgorithmTrials &) = delete;
  AlgorithmTrials &operator=(const AlgorithmTrials &) = delete;

  /// The answer that was given for a shape before; `shape` names the library's version, too.
  std::optional<std::string> known(const std::string &shape) const;
  /// Would fastest() measure? Not when the budget is spent.
  bool may_measure() const;
  /// Takes from the budget what candidates cost before they could be tried.
  void spend(double seconds) { spent_ += seconds; }
  /// The position of the fastest of `names` with `bytes` of operands, scratch memory included; 0, the library's first
  /// choice, where nothing can be measured.
  size_t fastest(const std::string &shape, std::span<const std::string> names, int64_t bytes, const Issue &issue);
  /// Writes what was measured to the plan cache. What goes wrong is logged.
  void remember();

  /// Shapes that were measured by this object.
  int64_t measured_count() const { return static_cast<int64_t>(fresh_.size()); }
  /// For tests: as in a new process.
  static void forget();

 private:
  base::Status prepare(int64_t bytes);
  TimesByCandidate try_all(std::span<const std::string> names, int64_t bytes, const Issue &issue);
  /// Seconds of one call, the least of a few; an end is put to what is far slower than `best`.
  base::Result<double> measure(size_t candidate, const Issue &issue, double best);
  base::Result<double> measure_once(size_t candidate, const Issue &issue);

  const PlanCache cache_;
  const TrialMemory memory_functions_;
  const Log log_;
  TimesByShape fresh_;
  double spent_ = 0;
  void *memory_ = nullptr;
  int64_t bytes_ = 0;
  gpuStream_t stream_ = nullptr;
  gpuEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_ALGORITHM_TRIALS_H_
