// SPDX-License-Identifier: Apache-2.0
//
// The plug-in's side of the C tables, shared by the backends of this tree: statuses into error sinks, texts into
// writers, exceptions stopped.
//
//   int32_t compile(const tutti_compile_request *request, tutti_executable **out, tutti_error_sink *sink) {
//     return guarded(host, sink, [&]() -> base::Status { ... });
//   }
#ifndef TUTTI_BACKEND_PLUGIN_SIDE_H_
#define TUTTI_BACKEND_PLUGIN_SIDE_H_

#include <tutti/plugin/backend.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/status.h"

namespace tutti::impl::backend {

/// Hands a bad status, with its causes, to the host; the code to return.
int32_t report(const tutti_backend_host *host, tutti_error_sink *sink, const base::Status &status);

/// Runs `body` (returns Status) and reports what went wrong; exceptions become RESOURCE_EXHAUSTED or INTERNAL.
template <typename Body>
int32_t guarded(const tutti_backend_host *host, tutti_error_sink *sink, Body &&body) noexcept {
  try {
    const base::Status status = std::forward<Body>(body)();
    return status.ok() ? 0 : report(host, sink, status);
  } catch (const std::bad_alloc &) {
    host->set_error(sink, static_cast<int32_t>(base::Code::resource_exhausted), "out of memory");
    return static_cast<int32_t>(base::Code::resource_exhausted);
  } catch (const std::exception &error) {
    host->set_error(sink, static_cast<int32_t>(base::Code::internal), error.what());
    return static_cast<int32_t>(base::Code::internal);
  }
}

/// Hands a text to a writer.
inline void write_text(tutti_text_writer write, void *user, const std::string &text) {
  write(user, text.data(), text.size());
}

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_PLUGIN_SIDE_H_
