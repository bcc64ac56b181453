// SPDX-License-Identifier: Apache-2.0
#include "capi/result_c.h"

#include <limits>
#include <string_view>

#include "base/name_suggestions.h"
#include "capi/guard.h"
#include "capi/tensor_c.h"

namespace tutti::impl::capi {

constinit HandleType<ResultObject> result_handles{"result"};

namespace {

template <typename T>
T from_result(const tutti_result *handle, T ResultObject::*member, T otherwise) {
  const Ref<ResultObject> object = peek(handle, result_handles);
  return object ? (*object).*member : otherwise;
}

std::string text_of(const base::Json &json) { return json.is_null() ? std::string() : json.dump(); }

}  // namespace

void ResultObject::take(const std::vector<estimator::NamedNumber> &values) {
  loss = kNotANumber;
  for (const estimator::NamedNumber &value : values) {
    if (value.name == "loss") {
      loss = value.value;
    } else {
      metrics.push_back(value);
    }
  }
}

ResultObject::ResultObject(const estimator::TrainResult &result, double elapsed)
    : reason(static_cast<int32_t>(result.reason)), step(result.step), examples(result.examples), seconds(elapsed) {
  take(result.metrics);
  loss = result.loss;
  input_wait = result.input_wait_seconds;
  input_report = text_of(result.input_report);
  step_report = result.step_shares.to_json().dump();
}

ResultObject::ResultObject(const estimator::EvaluateResult &result, double elapsed)
    : step(result.global_step), examples(result.examples), seconds(elapsed) {
  take(result.values);
}

ResultObject::ResultObject(const distribute::StepFunctionReport &report, int64_t model_step, double elapsed)
    : step(model_step), examples(report.rows), seconds(elapsed) {
  take(report.values);
}

ResultObject::ResultObject(const estimator::SessionReport &report, double elapsed)
    : reason(report.reason ? static_cast<int32_t>(*report.reason) : 0),
      step(report.step),
      examples(report.examples),
      seconds(elapsed),
      input_wait(report.input_wait_seconds) {
  take(report.metrics);
  loss = report.loss;
}

Result<tensor::Tensor> ResultObject::metric(std::string_view name) const {
  if (name == "loss") return tensor::Tensor::scalar(loss);
  std::vector<std::string> names = {"loss"};
  for (const estimator::NamedNumber &one : metrics) {
    if (one.name == name) return one.is_number() ? tensor::Tensor::scalar(one.value) : one.elements;
    names.push_back(one.name);
  }
  return base::not_found("the result has no metric '", name, "'", base::but_there_are(name, names));
}

Status emit_result(Ref<ResultObject> result, tutti_result **out) {
  return out != nullptr ? emit(std::move(result), result_handles, out) : Status();
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

TUTTI_DEFINE_COUNTING(result, result_handles)

int32_t tutti_result_get_reason(const tutti_result *result) { return from_result(result, &ResultObject::reason, 0); }

int64_t tutti_result_get_step(const tutti_result *result) {
  return from_result(result, &ResultObject::step, int64_t{-1});
}

int64_t tutti_result_get_examples(const tutti_result *result) {
  return from_result(result, &ResultObject::examples, int64_t{-1});
}

double tutti_result_get_seconds(const tutti_result *result) {
  return from_result(result, &ResultObject::seconds, kNotANumber);
}

double tutti_result_get_input_wait(const tutti_result *result) {
  return from_result(result, &ResultObject::input_wait, kNotANumber);
}

const char *tutti_result_get_input_report(const tutti_result *result) {
  const Ref<ResultObject> object = peek(result, result_handles);
  return object ? object->input_report.c_str() : nullptr;
}

const char *tutti_result_get_step_report(const tutti_result *result) {
  const Ref<ResultObject> object = peek(result, result_handles);
  return object ? object->step_report.c_str() : nullptr;
}

double tutti_result_get_loss(const tutti_result *result) {
  return from_result(result, &ResultObject::loss, kNotANumber);
}

int64_t tutti_result_get_metric_count(const tutti_result *result) {
  const Ref<ResultObject> object = peek(result, result_handles);
  return object ? static_cast<int64_t>(object->metrics.size()) : -1;
}

const char *tutti_result_get_metric_name(const tutti_result *result, int64_t index) {
  const Ref<ResultObject> object = peek(result, result_handles);
  if (!object || index < 0 || index >= static_cast<int64_t>(object->metrics.size())) return nullptr;
  return object->metrics[static_cast<size_t>(index)].name.c_str();
}

double tutti_result_get_metric(const tutti_result *result, const char *name) {
  const Ref<ResultObject> object = peek(result, result_handles);
  if (!object || name == nullptr) return kNotANumber;
  if (std::string_view(name) == "loss") return object->loss;
  for (const estimator::NamedNumber &metric : object->metrics) {
    if (metric.name == name) return metric.value;
  }
  return kNotANumber;
}

int32_t tutti_result_read_metric(const tutti_result *result, const char *name, tutti_tensor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ResultObject> object, find(result, result_handles, "result"));
    TUTTI_TRY(require(name, "name"));
    TUTTI_ASSIGN(tensor::Tensor value, object->metric(name));
    return emit_tensor(std::move(value), true, out);
  });
}
