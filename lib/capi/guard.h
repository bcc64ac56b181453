// SPDX-License-Identifier: Apache-2.0
//
// The edge between C and C++: no exception leaves the library, and a Status becomes a code and an error handle.
//
//   int32_t tutti_x(tutti_t *t, tutti_u **out, tutti_error **err) {
//     return guard(err, [&]() -> Status {
//       TUTTI_TRY(clear(out, "out"));
//       ...
//     });
//   }
#ifndef TUTTI_CAPI_GUARD_H_
#define TUTTI_CAPI_GUARD_H_

#include <tutti/status.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "base/exceptions.h"
#include "base/status.h"
#include "base/thread.h"
#include "capi/handles.h"

namespace tutti::impl::capi {

/// An error as the C interface shows it.
class ErrorObject : public base::Object {
 public:
  explicit ErrorObject(base::ErrorPointer error);
  const base::Error &error() const { return *error_; }
  const base::ErrorPointer &pointer() const { return error_; }
  const std::string &text() const { return text_; }
  /// Made when it is first asked for.
  const std::string &json() const;
  /// The handle of the cause, lent; null when there is none.
  void *cause() const { return cause_.get(); }

 private:
  base::ErrorPointer error_;
  std::string text_;
  mutable std::once_flag json_once_;
  mutable std::string json_;
  LentHandle cause_;
};

extern constinit HandleType<ErrorObject> error_handles;

/// Stores the status in *err when both are there, and gives its code. Never fails: without memory *err stays NULL.
int32_t report(const Status &status, tutti_error **err) noexcept;

/// The status that a callback's code and error stand for. Takes over the reference in `error`. `what` says which
/// callback it was; where it is empty, the caller says so.
Status status_from_callback(int32_t code, tutti_error *error, std::string_view what);

/// An output handle is NULL until the call has succeeded.
template <typename C>
Status clear(C **out, std::string_view argument) {
  if (out == nullptr) return base::invalid_argument("argument '", argument, "' is NULL");
  *out = nullptr;
  return Status();
}

/// Any other pointer that must not be NULL.
inline Status require(const void *pointer, std::string_view argument) {
  if (pointer != nullptr) return Status();
  return base::invalid_argument("argument '", argument, "' is NULL");
}

/// Set while a call uses an object that serves one thread at a time.
class BusyFlag {
 public:
  bool try_lock() { return !busy_.exchange(true, std::memory_order_acquire); }
  void unlock() { busy_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> busy_{false};
};
using SoleUse = std::unique_lock<BusyFlag>;

/// Takes the object for one call; FAILED_PRECONDITION while another call has it, also one further up on this thread.
inline Result<SoleUse> sole_use(BusyFlag &flag, std::string_view what) {
  SoleUse use(flag, std::try_to_lock);
  if (use.owns_lock()) return use;
  return base::failed_precondition("this ", what, " is in use by another call; it serves one thread at a time");
}

/// Runs `body`, which returns a Status, and reports it.
template <typename Body>
int32_t guard(tutti_error **err, Body &&body) noexcept {
  try {
    if (const Status alive = base::check_not_forked(); !alive.ok()) return report(alive, err);
    return report(body(), err);
  } catch (...) {
    return report(base::status_of_exception(), err);
  }
}

/// For functions without an error argument: `otherwise` when something is thrown.
template <typename T, typename Body>
T guard_value(T otherwise, Body &&body) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_GUARD_H_
