// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/algorithm_probes.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "backend/gpu/runtime/launch_gate.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

constexpr char kProbing[] = "checking how an algorithm handles NaN";

/// What this process knows, by the cache that keeps it: how long the call of an algorithm took that keeps a NaN; none
/// where it does not.
struct ProbeTable {
  std::mutex mutex;
  std::map<std::string, TimesByShape> by_cache;
  std::set<std::string> loaded;
  std::set<std::string> failed;
};

ProbeTable &probe_table() {
  static auto *const made = new ProbeTable;
  return *made;
}

/// A plan cache has the times of trials, too.
std::string entry_name(const NanProbe &probe) { return "nan: " + probe.shape; }

/// Whether every element, without its sign, exceeds infinity: NaNs alone do.
template <typename Bits>
bool all_exceed(const std::vector<char> &bytes, Bits infinity) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof(bits));
    if (static_cast<Bits>(bits & kMagnitude) <= infinity) return false;
  }
  return true;
}

bool all_are_nan(DType dtype, const std::vector<char> &bytes) {
  switch (dtype) {
    case DType::f64:
      return all_exceed<uint64_t>(bytes, 0x7ff0000000000000);
    case DType::f32:
      return all_exceed<uint32_t>(bytes, 0x7f800000);
    case DType::bf16:
      return all_exceed<uint16_t>(bytes, 0x7f80);
    case DType::f16:
      return all_exceed<uint16_t>(bytes, 0x7c00);
    default:
      return false;
  }
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

AlgorithmProbes::AlgorithmProbes(PlanCache cache, TrialMemory memory, Log log)
    : cache_(std::move(cache)), memory_functions_(std::move(memory)), log_(std::move(log)) {}

AlgorithmProbes::~AlgorithmProbes() {
  if (stream_ == nullptr) return;
  const BetweenLaunches section;
  (void)gpuStreamDestroy(stream_);
}

void AlgorithmProbes::forget() {
  ProbeTable &known = probe_table();
  const std::lock_guard guard(known.mutex);
  known.by_cache.clear();
  known.loaded.clear();
  known.failed.clear();
}

bool AlgorithmProbes::keeps_nan(const NanProbe &probe) {
  ProbeTable &known = probe_table();
  const std::lock_guard guard(known.mutex);
  TimesByShape &answers = known.by_cache[cache_.path()];
  answers.merge(cache_.load_once(known.loaded, log_));
  const std::string name = entry_name(probe), failure = base::concat(cache_.path(), "\n", name, "\n", probe.algorithm);
  const auto found = answers[name].find(probe.algorithm);
  if (found != answers[name].end()) return found->second.has_value();
  if (known.failed.count(failure) != 0) return false;
  const double start = seconds_now();
  const Result<bool> keeps = run(probe);
  if (!keeps.ok()) {
    known.failed.insert(failure);
    log_(base::concat(name, " ", probe.algorithm, ": the algorithm is not used: ", keeps.status().to_string()));
    return false;
  }
  answers[name][probe.algorithm] =
      *keeps ? std::optional(RunTime{std::max(seconds_now() - start, 1e-9), 0}) : std::nullopt;
  fresh_[name] = answers[name];
  return *keeps;
}

Result<bool> AlgorithmProbes::run(const NanProbe &probe) {
  if (stream_ == nullptr) TUTTI_TRY(status_of(gpuStreamCreateWithFlags(&stream_, gpuStreamNonBlocking), kProbing));
  TUTTI_ASSIGN(void *const memory, memory_functions_.allocate(probe.bytes));
  ++probed_count_;
  Result<bool> keeps = run_in(probe, static_cast<char *>(memory));
  // What was issued before something went wrong may still use it.
  if (!keeps.ok()) (void)gpuStreamSynchronize(stream_);
  memory_functions_.release(memory, probe.bytes);
  return keeps;
}

Result<bool> AlgorithmProbes::run_in(const NanProbe &probe, char *memory) {
  char *const result = memory + probe.result_at;
  TUTTI_TRY(status_of(gpuMemsetAsync(memory, 0xff, static_cast<size_t>(probe.bytes), stream_), kProbing));
  TUTTI_TRY(status_of(gpuMemsetAsync(result, 0, static_cast<size_t>(probe.result_bytes), stream_), kProbing));
  TUTTI_TRY(probe.issue(memory, stream_));
  const int64_t end_bytes = std::min(probe.result_bytes, kMostBytesOfAnEnd);
  std::vector<char> bytes(static_cast<size_t>(end_bytes));
  for (const int64_t at : {int64_t{0}, probe.result_bytes - end_bytes}) {
    TUTTI_TRY(
        status_of(gpuMemcpyAsync(bytes.data(), result + at, bytes.size(), gpuMemcpyDeviceToHost, stream_), kProbing));
    TUTTI_TRY(status_of(gpuStreamSynchronize(stream_), kProbing));
    if (!all_are_nan(probe.result, bytes)) return false;
  }
  return true;
}

void AlgorithmProbes::remember() {
  if (fresh_.empty()) return;
  const Status stored = cache_.store(fresh_);
  if (!stored.ok()) log_(base::concat("the plan cache is not written: ", stored.message()));
}

}  // namespace tutti::impl::backend::gpu
