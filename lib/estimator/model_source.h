// SPDX-License-Identifier: Apache-2.0
//
// From a user's model function to models, one per mode. The function is called once per mode in the life of a source,
// with a builder in which the components of the dataset are declared already: features in every mode, labels and
// weights (as labels) not in PREDICT. What it builds must fit its mode:
//
//   TRAIN    a loss and a rule of training            EVAL     a loss or a metric
//   PREDICT  an output
//
// The variables of EVAL and PREDICT must be variables of TRAIN, by name, shape, dtype and creator: what is trained
// under one name must not be read under another. It is checked as soon as both models are there.
//
// Threads: all functions may be called from any thread. The model function runs on the thread that asks first, without
// a lock; others that want the same mode wait for it. Asking for a mode from within the model function is
// FAILED_PRECONDITION.
#ifndef TUTTI_ESTIMATOR_MODEL_SOURCE_H_
#define TUTTI_ESTIMATOR_MODEL_SOURCE_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/status.h"
#include "data/element/element.h"
#include "estimator/mode.h"
#include "graph/builder.h"
#include "graph/model.h"

namespace tutti::impl::estimator {

using ModelFunction = std::function<base::Status(graph::GraphBuilder &builder, Mode mode)>;
using ModelRef = std::shared_ptr<const graph::Model>;

/// Calls the function for a mode and checks the result; see above. A PREDICT model has only what its outputs need.
base::Result<graph::Model> build_model(const ModelFunction &function, Mode mode, const data::ElementSpec &spec);

/// The model of a step function: what the function builds for a mode, made to be run by a trainer. In mode TRAIN it has
/// a loss and a rule of training; in others at least an output, a loss or a metric, and it trains nothing.
/// `has_loss`: whether the function has set it.
struct StepModel {
  graph::Model model;
  bool has_loss = true;
};
base::Result<StepModel> build_step_model(const ModelFunction &function, Mode mode, const data::ElementSpec &spec);

/// INVALID_ARGUMENT naming the first variable of `other` that is no variable of `train`, or is a different one.
base::Status check_variables(const graph::Model &train, const graph::Model &other, Mode mode);

class ModelSource {
 public:
  explicit ModelSource(ModelFunction function) : function_(std::move(function)) {}

  /// The model of a mode; `spec` declares its inputs when it is built. An error is not kept: the next call tries again.
  base::Result<ModelRef> get(Mode mode, const data::ElementSpec &spec);
  /// The model of a mode if it is built; else null.
  ModelRef built(Mode mode);

 private:
  struct Slot {
    ModelRef model;
    std::optional<std::thread::id> builder;  // who is building it now
  };

  Slot &slot(Mode mode) { return slots_[static_cast<size_t>(mode) - 1]; }
  base::Result<ModelRef> build(Mode mode, const data::ElementSpec &spec);
  base::Status check_against_others(Mode mode, const graph::Model &model);

  const ModelFunction function_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Slot slots_[3];  // guarded by mutex_
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_MODEL_SOURCE_H_
