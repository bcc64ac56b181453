// SPDX-License-Identifier: Apache-2.0
//
// What an exception means as a Status, for the places at which none may go further: the C interface, callbacks,
// threads. Neither function needs memory to say that there is none.
//
//   try { ... } catch (...) { status = status_of_exception(); }
//
// Threads: any.
#ifndef TUTTI_BASE_EXCEPTIONS_H_
#define TUTTI_BASE_EXCEPTIONS_H_

#include <cxxabi.h>

#include "base/status.h"

namespace tutti::impl::base {

/// RESOURCE_EXHAUSTED; allocates nothing.
Status out_of_memory() noexcept;

/// Does it say what out_of_memory() says, wrapped or not?
bool is_out_of_memory(const Status &status);

/// The exception being handled: out_of_memory() for std::bad_alloc, and where there is no memory to describe another;
/// RESOURCE_EXHAUSTED for what the system refuses for want of something; else INTERNAL with its text. In handlers only.
Status status_of_exception() noexcept;

/// Runs `body`, which returns a Status, and makes one of what it throws. The end of a thread by pthread_exit() or
/// pthread_cancel() goes on.
template <typename Body>
Status without_exceptions(Body &&body) {
  try {
    return body();
  } catch (const abi::__forced_unwind &) {
    throw;
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_EXCEPTIONS_H_
