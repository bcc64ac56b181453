// SPDX-License-Identifier: Apache-2.0
//
// A group for tests that behaves like a communication library with its own streams: an engine thread carries operations
// out some time after all ranks have begun them, possibly out of order, and spoils what nobody may read meanwhile. Code
// that passes with it neither relies on begin() doing work, nor on the order of completion, nor on buffers between
// begin and wait.
#ifndef TUTTI_COLLECTIVE_FAKE_FAKE_GROUP_H_
#define TUTTI_COLLECTIVE_FAKE_FAKE_GROUP_H_

#include <memory>
#include <vector>

#include "collective/group.h"

namespace tutti::impl::collective::fake {

struct FakeGroupOptions {
  uint64_t seed = 1;
  /// Each operation takes a random time up to this.
  int64_t max_delay_us = 200;
  /// Operations that are ready complete in random order instead of first begun, first done.
  bool reorder = true;
  /// Floating-point buffers are filled with NaN between begin and completion, and so are slices that reduce_scatter
  /// leaves unspecified.
  bool spoil = true;
  /// The group aborts by itself when it comes to this operation; negative = never.
  Ticket abort_at = -1;
  int64_t timeout_ms = 10000;
};

class FakeGroup {
 public:
  /// The handles of all ranks, in order.
  static base::Result<std::vector<std::unique_ptr<Group>>> create(int32_t size, int32_t parts,
                                                                  const FakeGroupOptions &options);
};

}  // namespace tutti::impl::collective::fake

#endif  // TUTTI_COLLECTIVE_FAKE_FAKE_GROUP_H_
