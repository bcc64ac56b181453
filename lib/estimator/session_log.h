// SPDX-License-Identifier: Apache-2.0
//
// What a session writes to the log about how it trains: at its beginning, and what has turned out at its end.
//
// Threads: the session's.
#ifndef TUTTI_ESTIMATOR_SESSION_LOG_H_
#define TUTTI_ESTIMATOR_SESSION_LOG_H_

#include <cstdint>
#include <string>

#include "base/log.h"
#include "distribute/strategy/strategy.h"
#include "distribute/train/trainer.h"
#include "estimator/session_statistics.h"

namespace tutti::impl::estimator {

class SessionLog {
 public:
  /// `logger` outlives it.
  explicit SessionLog(const base::Logger &logger) : logger_(logger) {}

  /// `batch_size`: of one worker's input where that is its own, else of all.
  void begin(const distribute::Trainer &trainer, const distribute::Strategy &strategy, int64_t batch_size);
  /// Where the time went, as far as that is worth a line.
  void end(const distribute::Trainer &trainer, const SessionStatistics &statistics) const;

 private:
  void log_input_wait(const distribute::Trainer &trainer, const SessionStatistics &statistics) const;
  void log_how_steps_ran(const distribute::Trainer &trainer) const;
  void log_step_shares(const distribute::StepShares &shares) const;

  const base::Logger &logger_;
  std::string how_steps_run_;  // as it was logged at the beginning; "" = it was not
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_SESSION_LOG_H_
