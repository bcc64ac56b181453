// SPDX-License-Identifier: Apache-2.0
//
// Where the time of training steps goes, and how well replicas scale. With one replica alone a step would take its
// compute time; so the share that computing has of the steps of N replicas is how much of N times that speed is left.
//
//   step of replica 0   | input | compute              | communication |
//   step of replica 1   | input | compute                          | c |     imbalance: 0 waits for 1
//
// Values.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_TIMES_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_TIMES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/trace.h"

namespace tutti::impl::distribute {

/// Nanoseconds of one replica over some steps; those of steps that built programs are left out.
struct StepTimes {
  int64_t steps = 0;
  int64_t total_ns = 0;
  int64_t input_ns = 0;          ///< it waited for its batch
  int64_t communication_ns = 0;  ///< it waited for other replicas or for what combines them; not what was overlapped

  int64_t compute_ns() const;
  StepTimes &operator+=(const StepTimes &more);
};

/// Adds those of each replica; `sums` takes their number when it is empty.
void add_times(std::vector<StepTimes> &sums, std::span<const StepTimes> more);

/// What one device did of the time of steps; shares of it. All but the shares here it computed, or was given what to:
/// what it waits between kernels only a trace tells.
struct DeviceShares {
  std::string device;
  double input = 0;
  double communication = 0;
  double imbalance = 0;  ///< it had nothing to do while the slowest computed

  double idle() const { return input + communication + imbalance; }
  /// {"device", "utilisation", "idle", "input", "communication", "imbalance"}
  base::Json to_json() const;
};

/// Shares of the time of steps; together 1.
struct StepShares {
  int64_t steps = 0;
  int64_t replicas = 0;
  int64_t programs = 0;  ///< built by the training until now, all replicas
  double step_seconds = 0;
  double compute = 0;                 ///< mean over replicas: the efficiency of scaling
  double input = 0;                   ///< mean
  double imbalance = 0;               ///< what the mean replica computes less than the slowest
  double communication = 0;           ///< the rest
  std::vector<DeviceShares> devices;  ///< those with a name

  /// {"steps", "replicas", "programs", "step_seconds", "compute", "input", "communication", "imbalance", "efficiency",
  /// "devices"}
  base::Json to_json() const;
  /// "compute 61 %, input 4 %, communication 30 %, imbalance 5 %; idle: gpu:0 41 %, gpu:1 37 %"
  std::string text() const;
  /// One sentence that names the main cause when several replicas are at less than half of the speed that computing
  /// alone would allow; else "".
  std::string warning() const;
};

/// All zero where there are no steps. `devices`: names, of each replica or none. `in_all`: how many replicas there are
/// with those of other workers, of which no times are known: they are taken to be alike, and what is waited for slower
/// ones counts as communication.
StepShares shares_of(std::span<const StepTimes> replicas, std::span<const std::string> devices = {},
                     int64_t in_all = 0);

/// Adds the time until its end to a sum, and a span to a trace. `tracer` may be null.
class WaitClock {
 public:
  WaitClock(int64_t &sum_ns, base::Tracer *tracer, const char *what)
      : sum_ns_(sum_ns), tracer_(tracer), what_(what), begin_ns_(base::now_ns()) {}
  ~WaitClock() {
    const int64_t waited_ns = base::now_ns() - begin_ns_;
    sum_ns_ += waited_ns;
    if (tracer_ != nullptr) tracer_->record("wait", what_, begin_ns_, waited_ns);
  }
  WaitClock(const WaitClock &) = delete;
  WaitClock &operator=(const WaitClock &) = delete;

 private:
  int64_t &sum_ns_;
  base::Tracer *const tracer_;
  const char *const what_;
  const int64_t begin_ns_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_TIMES_H_
