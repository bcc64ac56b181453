// SPDX-License-Identifier: Apache-2.0
#include "estimator/requests.h"

namespace tutti::impl::estimator {

using base::invalid_argument;
using base::Status;

namespace {

Status check_positive(std::string_view field, const std::optional<int64_t> &value) {
  if (!value || *value > 0) return Status();
  return invalid_argument(field, " is ", *value, ", expected at least 1");
}

}  // namespace

std::string_view name(EndReason reason) {
  switch (reason) {
    case EndReason::max_steps:
      return "MAX_STEPS";
    case EndReason::epochs:
      return "EPOCHS";
    case EndReason::end_of_input:
      return "END_OF_INPUT";
    case EndReason::stopped:
      return "STOPPED";
    case EndReason::max_seconds:
      return "MAX_SECONDS";
  }
  return "UNKNOWN";
}

Status check(const TrainRequest &request) {
  if (!request.dataset) return invalid_argument("there is no dataset to train on");
  TUTTI_TRY(check_positive("steps", request.steps));
  TUTTI_TRY(check_positive("max_steps", request.max_steps));
  TUTTI_TRY(check_positive("epochs", request.epochs));
  if (request.max_seconds && !(*request.max_seconds > 0))
    return invalid_argument("max_seconds is ", *request.max_seconds, ", expected more than 0");
  if (request.steps && request.max_steps) {
    return invalid_argument("steps is ", *request.steps, " and max_steps is ", *request.max_steps,
                            ": set only one of them (steps counts from the current step, max_steps from the first)");
  }
  if (request.epochs && (request.steps || request.max_steps)) {
    return invalid_argument("epochs is ", *request.epochs, " and ", request.steps ? "steps" : "max_steps", " is ",
                            request.steps ? *request.steps : *request.max_steps, ": set only one of them");
  }
  if (request.epochs && request.dataset->cardinality().is_infinite()) {
    return invalid_argument("epochs is ", *request.epochs,
                            " but the dataset never ends: leave out repeat() or set steps");
  }
  return Status();
}

const double *EvaluateResult::find(std::string_view value_name) const {
  for (const NamedNumber &number : values) {
    if (number.name == value_name && number.is_number()) return &number.value;
  }
  return nullptr;
}

}  // namespace tutti::impl::estimator
