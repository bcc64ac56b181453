// SPDX-License-Identifier: Apache-2.0
//
// Hooks: one function over events, registered for one call, with its cadence and the values it wants. Steps that no
// hook asked for run without synchronising with any.
//
// A training run sends, in this order:
//
//   begin                            weights are there, no step of this run has run
//   ( step                           after a step that the hook's cadence names
//   | epoch_end                      a pass over the dataset is complete
//   | checkpoint_saved               a checkpoint became visible; sent at the next moment the caller is awake
//   | evaluated )*                   train_and_evaluate: metrics on the other dataset
//   end                              last, after the final checkpoint: goal reached, stop asked for, or input at its
//   end error                            instead of end, when the run failed; answers do not count any more
//
// New kinds will be appended: a hook returns go_on for kinds it does not know.
//
// Threads: hooks run on the thread that called train (or run, or close), one after the other in order of registration,
// no lock held. Within a hook the estimator may be asked for weights, evaluated and used for prediction; training with
// it again is FAILED_PRECONDITION.
#ifndef TUTTI_ESTIMATOR_HOOK_H_
#define TUTTI_ESTIMATOR_HOOK_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "distribute/train/trainer.h"
#include "monitor/summary_writer.h"
#include "tensor/tensor.h"

namespace tutti::impl::estimator {

using distribute::NamedNumber;

/// The numbers are part of the C ABI; appended only.
enum class EventKind : int32_t {
  begin = 1,
  step = 2,
  checkpoint_saved = 3,
  epoch_end = 4,
  evaluated = 5,
  end = 6,
  error = 7,
};

/// "begin", "step", ...
std::string_view name(EventKind kind);

/// What a hook may do to the run it watches. Valid during the call only.
class RunControl {
 public:
  virtual ~RunControl() = default;

  /// Queues a checkpoint of the current step, unless there is one. OK without a model_dir: nothing happens then.
  virtual base::Status save_checkpoint() = 0;
  /// A named host scalar of the model, such as a learning rate; takes effect with the next step.
  virtual base::Status set_host_scalar(std::string_view scalar, double value) = 0;
  virtual base::Result<tensor::Tensor> get_variable(std::string_view variable) = 0;
  virtual base::Status set_variable(std::string_view variable, const tensor::Tensor &value) = 0;
  /// Among the run's own summaries; null where it writes none.
  virtual base::Ref<monitor::SummaryWriter> summary_writer() { return {}; }
  /// Gradient of the last step; FAILED_PRECONDITION unless the run keeps gradients.
  virtual base::Result<tensor::Tensor> gradient(std::string_view variable) = 0;
};

/// What happened. All references are valid during the call only.
struct Event {
  EventKind kind = EventKind::begin;
  int64_t step = 0;      // completed steps of the model
  int64_t epoch = 0;     // the pass over the dataset, from 0; between two passes the one that has ended
  int64_t examples = 0;  // rows of this run so far
  /// Where the run will end, or -1 when it does not know. Of a dataset whose length is not known every pass is taken to
  /// be as long as the last whole one of this run.
  int64_t goal_step = -1;
  /// step: the values the hook asked for, in that order. evaluated: loss and all metrics. epoch_end and end: all of the
  /// last step.
  std::span<const NamedNumber> values;
  std::string_view checkpoint_path;  // checkpoint_saved; `step` is the checkpoint's
  base::Status error;                // error
  RunControl *control = nullptr;     // null for error

  /// The value of this name, or null.
  const double *find(std::string_view value_name) const;
};

/// Stop ends the run after the current step as a stop of the caller would: checkpoint, reason STOPPED.
enum class Answer : int32_t { go_on = 0, stop = 1 };

using HookFunction = std::function<base::Result<Answer>(const Event &event)>;

/// Stands for every value of a step in Hook::values.
inline constexpr std::string_view kAllValues = "*";

struct Hook {
  std::string name;  // for messages
  HookFunction function;
  /// Step events at multiples of so many global steps, or after so many seconds (at the first step, then each time the
  /// seconds have passed). At most one is set; none: no step events.
  int64_t every_steps = 0;
  double every_secs = 0;
  /// Names of values for step events: "loss", "learning_rate", names of metrics; where the loss is scaled "loss_scale",
  /// "skipped_steps".
  std::vector<std::string> values;
  /// Optional: what the hook must remember over a restart; kept in every checkpoint under its name.
  std::function<base::Json()> save;
  std::function<base::Status(const base::Json &)> restore;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_HOOK_H_
