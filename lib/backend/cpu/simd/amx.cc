// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/amx.h"

#if TUTTI_HAS_TILE_UNIT
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tutti::impl::backend::cpu {

#if TUTTI_HAS_TILE_UNIT

namespace {

/// What `ldtilecfg` reads: palette 1, and the size of each register.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  Configuration() {
    for (int i = 0; i < 8; ++i)
      row_bytes[i] = kTileRowBytes, rows[i] = kTileSide;
  }
};

bool processor_has_it() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBfloat16) == 0 || (d & kTiles) == 0) return false;
  constexpr unsigned kTileState = 3u << 17;  // configuration and data are saved when threads are switched
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

/// Linux gives the registers to a process that asks: arch_prctl(2), ARCH_REQ_XCOMP_PERM. It refuses where a thread has
/// a signal stack that is too small for them.
bool process_may_use_it() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

void AmxUnit::begin() {
  static const Configuration configuration;
  asm volatile("ldtilecfg %0" : : "m"(configuration));
}

void AmxUnit::end() { asm volatile("tilerelease"); }

bool has_amx() {
  static const bool has = processor_has_it() && process_may_use_it();
  return has;
}

#else

bool has_amx() { return false; }

#endif

}  // namespace tutti::impl::backend::cpu
