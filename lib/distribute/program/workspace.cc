// SPDX-License-Identifier: Apache-2.0
#include "distribute/program/workspace.h"

#include <algorithm>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Status;

Status Workspace::allocate(int64_t bytes) {
  ++generation_;
  TUTTI_ASSIGN(memory_, device_->allocate(bytes, alignment_));
  return Status();
}

Status Workspace::reserve(int64_t bytes, int64_t alignment) {
  const int64_t before = memory_.size_bytes();
  if (!memory_.empty() && bytes <= before && alignment <= alignment_) return Status();
  if (!memory_.empty()) TUTTI_TRY(stream_.synchronize());
  memory_ = backend::Buffer();
  alignment_ = std::max(alignment_, alignment);
  const Status grown = allocate(std::max({bytes, before, int64_t{64}}));
  if (grown.ok() || before == 0 || allocate(before).ok()) return grown;
  return Status(grown).wrap(
      base::concat("the workspace of ", before, " bytes was released and cannot be allocated again"));
}

}  // namespace tutti::impl::distribute
