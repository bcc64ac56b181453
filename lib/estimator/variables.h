// SPDX-License-Identifier: Apache-2.0
//
// The variables of an estimator by name: weights, running statistics and, named "<variable>/<slot>", optimizer slots.
// As long as the estimator has a trainer they are its, at a step boundary; else those of the newest weights.
//
// Threads: any; a look at a trainer that runs waits for its next step boundary (half a second at most, or a step).
#ifndef TUTTI_ESTIMATOR_VARIABLES_H_
#define TUTTI_ESTIMATOR_VARIABLES_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "estimator/estimator_state.h"
#include "tensor/tensor.h"

namespace tutti::impl::estimator {

/// Weights first. Empty when there are none.
std::vector<std::string> variable_names(EstimatorState &state);

/// Those that the optimizer changes, in the order of the model; empty until the model was built for training.
std::vector<std::string> trainable_names(EstimatorState &state);

/// A copy.
base::Result<tensor::Tensor> read_variable(EstimatorState &state, std::string_view name);

/// Same dtype and shape. It holds from the next step on, and for evaluate and predict at once.
base::Status write_variable(EstimatorState &state, std::string_view name, const tensor::Tensor &value);

/// All of the model's own variables, no slots, each once. NOT_FOUND names one that is missing, or that the model has
/// not; then none is written. FAILED_PRECONDITION where there is no training to write to.
base::Status write_variables(EstimatorState &state, const std::map<std::string, tensor::Tensor, std::less<>> &values);

/// The gradient of the last step over all its rows, before clipping by norm. FAILED_PRECONDITION unless the run keeps
/// gradients and there was a step.
base::Result<tensor::Tensor> read_gradient(EstimatorState &state, std::string_view variable);

/// The rows of an output in the last step. FAILED_PRECONDITION unless the run keeps outputs and there was a step.
base::Result<tensor::Tensor> read_output(EstimatorState &state, std::string_view name);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_VARIABLES_H_
