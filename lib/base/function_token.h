// SPDX-License-Identifier: Apache-2.0
//
// The token of the functions that a thread calls: which one ends the call that waits for them. Who calls functions of
// the host opens a scope; the C interface hands the token on when a function asks for it.
//
//   const FunctionToken scope(context.cancel);
//   TUTTI_TRY(function(element));                 // FunctionToken::current() is that of the context in there
//
// Threads: each has scopes of its own, which end in the order in which they were nested.
#ifndef TUTTI_BASE_FUNCTION_TOKEN_H_
#define TUTTI_BASE_FUNCTION_TOKEN_H_

#include "base/cancel.h"

namespace tutti::impl::base {

class FunctionToken {
 public:
  /// `token` may hold null (nothing ends the functions) and outlives the scope.
  explicit FunctionToken(const Ref<CancelToken> &token) noexcept;
  ~FunctionToken();
  FunctionToken(const FunctionToken &) = delete;
  FunctionToken &operator=(const FunctionToken &) = delete;

  /// That of the innermost scope of this thread; null without one.
  static Ref<CancelToken> current();

 private:
  const Ref<CancelToken> *const outer_;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_FUNCTION_TOKEN_H_
