// SPDX-License-Identifier: Apache-2.0
//
// A notifier: threads sleep on it until they are notified. For conditions over atomics that are checked without a lock:
//
//   waiter                                            publisher
//   notifier.wait([&] { return ready(); }, limits)    counter.store(n); notifier.notify();
//
// The condition's atomics must be written before notify(), and both sides use sequentially consistent order on them, so
// that no notification is lost. Notifying costs one load while nobody sleeps. Linux futexes underneath; no allocation,
// no lock.
#ifndef TUTTI_BASE_NOTIFIER_H_
#define TUTTI_BASE_NOTIFIER_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/cancel.h"
#include "base/spin.h"

namespace tutti::impl::base {

class Notifier {
 public:
  /// Wakes every sleeper.
  void notify() {
    if (sleepers_.load(std::memory_order_seq_cst) > 0) wake();
  }

  /// Returns once condition() holds: spins `spin_us`, then sleeps. False when `deadline` passes or the token is
  /// cancelled before. Wakes now and then to look at both, so a cancelled token is noticed within 20 ms.
  template <typename Condition>
  bool wait(Condition condition, int64_t spin_us, Deadline deadline, const CancelToken *token) {
    if (condition()) return true;
    if (spin_until(condition, std::chrono::microseconds(spin_us))) return true;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool satisfied = false;
    for (;;) {
      const uint32_t seen = notifications_.load(std::memory_order_seq_cst);
      if ((satisfied = condition())) break;
      if (deadline.passed() || (token != nullptr && !token->check().ok())) break;
      sleep(seen);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return satisfied;
  }

 private:
  void wake();
  void sleep(uint32_t seen);

  std::atomic<uint32_t> notifications_{0};
  std::atomic<int32_t> sleepers_{0};
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_NOTIFIER_H_
