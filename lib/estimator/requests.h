// SPDX-License-Identifier: Apache-2.0
//
// What an estimator is asked for and what it answers. Values.
#ifndef TUTTI_ESTIMATOR_REQUESTS_H_
#define TUTTI_ESTIMATOR_REQUESTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/object.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "distribute/train/step_times.h"
#include "estimator/hook.h"

namespace tutti::impl::estimator {

/// Why a run ended. The numbers are part of the C ABI.
enum class EndReason : int32_t { max_steps = 1, epochs = 2, end_of_input = 3, stopped = 4, max_seconds = 5 };

/// "MAX_STEPS", "EPOCHS", "END_OF_INPUT", "STOPPED", "MAX_SECONDS".
std::string_view name(EndReason reason);

/// Values of a step or an evaluation, added to an object: "loss", "metrics", an object of the other numbers, and
/// "tensors", one of nested arrays, without tensors of more than 65,536 elements. A loss of NaN is null.
void add_values(base::Json &object, const std::vector<NamedNumber> &values);

/// At most one of steps, max_steps and epochs is set; none means until the input ends.
struct TrainRequest {
  data::DatasetRef dataset;
  /// So many more steps, from where the newest checkpoint left the model.
  std::optional<int64_t> steps;
  /// Until the model has had so many steps in all; returns at once when it has.
  std::optional<int64_t> max_steps;
  /// So many more whole passes over the dataset. Called again after an interruption (a kill, a stop, an error) with the
  /// same number, it goes on to the end that the interrupted call had.
  std::optional<int64_t> epochs;
  /// Ends like a stop after so many seconds from the opening of the session.
  std::optional<double> max_seconds;
  std::vector<Hook> hooks;
  /// The learning rates are times the host scalar graph::kRateFactor, for a hook that sets it when the run begins:
  /// neither checkpoints nor later runs keep it.
  bool has_rate_factor = false;
  base::Ref<base::CancelToken> cancel;  // nullable
  /// Go on in the input where the checkpoint was, provided the dataset looks the same; else begin a new pass.
  bool resume_input = true;
  /// No run: the variables are made, and nothing is read of the dataset but what its elements are.
  bool variables_only = false;
};

/// INVALID_ARGUMENT naming what contradicts.
base::Status check(const TrainRequest &request);

struct TrainResult {
  EndReason reason = EndReason::stopped;
  int64_t step = 0;                    // of the model now
  int64_t steps = 0;                   // of this call
  int64_t examples = 0;                // rows of this call
  double loss = 0;                     // of the last step; NaN before the first one
  std::vector<NamedNumber> metrics;    // loss, learning rate and metrics of the last step
  double input_wait_seconds = 0;       // how long steps of this call waited for their input
  base::Json input_report;             // what the newest walk over the input has cost (data::Iterator::report)
  distribute::StepShares step_shares;  // where the time of the steps went

  /// {"step", "reason", "examples", "loss", "metrics", "tensors", "input_wait_seconds", "input_report", "step_report"}
  base::Json to_json() const;
};

struct EvaluateRequest {
  data::DatasetRef dataset;
  std::optional<int64_t> steps;  // batches; none = until the input ends
  /// A checkpoint, or a directory of them; empty = the weights of the estimator.
  std::string checkpoint_path;
  base::Ref<base::CancelToken> cancel;  // nullable
};

struct EvaluateResult {
  /// "loss" (the mean over examples, not over batches) first when the model has one, then the metrics by name.
  std::vector<NamedNumber> values;
  int64_t global_step = 0;  // of the weights
  int64_t examples = 0;
  int64_t batches = 0;

  /// The value of this name, or null.
  const double *find(std::string_view value_name) const;
  /// {"step", "examples", "batches", "loss", "metrics", "tensors"}
  base::Json to_json() const;
};

struct TrainAndEvaluateRequest {
  TrainRequest train;
  EvaluateRequest evaluate;
  /// Evaluate after so many steps; 0 = after each pass over the training data. And always at the end.
  int64_t every_steps = 0;
};

struct TrainAndEvaluateResult {
  TrainResult train;
  EvaluateResult evaluate;  // the last one, of the final weights
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_REQUESTS_H_
