// SPDX-License-Identifier: Apache-2.0
//
// Step functions: what a loop of the program runs on batches of its own, over the variables of a trainer, besides the
// trainer's model: a second loss with an optimizer of its own, or what is only computed.
//
//   TUTTI_TRY(trainer->add_step_function({"generator", model, spec, true}));
//   TUTTI_TRY(trainer->initialize());
//   TUTTI_ASSIGN(StepFunctionReport report, trainer->run_step_function("generator", batch, cancel));
//   TUTTI_ASSIGN(Tensor rows, trainer->step_output("generator", "image", replica));
//
// Each has slots, a number of steps for its schedule and random numbers of its own, and trains what its model trains.
// The replicas share its batch as they share those of the trainer, and it is compiled once for each shape of a batch.
//
// Threads: as of the trainer, of which all this is a part.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_FUNCTIONS_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_FUNCTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "data/element/element.h"
#include "distribute/plan/loss_scale.h"
#include "graph/model.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// A number, or the tensor that a metric with one number for each class is.
struct NamedNumber {
  std::string name;
  double value = 0;           ///< NaN for a tensor
  tensor::Tensor elements{};  ///< empty for a number

  bool is_number() const { return elements.empty(); }
};

struct StepFunction {
  std::string name;
  /// With an optimizer, also where it trains nothing. All of its variables are the trainer's.
  graph::Model model;
  data::ElementSpec input;  ///< what batches are, of any number of rows
  bool trains = false;
  bool has_loss = true;  ///< else what the model calls its loss is nothing that anybody asked for
};

/// How far one has come; part of what a checkpoint keeps.
struct StepFunctionState {
  int64_t steps = 0;  ///< that it has trained
  LossScaleState loss_scale;
};
using StepFunctionStates = std::map<std::string, StepFunctionState, std::less<>>;

/// What one step gave.
struct StepFunctionReport {
  int64_t rows = 0;                   ///< of all replicas, of all workers
  std::vector<NamedNumber> values{};  ///< as of Trainer::report()
};

class StepFunctions {
 public:
  virtual ~StepFunctions() = default;

  /// Before the trainer has weights. INVALID_ARGUMENT for a name that there is.
  virtual base::Status add_step_function(const StepFunction &function) {
    (void)function;
    return base::unimplemented(kNone);
  }
  /// One step on a batch, whose components are those of `input`, in order; with several workers all call it at the same
  /// point. An error leaves variables and slots as they were.
  virtual base::Result<StepFunctionReport> run_step_function(std::string_view name, std::vector<tensor::Tensor> batch,
                                                             const base::CancelToken *cancel) {
    (void)name, (void)batch, (void)cancel;
    return base::unimplemented(kNone);
  }
  /// Names of the outputs that its model sets.
  virtual base::Result<std::vector<std::string>> step_outputs(std::string_view name) const {
    (void)name;
    return base::unimplemented(kNone);
  }
  /// The rows of an output of its last step that one replica of this process had; an empty tensor where it had none.
  virtual base::Result<tensor::Tensor> step_output(std::string_view name, std::string_view output, int32_t replica) {
    (void)name, (void)output, (void)replica;
    return base::unimplemented(kNone);
  }
  /// Of those that there are, and of those that a checkpoint knew.
  virtual StepFunctionStates step_function_states() const { return {}; }
  /// After restore().
  virtual void set_step_function_states(const StepFunctionStates &states) { (void)states; }

 private:
  static constexpr std::string_view kNone = "this trainer has no step functions";
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_FUNCTIONS_H_
