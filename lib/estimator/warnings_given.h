// SPDX-License-Identifier: Apache-2.0
//
// Warnings that are said once, however often their cause is met.
//
// Threads: any.
#ifndef TUTTI_ESTIMATOR_WARNINGS_GIVEN_H_
#define TUTTI_ESTIMATOR_WARNINGS_GIVEN_H_

#include <mutex>
#include <set>
#include <string>

#include "base/log.h"

namespace tutti::impl::estimator {

class WarningsGiven {
 public:
  /// Logs a text that has not been logged before; nothing for an empty one.
  void warn(const base::Logger &logger, const std::string &text) {
    if (text.empty()) return;
    {
      std::lock_guard lock(mutex_);
      if (!given_.insert(text).second) return;
    }
    logger.warning(text);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> given_;  // guarded by mutex_
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_WARNINGS_GIVEN_H_
