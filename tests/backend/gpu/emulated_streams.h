// SPDX-License-Identifier: Apache-2.0
//
// Work of a test's own on streams of emulated GPUs, whose memory the host can address.
//
//   FakeGroupOptions options;
//   options.issue = issue_on_emulated_streams();
//
// Threads: any.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATED_STREAMS_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATED_STREAMS_H_

#include <dlfcn.h>
#include <tutti/plugin/backend.h>

#include <cstdlib>
#include <functional>

#include "backend/memory.h"

/// Exported by the plug-ins of the emulated GPU. Puts work on a stream: when the stream has come to it, it is asked
/// until it says that it is done. From then on the stream goes on though nobody waits for it.
extern "C" void tutti_emulated_issue(tutti_stream *stream, const std::function<bool()> &work);

namespace tutti::testing {

using IssueWork = std::function<void(impl::backend::Stream &stream, std::function<bool()> work)>;

/// By the plug-in that TUTTI_TEST_BACKEND names; null where that is not one of the emulated GPU.
inline IssueWork issue_on_emulated_streams() {
  const char *const path = std::getenv("TUTTI_TEST_BACKEND");
  void *const plugin = path == nullptr || *path != '/' ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return nullptr;
  const auto issue = reinterpret_cast<decltype(&tutti_emulated_issue)>(dlsym(plugin, "tutti_emulated_issue"));
  if (issue == nullptr) return nullptr;
  return [issue](impl::backend::Stream &stream, const std::function<bool()> &work) { issue(stream.handle(), work); };
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATED_STREAMS_H_
