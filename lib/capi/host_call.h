// SPDX-License-Identifier: Apache-2.0
//
// Calls of the host's functions. One that throws has failed like one that gives an error: threads, locks and waits of
// the library do not expect exceptions. A function can ask for the token that ends the call it is for
// (tutti_cancel_get_current); one that did and fails after its end was interrupted.
//
//   TUTTI_TRY(call_host("the map function", [&](tutti_error **error) { return map(user, inputs, error); }));
#ifndef TUTTI_CAPI_HOST_CALL_H_
#define TUTTI_CAPI_HOST_CALL_H_

#include <string_view>

#include "base/host_function.h"
#include "capi/cancel_c.h"
#include "capi/guard.h"

namespace tutti::impl::capi {

using base::catch_thrown;

/// Who says that the function failed, beside the reason that it gave.
enum class Teller { callee, caller };

/// Calls function(&error), which gives a code, and says how it ended.
template <typename Function>
Status call_host(std::string_view what, Function &&function, Teller teller = Teller::callee) {
  tutti_error *error = nullptr;
  int32_t code = TUTTI_OK;
  RunningFunction running;
  const Status thrown = catch_thrown(what, [&] { code = function(&error); });
  if (thrown.ok()) {
    const Status status = status_from_callback(code, error, teller == Teller::callee ? what : "");
    if (!status.ok()) TUTTI_TRY(running.interrupt());
    return status;
  }
  unref_handle(error, error_handles);
  return thrown;
}

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_HOST_CALL_H_
