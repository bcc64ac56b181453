// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution/convolution_times.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "backend/cpu/convolution/convolution_timing.h"

namespace tutti::impl::backend::cpu {

using base::Status;

namespace {

constexpr double kSecondsToTime = 0.6e-3;
/// What takes longer is not tried but estimated.
constexpr double kMostSecondsToTime = 30e-3;
constexpr double kGuessedFlopsPerSecond = 150e9, kGuessedBytesPerSecond = 10e9;
constexpr double kGuessedReorder = 1e-10;
constexpr double kMaximumSeconds = 1e3;
/// What saves less time than this is not worth rounding for.
constexpr double kWorthRounding = 1.05;
/// Fewer positions than these say little about larger images: whatever is done once for a kernel outweighs the rest.
constexpr int64_t kLeastPositions = 256;
constexpr std::string_view kReorder = "reorder", kImage = "image";

double flops_of(const ConvolutionShape &s) {
  const auto positions = static_cast<double>(s.rows * s.out_height * s.out_width);
  const auto kernel = static_cast<double>(s.kernel_height * s.kernel_width * (s.in_channels / s.groups));
  return 2.0 * positions * kernel * static_cast<double>(s.out_channels);
}

double guessed_seconds(const ConvolutionShape &s) {
  const auto bytes = static_cast<double>(s.rows * (s.in_height * s.in_width * s.in_channels +
                                                   s.out_height * s.out_width * s.out_channels)) *
                     sizeof(float);
  return flops_of(s) / kGuessedFlopsPerSecond + bytes / kGuessedBytesPerSecond;
}

/// Everything about a question but the rows.
std::string question_name(const ConvolutionQuestion &q) {
  const ConvolutionShape &s = q.shape;
  return base::concat(name(q.pass), q.allows_bf16 ? " bf16" : "", " t", q.threads, " g", s.groups, " ", s.in_channels,
                      "x", s.in_height, "x", s.in_width, ">", s.out_channels, "x", s.out_height, "x", s.out_width, " k",
                      s.kernel_height, "x", s.kernel_width, " s", s.stride[0], "x", s.stride[1], " d", s.dilation[0],
                      "x", s.dilation[1], " p", s.pad_low[0], ",", s.pad_low[1], ",", s.pad_high[0], ",",
                      s.pad_high[1]);
}

std::string file_key(int64_t rows, const std::string &question) { return base::concat("n", rows, " ", question); }

/// The rows of a key and the rest of it; nothing if it is no such key.
std::optional<std::pair<int64_t, std::string>> split_key(const std::string &key) {
  const size_t space = key.find(' ');
  int64_t rows = 0;
  if (space == std::string::npos || space < 2 || key[0] != 'n') return std::nullopt;
  const auto [end, error] = std::from_chars(key.data() + 1, key.data() + space, rows);
  if (error != std::errc() || end != key.data() + space || rows < 1) return std::nullopt;
  return std::pair(rows, key.substr(space + 1));
}

std::vector<ConvolutionCandidate> candidates_of(const ConvolutionQuestion &question, int64_t rows) {
  ConvolutionShape shape = question.shape;
  shape.rows = rows;
  return convolution_candidates(shape, question.pass, TUTTI_LEVEL_FAST, question.threads, question.allows_bf16);
}

bool covers(const TimesByCandidate &times, const std::vector<ConvolutionCandidate> &candidates) {
  return std::all_of(candidates.begin(), candidates.end(), [&](const ConvolutionCandidate &candidate) {
    return times.find(label(candidate)) != times.end();
  });
}

/// By the number of operations; a kernel becomes four times as large when it is transformed.
RunTime estimated(const ConvolutionCandidate &candidate) {
  const ConvolutionShape &s = candidate.request.shape;
  const double per_rows = flops_of(s) / candidate.family->rule_flops_per_second;
  if (!candidate.family->transforms_kernels) return {per_rows, 0};
  const auto kernel = static_cast<double>(s.kernel_height * s.kernel_width * s.in_channels * s.out_channels);
  const double fixed = 5 * sizeof(float) * kernel / kGuessedBytesPerSecond;
  return {per_rows + fixed, fixed};
}

/// For what there is a plan.
TimesByCandidate estimate(const std::vector<ConvolutionCandidate> &candidates) {
  TimesByCandidate times;
  bool found = false;
  for (const ConvolutionCandidate &candidate : candidates) {
    std::optional<RunTime> &time = times[label(candidate)];
    if (found && candidate.family->is_last_resort) continue;
    if (!candidate.family->make(candidate.request).ok()) continue;
    time = estimated(candidate);
    found = true;
  }
  return times;
}

/// What does not grow with the rows, from a second measurement with other rows.
double fixed_part(const ConvolutionCandidate &candidate, double seconds, TimingMemory &memory) {
  constexpr double kMost = 0.9;
  ConvolutionCandidate other = candidate;
  const int64_t rows = candidate.request.shape.rows;
  other.request.shape.rows = rows > 1 ? rows / 2 : 2;
  const std::optional<double> other_seconds = time_candidate(other, kMaximumSeconds, memory);
  if (!other_seconds.has_value()) return 0;
  const auto a = static_cast<double>(rows), b = static_cast<double>(other.request.shape.rows);
  return std::clamp((*other_seconds * a - seconds * b) / (a - b), 0.0, kMost * seconds);
}

}  // namespace

int64_t rows_to_time(const ConvolutionShape &shape) {
  ConvolutionShape row = shape;
  row.rows = 1;
  const int64_t positions = std::max<int64_t>(1, shape.out_height * shape.out_width);
  const double wanted = std::max(kSecondsToTime / guessed_seconds(row),
                                 static_cast<double>(kLeastPositions) / static_cast<double>(positions));
  int64_t rows = 1;
  while (2 * rows <= shape.rows && static_cast<double>(rows) < wanted)
    rows *= 2;
  return rows;
}

ConvolutionTimes &ConvolutionTimes::of_process() {
  static ConvolutionTimes *const table = new ConvolutionTimes;
  return *table;
}

void ConvolutionTimes::load(const PlanCache &cache, const Log &log) {
  TimesByShape times = cache.load_once(loaded_, log);
  for (auto &[key, candidates] : times) {
    if (key == kReorder) {
      const auto seconds = candidates.find(kImage);
      if (seconds != candidates.end() && reorder_seconds_per_byte_ == 0) {
        reorder_seconds_per_byte_ = seconds->second.value_or(RunTime()).seconds;
      }
    } else if (const auto rows = split_key(key)) {
      table_[rows->second].try_emplace(rows->first, std::move(candidates));
    }
  }
}

void ConvolutionTimes::time(const ConvolutionQuestion &question, TimingMemory &memory) {
  TimesByCandidate times;
  double best = kMaximumSeconds;
  const int64_t rows = rows_to_time(question.shape);
  for (const ConvolutionCandidate &candidate : candidates_of(question, rows)) {
    std::optional<RunTime> &time = times[label(candidate)];
    if (best < kMaximumSeconds && candidate.family->is_last_resort) continue;
    const std::optional<double> seconds = time_candidate(candidate, best, memory);
    if (!seconds.has_value()) continue;
    const bool has_fixed_part =
        candidate.family->transforms_kernels &&
        !(candidate.family->rounds_factors && question.pass == ConvolutionPass::kernel_gradient);
    time = RunTime{*seconds, has_fixed_part ? fixed_part(candidate, *seconds, memory) : 0};
    best = std::min(best, *seconds);
  }
  table_[question_name(question)][rows] = std::move(times);
  ++measured_;
}

bool ConvolutionTimes::is_known(const ConvolutionQuestion &question, int64_t rows) const {
  const auto known = table_.find(question_name(question));
  if (known == table_.end()) return false;
  const auto exact = known->second.find(rows);
  return exact != known->second.end() && covers(exact->second, candidates_of(question, rows));
}

void ConvolutionTimes::measure(std::span<const ConvolutionQuestion> questions, const PlanCache &cache, const Log &log) {
  const std::lock_guard lock(mutex_);
  load(cache, log);
  std::map<std::string, ConvolutionQuestion> missing;  // by key, each once
  double largest_known = 0;
  for (const ConvolutionQuestion &question : questions) {
    const int64_t rows = rows_to_time(question.shape);
    if (is_known(question, rows)) {
      largest_known = std::max(largest_known, flops_of(question.shape));
      continue;
    }
    ConvolutionShape timed = question.shape;
    timed.rows = rows;
    if (guessed_seconds(timed) < kMostSecondsToTime) missing.emplace(file_key(rows, question_name(question)), question);
  }
  if (missing.empty()) return;
  std::vector<std::pair<std::string, ConvolutionQuestion>> largest(missing.begin(), missing.end());
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto &a, const auto &b) { return flops_of(a.second.shape) > flops_of(b.second.shape); });
  const bool resumes = largest_known >= flops_of(largest.front().second.shape);
  TimingMemory memory;
  TimesByShape fresh;
  const double start = thread_seconds();
  if (reorder_seconds_per_byte_ == 0) reorder_seconds_per_byte_ = time_reorder(memory);
  fresh[std::string(kReorder)][std::string(kImage)] = RunTime{reorder_seconds_per_byte_, 0};
  for (const auto &[key, question] : largest) {
    const double budget = resumes ? kResumedBudgetSeconds : question.allows_bf16 ? kBf16BudgetSeconds : kBudgetSeconds;
    if (thread_seconds() - start > budget) break;
    time(question, memory);
    fresh[key] = table_[question_name(question)][rows_to_time(question.shape)];
  }
  const Status stored = cache.store(fresh);
  if (!stored.ok()) log(base::concat("the plan cache is not written: ", stored.message()));
}

