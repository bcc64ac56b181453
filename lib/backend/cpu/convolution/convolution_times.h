// SPDX-License-Identifier: Apache-2.0
//
// What convolutions take here: one table for the whole process, filled from the plan cache and by timing, each shape
// once, whatever devices and contexts there are. Level `fast` chooses by it; no other level looks.
//
//   ConvolutionTimes &table = ConvolutionTimes::of_process();
//   table.measure(questions, cache, log);                       // where layouts of state are planned
//   for (const TimedCandidate &one : table.of(question)) ...    // anywhere: never times anything
//
// Images are timed with as many rows as make a run of about half a millisecond; what a shape with more rows takes
// follows, a part that is the same for all rows being told apart where there is one. What has not been measured is
// taken from the nearest number of rows that has, or is an estimate from the number of operations; an answer once given
// stays, so that two compilations of one process agree.
//
// Threads: all functions may be called from any thread; who asks while another measures waits.
#ifndef TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_TIMES_H_
#define TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_TIMES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/convolution/convolution_choice.h"
#include "backend/plan_cache.h"

namespace tutti::impl::backend::cpu {

class TimingMemory;

/// A pass of a convolution, at level `fast`.
struct ConvolutionQuestion {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::forward;
  int32_t threads = 1;
  bool allows_bf16 = false;  ///< answers with and without this are kept apart
};

struct TimedCandidate {
  ConvolutionCandidate candidate;
  double seconds = 0;
};

class ConvolutionTimes {
 public:
  using Log = std::function<void(const std::string &line)>;

  /// Processor seconds that one call of measure may spend, and with the candidates that round as well.
  static constexpr double kBudgetSeconds = 1.0, kBf16BudgetSeconds = 3.6;
  /// The same where an earlier process has spent that, as the largest question is answered: what it did not get to is
  /// timed over several processes, none of which takes long to start.
  static constexpr double kResumedBudgetSeconds = 0.1;

  static ConvolutionTimes &of_process();

  /// Fills in what is missing, the largest first, while the budget lasts; reads the cache first and adds to it.
  void measure(std::span<const ConvolutionQuestion> questions, const PlanCache &cache, const Log &log);
  /// The candidates that there are, in the order of convolution_candidates, with the seconds of the whole shape.
  std::vector<TimedCandidate> of(const ConvolutionQuestion &question);
  /// Seconds for each byte of an image that changes its layout.
  double reorder_seconds_per_byte();
  /// Shapes that were timed in this process.
  int64_t measured_count();
  /// For tests: as in a new process.
  void forget();

 private:
  using ByRows = std::map<int64_t, TimesByCandidate>;

  void load(const PlanCache &cache, const Log &log);
  bool is_known(const ConvolutionQuestion &question, int64_t rows) const;
  void time(const ConvolutionQuestion &question, TimingMemory &memory);
  const TimesByCandidate &known(const ConvolutionQuestion &question,
                                const std::vector<ConvolutionCandidate> &candidates, int64_t rows);

  std::mutex mutex_;
  std::map<std::string, ByRows, std::less<>> table_;  // guarded by mutex_; by everything but the rows
  std::set<std::string> loaded_;                      // paths of caches
  double reorder_seconds_per_byte_ = 0;               // 0 = not known
  int64_t measured_ = 0;
};

/// Rows with which a shape is timed: at most its own, a power of two.
int64_t rows_to_time(const ConvolutionShape &shape);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_TIMES_H_
