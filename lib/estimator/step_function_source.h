// SPDX-License-Identifier: Apache-2.0
//
// A step function as it was added to an estimator: how its model is made, for which mode and batches. A value.
#ifndef TUTTI_ESTIMATOR_STEP_FUNCTION_SOURCE_H_
#define TUTTI_ESTIMATOR_STEP_FUNCTION_SOURCE_H_

#include <optional>
#include <string>

#include "base/status.h"
#include "data/element/element.h"
#include "distribute/train/step_functions.h"
#include "estimator/mode.h"
#include "estimator/model_source.h"

namespace tutti::impl::estimator {

struct StepFunctionSource {
  std::string name;
  Mode mode = Mode::train;
  ModelFunction function;
  /// Of its batches; none: those of the training.
  std::optional<data::ElementSpec> input;
};

/// Builds its model, whose variables must be those of `train`. `input`: of the training.
base::Result<distribute::StepFunction> build_step_function(const StepFunctionSource &source, const graph::Model &train,
                                                           const data::ElementSpec &input);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_STEP_FUNCTION_SOURCE_H_
