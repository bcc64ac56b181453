// SPDX-License-Identifier: Apache-2.0
//
// Flushes denormal numbers to zero while programs run, and gives the calling thread its own mode back afterwards: it
// may be anybody's thread.
#ifndef TUTTI_BACKEND_CPU_KERNEL_FLOATING_POINT_MODE_H_
#define TUTTI_BACKEND_CPU_KERNEL_FLOATING_POINT_MODE_H_

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tutti::impl::backend::cpu {

class FloatingPointMode {
 public:
#if defined(__SSE__)
  FloatingPointMode() : before_(_mm_getcsr()) {
    if ((before_ & kFlush) != kFlush) _mm_setcsr(before_ | kFlush);
  }
  ~FloatingPointMode() {
    if ((before_ & kFlush) != kFlush) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kFlush = 0x8040;  // flush results, treat operands as zero
  unsigned before_;
#else
  FloatingPointMode() {}
  ~FloatingPointMode() {}

 public:
#endif
  FloatingPointMode(const FloatingPointMode &) = delete;
  FloatingPointMode &operator=(const FloatingPointMode &) = delete;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_FLOATING_POINT_MODE_H_
