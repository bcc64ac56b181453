// SPDX-License-Identifier: Apache-2.0
//
// Memory for what programs keep between their inputs and their results. It belongs to a place of work, whose programs
// run one after the other on a stream, and grows to the largest need among them; none finds there what another has
// left. Internal to this folder.
//
// Threads: one.
#ifndef TUTTI_DISTRIBUTE_PROGRAM_WORKSPACE_H_
#define TUTTI_DISTRIBUTE_PROGRAM_WORKSPACE_H_

#include <cstdint>
#include <utility>

#include "backend/backend.h"
#include "base/status.h"

namespace tutti::impl::distribute {

class Workspace {
 public:
  /// `stream`: what uses the memory is issued there. It outlives the workspace.
  Workspace(backend::DeviceRef device, backend::Stream &stream) : device_(std::move(device)), stream_(stream) {}

  /// Makes room for so many bytes. Where it must grow, waits for the stream and gives back what there is before it
  /// takes more: both need not fit. RESOURCE_EXHAUSTED leaves as much as there was, unless that is gone as well, which
  /// it says.
  base::Status reserve(int64_t bytes, int64_t alignment);
  void *pointer() const { return memory_.device_pointer(); }
  /// Another one whenever the memory may have moved: programs that were bound to it are bound again.
  int64_t generation() const { return generation_; }

 private:
  base::Status allocate(int64_t bytes);

  const backend::DeviceRef device_;
  backend::Stream &stream_;
  backend::Buffer memory_;
  int64_t alignment_ = 64;
  int64_t generation_ = 0;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PROGRAM_WORKSPACE_H_
