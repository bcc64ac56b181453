// SPDX-License-Identifier: Apache-2.0
//
// Cancel tokens behind handles. A deadline can be set after creation, so the object holds a token and a timer that
// cancels it.
#ifndef TUTTI_CAPI_CANCEL_C_H_
#define TUTTI_CAPI_CANCEL_C_H_

#include <tutti/cancel.h>

#include <mutex>

#include "base/cancel.h"
#include "capi/handles.h"

namespace tutti::impl::capi {

class CancelObject : public base::Object {
 public:
  CancelObject() : token_(base::CancelToken::create()) {}
  const Ref<base::CancelToken> &token() const { return token_; }
  /// The deadline that calls started from now on have.
  void set_deadline(base::Deadline deadline);
  /// A token for one call: follows the handle's token and has its deadline.
  Ref<base::CancelToken> for_call() const;

 private:
  const Ref<base::CancelToken> token_;
  mutable std::mutex mutex_;
  base::Deadline deadline_;  // guarded by mutex_
};

extern constinit HandleType<CancelObject> cancel_handles;

/// The token of an optional argument: null for NULL, an error for a wrong handle.
Result<Ref<base::CancelToken>> call_token(tutti_cancel *cancel);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_CANCEL_C_H_
