// SPDX-License-Identifier: Apache-2.0
//
// What the tests of vector kernels share: values, aligned scratch, every instruction set in turn.
#ifndef TUTTI_TESTS_BACKEND_CPU_SIMD_TESTING_H_
#define TUTTI_TESTS_BACKEND_CPU_SIMD_TESTING_H_

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/random/philox.h"
#include "testing.h"

namespace tutti::testing {

/// Values that repeat with `seed`, in [-1, 1).
inline std::vector<float> noise(int64_t n, uint64_t seed) {
  impl::base::RandomStream random(impl::base::RandomKey::of(seed, 1, 2));
  std::vector<float> values(static_cast<size_t>(n));
  for (float &value : values)
    value = 2 * impl::base::uniform_float(random.next()) - 1;
  return values;
}

/// Scratch aligned to a cache line.
struct Scratch {
  /// Floats behind it that nothing may touch.
  static constexpr int64_t kBehind = 4096;
  static constexpr float kUntouched = -7.25f;

  explicit Scratch(int64_t size)
      : floats(size),
        memory(static_cast<float *>(
                   std::aligned_alloc(64, static_cast<size_t>(((floats + kBehind) * 4 + 63) / 64 * 64 + 64))),
               std::free) {
    std::fill_n(memory.get() + floats, kBehind, kUntouched);
  }
  void expect_kept() const {
    for (int64_t i = 0; i < kBehind; ++i) {
      if (memory.get()[floats + i] != kUntouched)
        fail_msg("float %lld behind the scratch changed", static_cast<long long>(i));
    }
  }

  int64_t floats;
  std::unique_ptr<float, decltype(&std::free)> memory;
};

inline void expect_close(const std::vector<float> &got, const std::vector<double> &expected, double limit,
                         const char *what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(got[i]) - expected[i]);
    if (!(difference <= limit * (1 + std::fabs(expected[i])))) {
      fail_msg("%s: element %zu is %g, expected %g", what, i, static_cast<double>(got[i]), expected[i]);
    }
  }
}

/// Runs `body` on every instruction set there is.
template <typename Body>
void on_all_targets(const Body &body) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CPU_SIMD_TESTING_H_
