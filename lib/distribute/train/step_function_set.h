// SPDX-License-Identifier: Apache-2.0
//
// The step functions of a trainer (step_functions.h): each is a trainer on the same weights. Internal to this folder.
//
// Threads: those of the trainer that has them.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_FUNCTION_SET_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_FUNCTION_SET_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "distribute/input/given_batches.h"
#include "distribute/strategy/strategy.h"
#include "distribute/train/step_functions.h"
#include "distribute/train/trainer.h"
#include "distribute/weights/weight_share.h"

namespace tutti::impl::distribute {

class StepFunctionSet {
 public:
  /// `options`: the trainer's.
  StepFunctionSet(StrategyRef strategy, const TrainerOptions &options)
      : strategy_(std::move(strategy)), options_(options) {}

  base::Status add(const StepFunction &function, const WeightShare &share);
  bool empty() const { return all_.empty(); }
  /// Slots as optimizers begin; or those of a version, where it has them.
  base::Status initialize();
  base::Status restore(const checkpoint::WeightVersion &version);
  /// `weights` with the slots of all of them.
  base::Result<base::Ref<checkpoint::WeightVersion>> with_slots(base::Ref<checkpoint::WeightVersion> weights) const;

  /// One step. `trained` becomes whether it changed weights.
  base::Result<StepFunctionReport> run(std::string_view name, std::vector<tensor::Tensor> batch,
                                       const base::CancelToken *cancel, bool &trained);
  base::Result<std::vector<std::string>> outputs(std::string_view name) const;
  base::Result<tensor::Tensor> output(std::string_view name, std::string_view output, int32_t replica) const;
  base::Status check_workers(const base::CancelToken *cancel);
  void leave_workers(const base::Status &cause);

  StepFunctionStates states() const;
  void set_states(const StepFunctionStates &states);
  /// Steps that all of them have trained.
  int64_t trained_steps() const;
  int64_t programs_built() const;

 private:
  struct Entry {
    std::string name;
    bool trains = false, has_loss = true;
    std::unique_ptr<Trainer> trainer;
    std::unique_ptr<GivenBatches> batches;
    bool is_attached = false;  // the trainer reads `batches`, all of which it has used
    bool has_run = false;      // the last run succeeded
  };
  base::Result<Entry *> find(std::string_view name) const;
  static base::Result<std::vector<NamedNumber>> values_of(const Entry &entry);
  TrainerOptions options_for(const StepFunction &function) const;

  const StrategyRef strategy_;
  const TrainerOptions options_;
  std::vector<std::unique_ptr<Entry>> all_;
  StepFunctionStates others_;  // of those that a checkpoint knew and that are not there
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_FUNCTION_SET_H_
