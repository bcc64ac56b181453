// SPDX-License-Identifier: Apache-2.0
//
// One thing to measure: training steps or predictions of a network (step_networks.h) at a batch size and a number of
// threads.
//
//   TUTTI_ASSIGN(StepCase one, StepCase::create("cpu", {.form = "training", .model = "resnet20", .batch = 128}));
//   TUTTI_ASSIGN(Measured cost, one.measure(0.5));      // cost.cpu_ms
//
// Threads: used by one thread at a time.
#ifndef TUTTI_TESTS_BENCH_STEP_CASE_H_
#define TUTTI_TESTS_BENCH_STEP_CASE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/step_models.h"
#include "base/status.h"

namespace tutti::testing {

struct CaseSpec {
  std::string form = "training";  ///< or "inference"
  std::string model;
  int64_t batch = 64;
  int32_t threads = 1;
  int32_t flags = 0;      ///< TUTTI_COMPILE_*
  bool bucketed = false;  ///< two programs with the gradients in memory between them, as where several devices train
  bool waits = false;     ///< for the device after each step: measured is how long one takes, not how many there are

  bool operator==(const CaseSpec &other) const = default;
};

/// Of one step, in the mean over `steps`.
struct Measured {
  double cpu_ms = 0;
  double wall_ms = 0;
  double issue_ms = 0;  ///< of the thread that runs steps, where nothing makes it wait: the least of all stretches
  int64_t steps = 0;
  int64_t waits = 0;  ///< for the device
};

class StepCase {
 public:
  /// Compiles; the processor time of that is build_seconds(), without that of filling memory.
  static impl::base::Result<StepCase> create(const std::string &backend_name, const CaseSpec &spec,
                                             const impl::backend::HostOptions &host = {}, int32_t compile_flags = 0);

  const CaseSpec &spec() const { return spec_; }
  impl::base::Status run_once() { return trainer_ ? trainer_->step() : predictor_->predict(); }
  /// Waits until the steps so far are done, with their errors.
  impl::base::Status synchronize() const { return trainer_ ? trainer_->synchronize() : predictor_->synchronize(); }
  /// For `seconds`, and at least so many times; devices are never more than some hundred steps behind.
  impl::base::Result<Measured> measure(double seconds, int64_t least = 1);

  /// Of one step: multiplications and additions of convolutions and matrix products.
  double flops() const { return flops_; }
  double build_seconds() const { return build_seconds_; }
  int64_t workspace_bytes() const;
  /// Of weights, gradients and slots.
  int64_t state_bytes() const { return trainer_ ? trainer_->state_bytes() : predictor_->state_bytes(); }
  /// All that was allocated on the device: state, workspace, batches and results.
  int64_t device_bytes() const { return trainer_ ? trainer_->device_bytes() : predictor_->device_bytes(); }
  /// What the device has free, -1 where it cannot tell.
  int64_t available_bytes() const { return trainer_ ? trainer_->available_bytes() : predictor_->available_bytes(); }
  /// What the backends say of their programs, one JSON text each.
  std::vector<std::string> reports() const;
  const StepTrainer *trainer() const { return trainer_ ? &*trainer_ : nullptr; }
  const StepPredictor *predictor() const { return predictor_ ? &*predictor_ : nullptr; }

 private:
  CaseSpec spec_;
  double flops_ = 0, build_seconds_ = 0;
  std::optional<StepTrainer> trainer_;
  std::optional<StepPredictor> predictor_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BENCH_STEP_CASE_H_
