// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/algorithm_trials.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "backend/gpu/runtime/device_times.h"
#include "backend/gpu/runtime/launch_gate.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

constexpr char kTrying[] = "trying algorithms";
constexpr int kRounds = 3;
/// What is so much slower in its first round needs no others.
constexpr double kHopeless = 1.5;

/// The fastest by shape; where nothing could be measured, the library's first.
using Answers = std::map<std::string, std::string>;

/// What this process knows, by the cache that keeps it.
struct TrialTable {
  std::mutex mutex;
  std::map<std::string, Answers> by_cache;
  std::set<std::string> loaded;
};

TrialTable &trial_table() {
  static auto *const made = new TrialTable;
  return *made;
}

std::optional<std::string> fastest_of(const TimesByCandidate &times) {
  const std::string *best = nullptr;
  double least = 0;
  for (const auto &[name, time] : times) {
    if (!time || (best != nullptr && time->seconds >= least)) continue;
    best = &name;
    least = time->seconds;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

AlgorithmTrials::AlgorithmTrials(PlanCache cache, TrialMemory memory, Log log)
    : cache_(std::move(cache)), memory_functions_(std::move(memory)), log_(std::move(log)) {
  TrialTable &known = trial_table();
  const std::lock_guard guard(known.mutex);
  for (const auto &[shape, times] : cache_.load_once(known.loaded, log_)) {
    const std::optional<std::string> best = fastest_of(times);
    if (best) known.by_cache[cache_.path()].try_emplace(shape, *best);
  }
}

AlgorithmTrials::~AlgorithmTrials() {
  const BetweenLaunches section;
  if (begin_ != nullptr) (void)gpuEventDestroy(begin_);
  if (end_ != nullptr) (void)gpuEventDestroy(end_);
  if (stream_ != nullptr) (void)gpuStreamDestroy(stream_);
  if (memory_ != nullptr) memory_functions_.release(memory_, bytes_);
}

void AlgorithmTrials::forget() {
  TrialTable &known = trial_table();
  const std::lock_guard guard(known.mutex);
  known.by_cache.clear();
  known.loaded.clear();
}

std::optional<std::string> AlgorithmTrials::known(const std::string &shape) const {
  TrialTable &known = trial_table();
  const std::lock_guard guard(known.mutex);
  const Answers &answers = known.by_cache[cache_.path()];
  const auto found = answers.find(shape);
  return found == answers.end() ? std::nullopt : std::optional(found->second);
}

bool AlgorithmTrials::may_measure() const { return spent_ < kBudgetSeconds; }

Status AlgorithmTrials::prepare(int64_t bytes) {
  if (stream_ == nullptr) {
    TUTTI_TRY(status_of(gpuStreamCreateWithFlags(&stream_, gpuStreamNonBlocking), kTrying));
    TUTTI_TRY(status_of(gpuEventCreateWithFlags(&begin_, 0), kTrying));
    TUTTI_TRY(status_of(gpuEventCreateWithFlags(&end_, 0), kTrying));
  }
  if (bytes_ < bytes) {
    if (memory_ != nullptr) memory_functions_.release(memory_, bytes_);
    memory_ = nullptr;
    bytes_ = 0;
    TUTTI_ASSIGN(memory_, memory_functions_.allocate(bytes));
    bytes_ = bytes;
  }
  return status_of(gpuMemsetAsync(memory_, 0, static_cast<size_t>(bytes), stream_), kTrying);
}

Result<double> AlgorithmTrials::measure_once(size_t candidate, const Issue &issue) {
  TUTTI_TRY(status_of(gpuEventRecord(begin_, stream_), kTrying));
  TUTTI_TRY(issue(candidate, static_cast<char *>(memory_), stream_));
  TUTTI_TRY(status_of(gpuEventRecord(end_, stream_), kTrying));
  TUTTI_TRY(status_of(gpuStreamSynchronize(stream_), kTrying));
  TUTTI_ASSIGN(const int64_t nanoseconds, nanoseconds_between(begin_, end_));
  // A clock that does not tick would make a time that no file of times may hold.
  return 1e-9 * static_cast<double>(std::max<int64_t>(nanoseconds, 1));
}

Result<double> AlgorithmTrials::measure(size_t candidate, const Issue &issue, double best) {
  // The first call loads code.
  TUTTI_TRY(measure_once(candidate, issue));
  double least = 0;
  for (int round = 0; round < kRounds; ++round) {
    TUTTI_ASSIGN(const double seconds, measure_once(candidate, issue));
    least = round == 0 ? seconds : std::min(least, seconds);
    if (best > 0 && least > kHopeless * best) break;
  }
  return least;
}

TimesByCandidate AlgorithmTrials::try_all(std::span<const std::string> names, int64_t bytes, const Issue &issue) {
  const double start = now();
  const Status ready = prepare(bytes);
  // No memory is left for a trial: that is no reason to fail.
  if (!ready.ok()) log_(base::concat("algorithms are not tried: ", ready.to_string()));
  TimesByCandidate times;
  double best = 0;
  for (size_t i = 0; ready.ok() && i < names.size(); ++i) {
    const Result<double> seconds = measure(i, issue, best);
    times[names[i]] = seconds.ok() ? std::optional(RunTime{*seconds, 0}) : std::nullopt;
    if (seconds.ok()) best = best == 0 ? *seconds : std::min(best, *seconds);
  }
  spent_ += now() - start;
  return times;
}

size_t AlgorithmTrials::fastest(const std::string &shape, std::span<const std::string> names, int64_t bytes,
                                const Issue &issue) {
  TrialTable &known = trial_table();
  const std::lock_guard guard(known.mutex);
  Answers &answers = known.by_cache[cache_.path()];
  if (answers.count(shape) == 0) {
    const TimesByCandidate times =
        names.size() > 1 && may_measure() ? try_all(names, bytes, issue) : TimesByCandidate();
    const std::optional<std::string> best = fastest_of(times);
    if (best) fresh_[shape] = times;
    answers[shape] = best.value_or(names[0]);
  }
  const auto found = std::find(names.begin(), names.end(), answers[shape]);
  return found == names.end() ? 0 : static_cast<size_t>(found - names.begin());
}

void AlgorithmTrials::remember() {
  if (fresh_.empty()) return;
  const Status stored = cache_.store(fresh_);
  if (!stored.ok()) log_(base::concat("the plan cache is not written: ", stored.message()));
}

}  // namespace tutti::impl::backend::gpu
