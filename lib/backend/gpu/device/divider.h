// SPDX-License-Identifier: Apache-2.0
//
// Division of positions by sizes that are known before a kernel starts, by a multiplication (Granlund, Montgomery:
// "Division by invariant integers using multiplication", PLDI 1994). Kernels that move elements would otherwise spend
// more time on dividing than on memory.
//
//   const Divider columns = Divider::of(n);                   // host
//   const uint32_t row = divide(static_cast<uint32_t>(element), columns);  // device, 32 bits: a multiplication
//   const uint64_t row = divide(static_cast<uint64_t>(element), columns);  // 64 bits: a division
//
// All functions are constexpr, so that kernels can call them.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DIVIDER_H_
#define TUTTI_BACKEND_GPU_DEVICE_DIVIDER_H_

#include <cstdint>

namespace tutti::impl::backend::gpu {

struct Divider {
  /// 32 bits do where all positions and divisors are at most this.
  static constexpr int64_t kMost = int64_t{1} << 30;

  int64_t divisor = 1;
  uint32_t factor = 1, shift = 0;

  /// Any divisor above 0; 0 is taken for 1, there is nothing to divide then.
  static constexpr Divider of(int64_t divisor) {
    Divider made;
    made.divisor = divisor < 1 ? 1 : divisor;
    if (made.divisor > kMost) return made;
    while ((int64_t{1} << made.shift) < made.divisor)
      ++made.shift;
    const uint64_t by = static_cast<uint64_t>(made.divisor);
    made.factor = static_cast<uint32_t>((((uint64_t{1} << made.shift) - by) << 32) / by + 1);
    return made;
  }
};

constexpr uint32_t divide(uint32_t n, const Divider &by) {
  return (static_cast<uint32_t>(uint64_t{n} * by.factor >> 32) + n) >> by.shift;
}
constexpr uint64_t divide(uint64_t n, const Divider &by) { return n / static_cast<uint64_t>(by.divisor); }

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DIVIDER_H_
