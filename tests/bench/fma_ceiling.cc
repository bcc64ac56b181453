// SPDX-License-Identifier: Apache-2.0
#include "fma_ceiling.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "meters.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fma_ceiling.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::testing::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Operations done. Twelve chains hide a latency of four to five cycles on two units, and with two factors fit sixteen
/// registers. They start from numbers in `memory`, so that no two are known to be equal; all converge to 1.
double run_multiply_adds(int64_t rounds, float *memory) {
  const hn::ScalableTag<float> d;
  const auto f = hn::Set(d, 0.5f);
  const auto g = hn::Set(d, 0.5f);
  auto a0 = hn::Set(d, memory[0]), a1 = hn::Set(d, memory[1]), a2 = hn::Set(d, memory[2]);
  auto a3 = hn::Set(d, memory[3]), a4 = hn::Set(d, memory[4]), a5 = hn::Set(d, memory[5]);
  auto b0 = hn::Set(d, memory[6]), b1 = hn::Set(d, memory[7]), b2 = hn::Set(d, memory[8]);
  auto b3 = hn::Set(d, memory[9]), b4 = hn::Set(d, memory[10]), b5 = hn::Set(d, memory[11]);
  for (int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, f, g), a1 = hn::MulAdd(a1, f, g), a2 = hn::MulAdd(a2, f, g);
    a3 = hn::MulAdd(a3, f, g), a4 = hn::MulAdd(a4, f, g), a5 = hn::MulAdd(a5, f, g);
    b0 = hn::MulAdd(b0, f, g), b1 = hn::MulAdd(b1, f, g), b2 = hn::MulAdd(b2, f, g);
    b3 = hn::MulAdd(b3, f, g), b4 = hn::MulAdd(b4, f, g), b5 = hn::MulAdd(b5, f, g);
  }
  a0 = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  b0 = hn::Add(hn::Add(hn::Add(b0, b1), hn::Add(b2, b3)), hn::Add(b4, b5));
  hn::StoreU(hn::Add(a0, b0), d, memory);
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

const char *run_target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace tutti::testing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::testing {

HWY_EXPORT(run_multiply_adds);
HWY_EXPORT(run_target_name);

namespace {

/// A stretch of `seconds` on this thread; operations done.
double multiply_add_for(double seconds) {
  float memory[64] = {};  // one vector of the widest kind
  double operations = 0;
  for (const double start = wall_seconds(); wall_seconds() - start < seconds;)
    operations += HWY_DYNAMIC_DISPATCH(run_multiply_adds)(20000, memory);
  volatile float kept = memory[0];
  static_cast<void>(kept);
  return operations;
}

}  // namespace

double fma_gflops(double seconds) {
  constexpr int kStretches = 20;
  double best = 0;
  for (int i = 0; i < kStretches; ++i) {
    const double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    const double operations = multiply_add_for(seconds / kStretches);
    best = std::max(best, operations / (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start) * 1e-9);
  }
  return best;
}

double fma_gflops_wall(int32_t threads, double seconds) {
  std::vector<double> operations(static_cast<size_t>(threads));
  const double start = wall_seconds();
  std::vector<std::thread> others;
  for (size_t i = 1; i < operations.size(); ++i)
    others.emplace_back([&, i] { operations[i] = multiply_add_for(seconds); });
  operations[0] = multiply_add_for(seconds);
  for (std::thread &other : others)
    other.join();
  double total = 0;
  for (double one : operations)
    total += one;
  return total / (wall_seconds() - start) * 1e-9;
}

const char *fma_target_name() { return HWY_DYNAMIC_DISPATCH(run_target_name)(); }

}  // namespace tutti::testing
#endif
