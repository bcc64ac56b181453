// SPDX-License-Identifier: Apache-2.0
//
// Calls of functions of the program: one that throws has failed; threads, locks and waits of the library do not expect
// exceptions.
//
//   (void)catch_thrown("the destroy function", [&] { destroy(user); });
//
// Threads: any.
#ifndef TUTTI_BASE_HOST_FUNCTION_H_
#define TUTTI_BASE_HOST_FUNCTION_H_

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string_view>

#include "base/exceptions.h"

namespace tutti::impl::base {

/// Calls the function; what it throws is INTERNAL, RESOURCE_EXHAUSTED where memory ran out. `what` says which function
/// it was. The cancellation of a thread (pthread_cancel) goes on.
template <typename Function>
Status catch_thrown(std::string_view what, Function &&function) {
  try {
    function();
    return Status();
  } catch (const abi::__forced_unwind &) {
    throw;
  } catch (const std::bad_alloc &) {
    return without_exceptions([&] { return resource_exhausted(what, " failed: out of memory"); });
  } catch (const std::exception &thrown) {
    return without_exceptions([&] { return internal_error(what, " threw an exception: ", thrown.what()); });
  } catch (...) {
    return without_exceptions([&] { return internal_error(what, " threw an exception of an unknown type"); });
  }
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_HOST_FUNCTION_H_
