// SPDX-License-Identifier: Apache-2.0
#include "estimator/requests.h"

#include <cmath>
#include <span>
#include <utility>

#include "monitor/tensor_numbers.h"

namespace tutti::impl::estimator {

using base::invalid_argument;
using base::Json;
using base::JsonObject;
using base::Status;

namespace {

Status check_positive(std::string_view field, const std::optional<int64_t> &value) {
  if (!value || *value > 0) return Status();
  return invalid_argument(field, " is ", *value, ", expected at least 1");
}

constexpr int64_t kMostElements = 65536;  // of a tensor that is written out

Json nested(std::span<const int64_t> dims, std::span<const double> numbers) {
  if (dims.empty()) return numbers.empty() ? Json() : Json(numbers.front());
  base::JsonArray rows;
  const size_t count = static_cast<size_t>(dims[0]), each = count > 0 ? numbers.size() / count : 0;
  for (size_t i = 0; i < count; ++i)
    rows.push_back(nested(dims.subspan(1), numbers.subspan(i * each, each)));
  return rows;
}

}  // namespace

void add_values(Json &object, const std::vector<NamedNumber> &values) {
  Json loss, metrics = JsonObject(), tensors = JsonObject();
  for (const NamedNumber &value : values) {
    if (value.name == "loss") {
      if (!std::isnan(value.value)) loss = value.value;
    } else if (value.is_number()) {
      metrics.set(value.name, value.value);
    } else if (value.elements.elements() <= kMostElements) {
      tensors.set(value.name,
                  nested(value.elements.shape().extents(), monitor::numbers_of(value.elements).value_or({})));
    }
  }
  object.set("loss", std::move(loss));
  object.set("metrics", std::move(metrics));
  object.set("tensors", std::move(tensors));
}

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

Json TrainResult::to_json() const {
  Json object;
  object.set("step", step);
  object.set("reason", name(reason));
  object.set("examples", examples);
  add_values(object, metrics);
  object.set("input_wait_seconds", input_wait_seconds);
  object.set("input_report", input_report);
  object.set("step_report", step_shares.to_json());
  return object;
}

Json EvaluateResult::to_json() const {
  Json object;
  object.set("step", global_step);
  object.set("examples", examples);
  object.set("batches", batches);
  add_values(object, values);
  return object;
}

const double *EvaluateResult::find(std::string_view value_name) const {
  for (const NamedNumber &number : values) {
    if (number.name == value_name && number.is_number()) return &number.value;
  }
  return nullptr;
}

}  // namespace tutti::impl::estimator
