// SPDX-License-Identifier: Apache-2.0
//
// Results of training and evaluation behind handles: plain values.
#ifndef TUTTI_CAPI_RESULT_C_H_
#define TUTTI_CAPI_RESULT_C_H_

#include <tutti/estimator.h>

#include <string>
#include <string_view>
#include <vector>

#include "capi/handles.h"
#include "estimator/requests.h"
#include "estimator/train_session.h"

namespace tutti::impl::capi {

class ResultObject : public base::Object {
 public:
  ResultObject(const estimator::TrainResult &result, double seconds);
  ResultObject(const estimator::EvaluateResult &result, double seconds);
  ResultObject(const estimator::SessionReport &report, double seconds);
  /// Of one step of a step function, after which the model is at `step`.
  ResultObject(const distribute::StepFunctionReport &report, int64_t step, double seconds);

  int32_t reason = 0;
  int64_t step = 0;
  int64_t examples = 0;
  double seconds = 0;
  double loss = 0;
  double input_wait = 0;
  std::string input_report, step_report;  // JSON
  std::vector<estimator::NamedNumber> metrics;

  /// A scalar of f64 for a number. NOT_FOUND naming those that there are.
  Result<tensor::Tensor> metric(std::string_view name) const;

 private:
  void take(const std::vector<estimator::NamedNumber> &values);
};

extern constinit HandleType<ResultObject> result_handles;

/// Stores a handle where the host wants one (`out` may be NULL).
Status emit_result(Ref<ResultObject> result, tutti_result **out);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_RESULT_C_H_
