// SPDX-License-Identifier: Apache-2.0
//
// A table of keys and values that all workers of a cluster share, for the few words that they need outside their
// operations: addresses, and why one gave up. Threads: calls may come from any thread.
#ifndef TUTTI_COLLECTIVE_SHARED_TABLE_H_
#define TUTTI_COLLECTIVE_SHARED_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/status.h"

namespace tutti::impl::collective {

class SharedTable {
 public:
  virtual ~SharedTable() = default;
  /// A key that is there gets a new value, or with `only_if_absent` stays as it is.
  virtual base::Status put(std::string_view key, std::string_view value, base::Deadline deadline,
                           bool only_if_absent) = 0;
  /// Waits for the key; NOT_FOUND when it is not there until the deadline. Who keeps the table may say so later, by
  /// `patience_ms` at most: another error then, and the table is of no further use.
  virtual base::Result<std::string> find(std::string_view key, base::Deadline deadline, int64_t patience_ms) = 0;
  base::Result<std::string> find(std::string_view key, base::Deadline deadline) {
    return find(key, deadline, kUsualPatienceMs);
  }

  static constexpr int64_t kUsualPatienceMs = 5000;
  /// Where the deadline is a limit that somebody has set.
  static constexpr int64_t kPatienceAtLimitMs = 1000;
};

}  // namespace tutti::impl::collective

#endif  // TUTTI_COLLECTIVE_SHARED_TABLE_H_
