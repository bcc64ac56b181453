// SPDX-License-Identifier: Apache-2.0
//
// The matrix unit of Intel processors (AMX with bfloat16; Intel 64 and IA-32 Architectures Software Developer's Manual,
// volume 1, chapter 18): eight tile registers of 16 rows of 64 bytes, and one instruction that adds to a tile of 16x16
// f32 the product of a tile of 16 rows of 16 pairs of bfloat16 and one of 16 pairs by 16 columns. Products of bfloat16
// are exact in f32, sums are rounded to nearest even, denormal numbers count as zero.
//
//   if (!has_amx()) return;
//   const TileScope<AmxUnit> scope;
//   AmxUnit::zero<0>();
//   AmxUnit::load<4>(rows, 64);
//   AmxUnit::load<5>(columns, 64);
//   AmxUnit::multiply<0, 4, 5>();
//   AmxUnit::store<0>(sums, 64);
//
// Registers belong to the thread that is in a scope; no compiler uses them for anything else.
#ifndef TUTTI_BACKEND_CPU_SIMD_AMX_H_
#define TUTTI_BACKEND_CPU_SIMD_AMX_H_

#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__)
#define TUTTI_HAS_TILE_UNIT 1
#else
#define TUTTI_HAS_TILE_UNIT 0
#endif

namespace tutti::impl::backend::cpu {

constexpr int kTileSide = 16;                           ///< rows, and columns of f32
constexpr int kTileDepth = 32;                          ///< bfloat16 in a row
constexpr int64_t kTileRowBytes = 64;                   ///< when rows lie one behind the other
constexpr int64_t kTileWords = kTileSide * kTileDepth;  ///< bfloat16 in a tile

/// Does this processor have one, and does the system let this process use it? Asked once.
bool has_amx();

#if TUTTI_HAS_TILE_UNIT
struct AmxUnit {
  static void begin();  ///< all eight registers are whole tiles
  static void end();

  template <int kRegister>
  static inline __attribute__((always_inline)) void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kRegister));
  }
  /// From kOffset bytes behind `from` on.
  template <int kRegister, int kOffset = 0>
  static inline __attribute__((always_inline)) void load(const void *from, int64_t row_bytes) {
    asm volatile("tileloadd %c3(%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(row_bytes), "i"(kRegister), "i"(kOffset)
                 : "memory");
  }
  template <int kRegister>
  static inline __attribute__((always_inline)) void store(void *to, int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(kRegister) : "memory");
  }
  /// sum += left * right, `left` being rows and `right` columns.
  template <int kSum, int kLeft, int kRight>
  static inline __attribute__((always_inline)) void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
  }
};
#endif

/// While it lives, its thread may use the unit's registers.
template <typename Unit>
struct TileScope {
  TileScope() { Unit::begin(); }
  ~TileScope() { Unit::end(); }
  TileScope(const TileScope &) = delete;
  TileScope &operator=(const TileScope &) = delete;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_AMX_H_
