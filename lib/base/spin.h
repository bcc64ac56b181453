// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a moment without going to sleep: for what another processor is about to do, where to be woken would take
// longer than the wait. Whoever spins keeps a processor busy, so for a few microseconds only, and not where there are
// fewer processors than threads that could use them.
//
//   if (base::spin_until([&] { return ready.load(std::memory_order_acquire); }, base::kSpinTime)) ...
//   else: sleep
#ifndef TUTTI_BASE_SPIN_H_
#define TUTTI_BASE_SPIN_H_

#include <chrono>

namespace tutti::impl::base {

/// About what the waking of a thread takes, so that a wait in vain costs at most as much again.
inline constexpr std::chrono::nanoseconds kSpinTime = std::chrono::microseconds(20);

/// Tells the processor that this thread only waits.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns as soon as condition() holds, or after `most`; whether it held. Calls between() about every microsecond.
template <typename Condition, typename Between>
bool spin_until(const Condition &condition, std::chrono::nanoseconds most, const Between &between) {
  if (most <= std::chrono::nanoseconds::zero()) return condition();
  const auto end = std::chrono::steady_clock::now() + most;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      spin_pause();
    }
    between();
  } while (std::chrono::steady_clock::now() < end);
  return condition();
}
template <typename Condition>
bool spin_until(const Condition &condition, std::chrono::nanoseconds most) {
  return spin_until(condition, most, [] {});
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_SPIN_H_
