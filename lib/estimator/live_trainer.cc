// SPDX-License-Identifier: Apache-2.0
#include "estimator/live_trainer.h"

namespace tutti::impl::estimator {

std::unique_lock<std::mutex> LiveTrainer::take_turn() {
  const int64_t arrived = arrived_.load();
  std::unique_lock lock(mutex_);
  looked_.wait(lock, [&] { return served_ >= arrived; });
  return lock;
}

base::Result<bool> LiveTrainer::look(const Function &function) {
  arrived_.fetch_add(1);
  std::unique_lock lock(mutex_);
  const bool found = trainer_ != nullptr;
  const base::Status status = found ? function(*trainer_, in_session_) : base::Status();
  ++served_;
  lock.unlock();
  looked_.notify_all();
  TUTTI_TRY(status);
  return found;
}

}  // namespace tutti::impl::estimator
