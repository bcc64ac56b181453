// SPDX-License-Identifier: Apache-2.0
//
// Training sessions: train, one piece at a time.
#include "base/function_token.h"
#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/result_c.h"

namespace tutti::impl::capi {

constinit HandleType<SessionObject> session_handles{"session"};

namespace {

/// The open session, for one call at a time.
template <typename Body>
Status with_session(tutti_session *session, Body &&body) {
  TUTTI_ASSIGN(const Ref<SessionObject> object, find(session, session_handles, "session"));
  TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "session"));
  if (object->session() == nullptr) return base::failed_precondition("the session is closed");
  return body(*object);
}

}  // namespace

Result<std::vector<tensor::Tensor>> SessionObject::pieces_of_all(const std::vector<tensor::Tensor> &own) {
  if (owner_->strategy()->workers().count == 1) return own;
  TUTTI_ASSIGN(const SoleUse use, sole_use(busy_, "session"));
  if (session_ == nullptr) return base::failed_precondition("the session is closed");
  return session_->pieces_of_all(own);
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_session_open(tutti_estimator *estimator, const tutti_dataset *dataset, const tutti_options *options,
                           const tutti_hooks *hooks, tutti_cancel *cancel, tutti_session **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_ASSIGN(estimator::TrainRequest request,
                 train_request(*object, dataset, options, hooks, cancel, Evaluations::none));
    const Ref<base::CancelToken> token = request.cancel;
    const base::FunctionToken functions(token);
    TUTTI_ASSIGN(std::unique_ptr<estimator::TrainSession> session,
                 object->estimator().open_session(std::move(request)));
    return emit(base::make_ref<SessionObject>(object, std::move(session)), session_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(session, session_handles)

int32_t tutti_session_run(tutti_session *session, int64_t steps, tutti_result **result, tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (result != nullptr) *result = nullptr;
    if (steps < 1) return base::invalid_argument("argument 'steps' must be 1 or more, got ", steps);
    return with_session(session, [&](SessionObject &object) -> Status {
      TUTTI_ASSIGN(const estimator::SessionReport report, object.session()->run({.steps = steps}));
      return emit_result(base::make_ref<ResultObject>(report, object.seconds()), result);
    });
  });
}

int32_t tutti_session_set_scalar(tutti_session *session, const char *name, double value, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(require(name, "name"));
    return with_session(session, [&](SessionObject &object) { return object.session()->set_host_scalar(name, value); });
  });
}

int32_t tutti_session_close(tutti_session *session, tutti_result **result, tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (result != nullptr) *result = nullptr;
    return with_session(session, [&](SessionObject &object) -> Status {
      const std::unique_ptr<estimator::TrainSession> closing = std::move(object.session());
      TUTTI_ASSIGN(const estimator::TrainResult trained, closing->close());
      return emit_result(base::make_ref<ResultObject>(trained, object.seconds()), result);
    });
  });
}