const TimesByCandidate &ConvolutionTimes::known(const ConvolutionQuestion &question,
                                                const std::vector<ConvolutionCandidate> &candidates, int64_t rows) {
  std::map<int64_t, TimesByCandidate> &by_rows = table_[question_name(question)];
  const auto exact = by_rows.find(rows);
  if (exact != by_rows.end() && covers(exact->second, candidates)) return exact->second;
  const TimesByCandidate *nearest = nullptr;
  double distance = 0, factor = 1;
  for (const auto &[other, times] : by_rows) {
    const double ratio = static_cast<double>(rows) / static_cast<double>(other);
    const double far = std::fabs(std::log(ratio));
    if ((nearest != nullptr && far >= distance) || !covers(times, candidates)) continue;
    nearest = &times;
    distance = far;
    factor = ratio;
  }
  TimesByCandidate times = nearest != nullptr ? *nearest : estimate(candidates);
  for (auto &[label, time] : times) {
    if (time.has_value() && nearest != nullptr) time = time->scaled(factor);
  }
  return by_rows[rows] = std::move(times);
}

std::vector<TimedCandidate> ConvolutionTimes::of(const ConvolutionQuestion &question) {
  const std::lock_guard lock(mutex_);
  const int64_t rows = rows_to_time(question.shape);
  const TimesByCandidate &times = known(question, candidates_of(question, rows), rows);
  const double factor = static_cast<double>(question.shape.rows) / static_cast<double>(rows);
  std::vector<TimedCandidate> list;
  for (ConvolutionCandidate &candidate : candidates_of(question, question.shape.rows)) {
    const auto found = times.find(label(candidate));
    if (found == times.end() || !found->second.has_value()) continue;
    const double worth = candidate.family->rounds_factors ? kWorthRounding : 1;
    list.push_back({std::move(candidate), worth * found->second->scaled(factor).seconds});
  }
  return list;
}

double ConvolutionTimes::reorder_seconds_per_byte() {
  const std::lock_guard lock(mutex_);
  if (reorder_seconds_per_byte_ == 0) reorder_seconds_per_byte_ = kGuessedReorder;
  return reorder_seconds_per_byte_;
}

int64_t ConvolutionTimes::measured_count() {
  const std::lock_guard lock(mutex_);
  return measured_;
}

void ConvolutionTimes::forget() {
  const std::lock_guard lock(mutex_);
  table_.clear();
  loaded_.clear();
  reorder_seconds_per_byte_ = 0;
  measured_ = 0;
}

}  // namespace tutti::impl::backend::cpu
