// SPDX-License-Identifier: Apache-2.0
//
// Named counters: look one up once, keep the reference, add without a lock.
//
//   Counter &hits = counters.get("executable_cache.hits");      // at construction
//   hits.add(1);                                                 // anywhere
//   for (const auto &[name, value] : counters.snapshot()) ...
//
// Threads: all functions may be called from any thread. References stay valid as long as the Counters object.
#ifndef TUTTI_BASE_COUNTERS_H_
#define TUTTI_BASE_COUNTERS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/object.h"

namespace tutti::impl::base {

/// One number on a cache line of its own.
class alignas(64) Counter {
 public:
  void add(int64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  void set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  /// Keeps the larger of the present value and `value`.
  void raise_to(int64_t value) {
    int64_t seen = value_.load(std::memory_order_relaxed);
    while (seen < value && !value_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

class Counters : public Object {
 public:
  /// The counter of this name, made at 0 on first use. Takes a lock.
  Counter &get(std::string_view name);
  /// All names and values, sorted by name; each value is exact, the set is not one moment.
  std::vector<std::pair<std::string, int64_t>> snapshot() const;
  /// Sets all to 0.
  void reset();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Counter, std::less<>> counters_;  // guarded by mutex_; nodes never move
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_COUNTERS_H_
