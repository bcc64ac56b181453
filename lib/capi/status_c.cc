// SPDX-License-Identifier: Apache-2.0
#include <tutti/status.h>

#include <utility>

#include "base/json.h"
#include "capi/guard.h"

namespace tutti::impl::capi {

constinit HandleType<ErrorObject> error_handles{"error"};

ErrorObject::ErrorObject(base::ErrorPointer error) : error_(std::move(error)), text_(error_->to_string()) {
  if (error_->cause()) static_cast<void>(cause_.set(base::make_ref<ErrorObject>(error_->cause()), error_handles));
}

namespace {

base::Json json_of(const base::Error &error) {
  base::Json json(
      base::JsonObject{{"code", base::name(error.code())}, {"domain", error.domain()}, {"message", error.message()}});
  if (error.subcode() != 0) json.set("subcode", error.subcode());
  base::Json details;
  for (const auto &[key, value] : error.details())
    details.set(key, value);
  if (!details.is_null()) json.set("details", std::move(details));
  if (error.cause()) json.set("cause", json_of(*error.cause()));
  return json;
}

}  // namespace

const std::string &ErrorObject::json() const {
  std::call_once(json_once_, [&] { json_ = json_of(*error_).dump(); });
  return json_;
}

int32_t report(const Status &status, tutti_error **err) noexcept {
  if (status.ok()) return TUTTI_OK;
  if (err != nullptr) {
    *err = nullptr;
    try {
      static_cast<void>(emit(base::make_ref<ErrorObject>(status.error()), error_handles, err));
    } catch (...) {
      *err = nullptr;
    }
  }
  return static_cast<int32_t>(status.code());
}

Status status_from_callback(int32_t code, tutti_error *error, std::string_view what) {
  if (code == TUTTI_OK) {
    unref_handle(error, error_handles);
    return Status();
  }
  Status cause;
  if (const Ref<ErrorObject> object = peek(error, error_handles)) {
    cause = Status::from_error(object->pointer());
  } else {
    const base::Code number = base::code_from_number(code);
    cause = Status(number, base::concat("the callback returned code ", code, " without an error"))
                .with_domain("user", code);
  }
  unref_handle(error, error_handles);
  return what.empty() ? cause : cause.wrap(base::concat(what, " failed"));
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

const char *tutti_code_get_name(int32_t code) {
  return guard_value<const char *>("UNKNOWN", [&] { return base::name(base::code_from_number(code)).data(); });
}

void tutti_error_ref(tutti_error *error) { ref_handle(error, error_handles); }

// A forked child is told errors and releases them; there is nothing of another process in them.
void tutti_error_unref(tutti_error *error) {
  static_cast<void>(base::HandleTable::process().unref(error, error_handles));
}

int32_t tutti_error_get_code(const tutti_error *error) {
  const Ref<ErrorObject> object = peek(error, error_handles);
  return object ? static_cast<int32_t>(object->error().code()) : TUTTI_INVALID_ARGUMENT;
}

int64_t tutti_error_get_subcode(const tutti_error *error) {
  const Ref<ErrorObject> object = peek(error, error_handles);
  return object ? object->error().subcode() : 0;
}

const char *tutti_error_get_domain(const tutti_error *error) {
  const Ref<ErrorObject> object = peek(error, error_handles);
  return object ? object->error().domain().c_str() : "";
}

const char *tutti_error_get_message(const tutti_error *error) {
  const Ref<ErrorObject> object = peek(error, error_handles);
  return object ? object->error().message().c_str() : "";
}

const char *tutti_error_get_text(const tutti_error *error) {
  const Ref<ErrorObject> object = peek(error, error_handles);
  return object ? object->text().c_str() : "";
}

const char *tutti_error_get_json(const tutti_error *error) {
  return guard_value("", [&] {
    const Ref<ErrorObject> object = peek(error, error_handles);
    return object ? object->json().c_str() : "";
  });
}

tutti_error *tutti_error_get_cause(const tutti_error *error) {
  const Ref<ErrorObject> object = peek(error, error_handles);
  return object ? static_cast<tutti_error *>(object->cause()) : nullptr;
}

int64_t tutti_error_get_detail_count(const tutti_error *error) {
  const Ref<ErrorObject> object = peek(error, error_handles);
  return object ? static_cast<int64_t>(object->error().details().size()) : 0;
}

namespace {

const base::Error::Detail *detail_at(const Ref<ErrorObject> &object, int64_t index) {
  if (!object || index < 0 || index >= static_cast<int64_t>(object->error().details().size())) return nullptr;
  return &object->error().details()[static_cast<size_t>(index)];
}

}  // namespace

const char *tutti_error_get_detail_key(const tutti_error *error, int64_t index) {
  const base::Error::Detail *detail = detail_at(peek(error, error_handles), index);
  return detail != nullptr ? detail->first.c_str() : nullptr;
}

const char *tutti_error_get_detail_value(const tutti_error *error, int64_t index) {
  const base::Error::Detail *detail = detail_at(peek(error, error_handles), index);
  return detail != nullptr ? detail->second.c_str() : nullptr;
}

int32_t tutti_error_create(int32_t code, const char *domain, const char *message, const tutti_error *cause,
                           tutti_error **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_TRY(require(message, "message"));
    if (code == TUTTI_OK) return base::invalid_argument("argument 'code' is TUTTI_OK");
    Status status =
        Status(base::code_from_number(code), message).with_domain(domain != nullptr ? domain : "user", code);
    if (cause != nullptr) {
      TUTTI_ASSIGN(const Ref<ErrorObject> object, find(cause, error_handles, "cause"));
      status = status.with_cause(Status::from_error(object->pointer()));
    }
    return emit(base::make_ref<ErrorObject>(status.error()), error_handles, out);
  });
}

int32_t tutti_error_set(tutti_error **err, int32_t code, const char *message) {
  if (code == TUTTI_OK) return TUTTI_OK;
  return guard(err, [&]() -> Status {
    return Status(base::code_from_number(code), message != nullptr ? message : "").with_domain("user", code);
  });
}
