// SPDX-License-Identifier: Apache-2.0
#include "capi/cancel_c.h"

#include <utility>

#include "base/function_token.h"
#include "capi/guard.h"

namespace tutti::impl::capi {

constinit HandleType<CancelObject> cancel_handles{"cancel"};

namespace {

constinit thread_local RunningFunction *innermost = nullptr;

}  // namespace

RunningFunction::RunningFunction() noexcept : outer_(std::exchange(innermost, this)) {}

RunningFunction::~RunningFunction() { innermost = outer_; }

RunningFunction *RunningFunction::current() { return innermost; }

void *RunningFunction::token_handle() {
  if (handle_.get() != nullptr) return handle_.get();
  const base::Ref<base::CancelToken> followed = base::FunctionToken::current();
  if (followed == nullptr) return nullptr;
  token_ = base::CancelToken::create_child(followed);
  return handle_.set(base::make_ref<CancelObject>(token_), cancel_handles).ok() ? handle_.get() : nullptr;
}

void CancelObject::stop() {
  token_->stop();
  waits_->cancel(base::cancelled("a stop was requested"));
}

void CancelObject::cancel() {
  token_->cancel();
  waits_->cancel();
}

void CancelObject::set_deadline(base::Deadline deadline) {
  token_->set_deadline(deadline);
  waits_->set_deadline(deadline);
}

Result<Ref<base::CancelToken>> call_token(tutti_cancel *cancel) {
  if (cancel == nullptr) return Ref<base::CancelToken>();
  TUTTI_ASSIGN(const Ref<CancelObject> object, find(cancel, cancel_handles, "cancel"));
  return object->token();
}

Result<Ref<base::CancelToken>> wait_token(tutti_cancel *cancel) {
  if (cancel == nullptr) return Ref<base::CancelToken>();
  TUTTI_ASSIGN(const Ref<CancelObject> object, find(cancel, cancel_handles, "cancel"));
  return object->waits();
}

CallScope::CallScope(base::CancelToken &walk, const base::CancelToken *call) : walk_(walk), call_(call) {
  if (call_ == nullptr) return;
  using Listener = base::CancelToken::Listener;
  listener_.emplace(
      call_, [this] { follow(); }, Listener::Start::later_only, Listener::Hears::levels_and_deadlines);
  follow();
}

CallScope::~CallScope() {
  if (call_ == nullptr) return;
  listener_.reset();
  walk_.set_deadline(base::Deadline::never());
}

void CallScope::follow() {
  const std::lock_guard lock(mutex_);
  const bool is_cancelled = call_->level() == base::CancelLevel::cancel;
  walk_.set_deadline(is_cancelled ? base::Deadline::after_ms(0) : call_->deadline());
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_cancel_create(tutti_cancel **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    return emit(base::make_ref<CancelObject>(), cancel_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(cancel, cancel_handles)

int32_t tutti_cancel_request(tutti_cancel *token, int32_t strength, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<CancelObject> object, find(token, cancel_handles, "token"));
    if (strength == TUTTI_CANCEL_STOP) {
      object->stop();
    } else if (strength == TUTTI_CANCEL_CANCEL) {
      object->cancel();
    } else {
      return base::invalid_argument("argument 'strength' must be TUTTI_CANCEL_STOP or TUTTI_CANCEL_CANCEL, got ",
                                    strength);
    }
    return Status();
  });
}

int32_t tutti_cancel_set_deadline(tutti_cancel *token, int64_t timeout_ms, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<CancelObject> object, find(token, cancel_handles, "token"));
    object->set_deadline(timeout_ms < 0 ? base::Deadline::never() : base::Deadline::after_ms(timeout_ms));
    return Status();
  });
}

tutti_cancel *tutti_cancel_get_current(void) {
  return guard_value<tutti_cancel *>(nullptr, []() -> tutti_cancel * {
    RunningFunction *const running = RunningFunction::current();
    return running == nullptr ? nullptr : static_cast<tutti_cancel *>(running->token_handle());
  });
}

int32_t tutti_cancel_get_state(const tutti_cancel *token) {
  const Ref<CancelObject> object = peek_shared(token, cancel_handles);
  if (!object) return TUTTI_CANCEL_NONE;
  if (!object->token()->check().ok()) return TUTTI_CANCEL_CANCEL;
  return static_cast<int32_t>(object->token()->level());
}
