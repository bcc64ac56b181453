// SPDX-License-Identifier: Apache-2.0
#include "base/notifier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace tutti::impl::base {
namespace {

constexpr int64_t look_around_ns = 20'000'000;

}  // namespace

void Notifier::wake() {
  notifications_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&notifications_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Notifier::sleep(uint32_t seen) {
  const timespec limit{0, look_around_ns};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&notifications_), FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
}

}  // namespace tutti::impl::base
