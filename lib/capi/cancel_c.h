// SPDX-License-Identifier: Apache-2.0
//
// Cancel tokens behind handles. A handle holds two tokens: one for calls that know how to stop politely, and one for
// calls that only wait, to which STOP is CANCEL. Calls use them directly, so a deadline set while they run counts too.
#ifndef TUTTI_CAPI_CANCEL_C_H_
#define TUTTI_CAPI_CANCEL_C_H_

#include <tutti/cancel.h>

#include <mutex>
#include <optional>

#include "base/cancel.h"
#include "capi/handles.h"

namespace tutti::impl::capi {

class CancelObject : public base::Object {
 public:
  CancelObject() : token_(base::CancelToken::create()), waits_(base::CancelToken::create()) {}
  /// A handle on a token of the library, for functions of the host.
  explicit CancelObject(const Ref<base::CancelToken> &token) : token_(token), waits_(token) {}
  const Ref<base::CancelToken> &token() const { return token_; }
  const Ref<base::CancelToken> &waits() const { return waits_; }
  void stop();
  void cancel();
  void set_deadline(base::Deadline deadline);

 private:
  const Ref<base::CancelToken> token_;
  const Ref<base::CancelToken> waits_;
};

extern constinit HandleType<CancelObject> cancel_handles;

/// The token of an optional argument: null for NULL, an error for a wrong handle.
Result<Ref<base::CancelToken>> call_token(tutti_cancel *cancel);
/// The same for a call that only waits.
Result<Ref<base::CancelToken>> wait_token(tutti_cancel *cancel);

/// A function of the host that runs on this thread, innermost of those that call each other.
class RunningFunction {
 public:
  RunningFunction() noexcept;
  ~RunningFunction();
  RunningFunction(const RunningFunction &) = delete;
  RunningFunction &operator=(const RunningFunction &) = delete;

  /// That of this thread; null when none runs.
  static RunningFunction *current();
  /// The handle of a token that follows base::FunctionToken::current(), made when first asked for: what the host does
  /// to it ends nothing else. Null where nothing ends the function, and where there is no memory.
  void *token_handle();
  /// What has ended the function, if it asked; else ok.
  Status interrupt() const { return base::check(token_.get()); }

 private:
  RunningFunction *const outer_;
  base::Ref<base::CancelToken> token_;  // null until asked for
  LentHandle handle_;
};

/// Makes a walk that outlives its calls obey the token of one of them: while the scope lives, the deadline of the
/// walk's own token is that of the call, and in the past once the call is cancelled. So the walk is interrupted, not
/// ended, and the next call goes on. Background threads of the walk see nothing of it.
class CallScope {
 public:
  /// `call` may be null.
  CallScope(base::CancelToken &walk, const base::CancelToken *call);
  ~CallScope();
  CallScope(const CallScope &) = delete;
  CallScope &operator=(const CallScope &) = delete;
  /// Moves the walk: `step` gives a Result<bool>. An interrupt comes back in the call's own words.
  template <typename Step>
  Result<bool> run(Step step) {
    for (;;) {
      Result<bool> more = step();
      if (!base::is_interrupt(more.status()) || walk_.level() == base::CancelLevel::cancel) return more;
      TUTTI_TRY(base::check(call_));
      // The call's deadline has moved away since.
      follow();
    }
  }

 private:
  void follow();

  std::mutex mutex_;  // held while the walk is told
  base::CancelToken &walk_;
  const base::CancelToken *const call_;
  std::optional<base::CancelToken::Listener> listener_;
};

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_CANCEL_C_H_
