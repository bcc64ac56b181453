// SPDX-License-Identifier: Apache-2.0
#include "base/hash/checksum.h"

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti::impl::base {

namespace {

// The polynomial 0x1EDC6F41 with its bits reversed.
constexpr uint32_t kPolynomial = 0x82f63b78;

// Slicing by eight: tables[k][b] is the checksum of byte b followed by k zero bytes.
constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

uint64_t load64(const unsigned char *from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

uint32_t portable_bytes(const unsigned char *data, size_t size, uint32_t state) {
  for (size_t i = 0; i < size; ++i)
    state = (state >> 8) ^ kTables[0][(state ^ data[i]) & 0xff];
  return state;
}

using Update = uint32_t (*)(const unsigned char *data, size_t size, uint32_t state);

uint32_t portable_crc(const unsigned char *data, size_t size, uint32_t state) {
  for (; size >= 8; data += 8, size -= 8) {
    const uint64_t word = load64(data) ^ state;
    state = 0;
    for (size_t k = 0; k < 8; ++k)
      state ^= kTables[7 - k][word >> (8 * k) & 0xff];
  }
  return portable_bytes(data, size, state);
}

#if defined(__x86_64__)
bool has_instruction() { return __builtin_cpu_supports("sse4.2"); }

// Three strands hide the latency of the instruction. A strand's state is moved past the bytes of the next one by
// tables: shifting by n zero bytes is linear in the state. Source: Gopal et al., "Fast CRC Computation for iSCSI
// Polynomial Using CRC32 Instruction", Intel, 2011.
constexpr size_t kStrand = 1024;

using ShiftTables = std::array<std::array<uint32_t, 256>, 4>;

constexpr uint32_t shift_by_zeros(uint32_t state, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    state = (state >> 8) ^ kTables[0][state & 0xff];
  return state;
}

// Built from the 32 single-bit states; at run time, once, since it is too much for the compiler.
ShiftTables make_shift_tables() {
  std::array<uint32_t, 32> of_bit;
  for (uint32_t bit = 0; bit < 32; ++bit)
    of_bit[bit] = shift_by_zeros(uint32_t{1} << bit, kStrand);
  ShiftTables tables{};
  for (uint32_t k = 0; k < 4; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (uint32_t bit = 0; bit < 8; ++bit) {
        if ((byte >> bit & 1) != 0) tables[k][byte] ^= of_bit[8 * k + bit];
      }
    }
  }
  return tables;
}

uint32_t shift_strand(const ShiftTables &tables, uint32_t state) {
  return tables[0][state & 0xff] ^ tables[1][state >> 8 & 0xff] ^ tables[2][state >> 16 & 0xff] ^
         tables[3][state >> 24];
}

[[gnu::target("sse4.2")]] uint32_t instruction_crc(const unsigned char *data, size_t size, uint32_t state) {
  static const ShiftTables tables = make_shift_tables();
  for (; size >= 3 * kStrand; data += 3 * kStrand, size -= 3 * kStrand) {
    uint64_t first = state, second = 0, third = 0;
    for (size_t i = 0; i < kStrand; i += 8) {
      first = __builtin_ia32_crc32di(first, load64(data + i));
      second = __builtin_ia32_crc32di(second, load64(data + kStrand + i));
      third = __builtin_ia32_crc32di(third, load64(data + 2 * kStrand + i));
    }
    state = shift_strand(tables, static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    state = shift_strand(tables, state) ^ static_cast<uint32_t>(third);
  }
  uint64_t wide = state;
  for (; size >= 8; data += 8, size -= 8)
    wide = __builtin_ia32_crc32di(wide, load64(data));
  state = static_cast<uint32_t>(wide);
  for (; size > 0; ++data, --size)
    state = __builtin_ia32_crc32qi(state, *data);
  return state;
}

// Folding: a register of 128 bits is moved past the D bits of the registers behind it by two products without carries,
// modulo the polynomial: what it holds for the high degrees times x^(D+64), the rest times x^D. With the bits reversed
// a product stands one degree too low, and a remainder in the low half of a word 32 too high, hence the exponents D +
// 31 and D - 33. Source: Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
// Intel, 2009; here on four registers at once, and the last one is left to the instruction for checksums.
#define TUTTI_FOLD_TARGET gnu::target("avx512f,avx512dq,vpclmulqdq,pclmul,sse4.2")

bool has_folding() {
  return has_instruction() && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("vpclmulqdq") &&
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

// x to the power of `exponent`, modulo the polynomial, bits reversed.
constexpr int64_t power_of_x(int exponent) {
  uint32_t value = 0x80000000u;
  for (int i = 0; i < exponent; ++i)
    value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return value;
}

template <int kBits>
[[TUTTI_FOLD_TARGET]] inline __m512i fold(__m512i value, __m512i next) {
  constexpr int64_t kLow = power_of_x(kBits + 31), kHigh = power_of_x(kBits - 33);
  const __m512i factors = _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
  const __m512i low = _mm512_clmulepi64_epi128(value, factors, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(value, factors, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // the exclusive or of three
}

// The four registers of 128 bits in one, without their order mattering any more: the state of that checksum.
[[TUTTI_FOLD_TARGET]] inline uint32_t finish_fold(__m512i value) {
  const __m512i factors = _mm512_set_epi64(0, 0, power_of_x(128 - 33), power_of_x(128 + 31), power_of_x(256 - 33),
                                           power_of_x(256 + 31), power_of_x(384 - 33), power_of_x(384 + 31));
  const __m512i moved =
      _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factors, 0x00), _mm512_clmulepi64_epi128(value, factors, 0x11));
  const __m128i last = _mm512_extracti64x2_epi64(value, 3);
  const __m128i sum =
      _mm_xor_si128(_mm_xor_si128(_mm512_extracti64x2_epi64(moved, 0), last),
                    _mm_xor_si128(_mm512_extracti64x2_epi64(moved, 1), _mm512_extracti64x2_epi64(moved, 2)));
  const uint64_t state = __builtin_ia32_crc32di(0, static_cast<uint64_t>(_mm_extract_epi64(sum, 0)));
  return static_cast<uint32_t>(__builtin_ia32_crc32di(state, static_cast<uint64_t>(_mm_extract_epi64(sum, 1))));
}

constexpr size_t kWidth = 64;

[[TUTTI_FOLD_TARGET]] inline __m512i load512(const unsigned char *from) { return _mm512_loadu_si512(from); }

// The state that so many zero bytes make of one.
template <size_t kBytes>
[[TUTTI_FOLD_TARGET]] inline uint32_t shift(uint32_t state) {
  constexpr int64_t kFactor = power_of_x(static_cast<int>(8 * kBytes) - 33);
  const __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(state)), _mm_cvtsi64_si128(kFactor), 0x00);
  return static_cast<uint32_t>(__builtin_ia32_crc32di(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product))));
}

// Four registers at once.
struct Folded {
  __m512i first, second, third, fourth;

  [[TUTTI_FOLD_TARGET]] explicit Folded(const unsigned char *data)
      : first(load512(data)),
        second(load512(data + kWidth)),
        third(load512(data + 2 * kWidth)),
        fourth(load512(data + 3 * kWidth)) {}
  [[TUTTI_FOLD_TARGET]] void add(const unsigned char *data) {
    first = fold<2048>(first, load512(data));
    second = fold<2048>(second, load512(data + kWidth));
    third = fold<2048>(third, load512(data + 2 * kWidth));
    fourth = fold<2048>(fourth, load512(data + 3 * kWidth));
  }
  [[TUTTI_FOLD_TARGET]] __m512i sum() const { return fold<512>(fold<512>(fold<512>(first, second), third), fourth); }
};

// A block of data keeps both units of the processor busy: the larger part is folded, while three strands at its end go
// through the instruction.
constexpr size_t kSteps = 8;
constexpr size_t kFoldedBytes = kSteps * 4 * kWidth;
constexpr size_t kWordsPerStep = 4;
constexpr size_t kStrandBytes = kSteps * kWordsPerStep * 8;
constexpr size_t kBlockBytes = kFoldedBytes + 3 * kStrandBytes;

[[TUTTI_FOLD_TARGET]] uint32_t block_crc(const unsigned char *data) {
  const unsigned char *strands = data + kFoldedBytes;
  Folded folded(data);
  uint64_t first = 0, second = 0, third = 0;
  for (size_t step = 0; step < kSteps; ++step) {
    if (step > 0) folded.add(data + step * 4 * kWidth);
    for (size_t i = 0; i < kWordsPerStep; ++i, strands += 8) {
      first = __builtin_ia32_crc32di(first, load64(strands));
      second = __builtin_ia32_crc32di(second, load64(strands + kStrandBytes));
      third = __builtin_ia32_crc32di(third, load64(strands + 2 * kStrandBytes));
    }
  }
  return shift<3 * kStrandBytes>(finish_fold(folded.sum())) ^ shift<2 * kStrandBytes>(static_cast<uint32_t>(first)) ^
         shift<kStrandBytes>(static_cast<uint32_t>(second)) ^ static_cast<uint32_t>(third);
}

[[TUTTI_FOLD_TARGET]] uint32_t folding_crc(const unsigned char *data, size_t size, uint32_t state) {
  for (; size >= kBlockBytes; data += kBlockBytes, size -= kBlockBytes)
    state = shift<kBlockBytes>(state) ^ block_crc(data);
  if (size < 2 * kWidth) return instruction_crc(data, size, state);
  const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i sum;
  if (size >= 8 * kWidth) {
    Folded folded(data);
    folded.first = _mm512_xor_si512(folded.first, before);
    for (data += 4 * kWidth, size -= 4 * kWidth; size >= 4 * kWidth; data += 4 * kWidth, size -= 4 * kWidth)
      folded.add(data);
    sum = folded.sum();
  } else {
    sum = _mm512_xor_si512(load512(data), before);
    data += kWidth;
    size -= kWidth;
  }
  for (; size >= kWidth; data += kWidth, size -= kWidth)
    sum = fold<512>(sum, load512(data));
  return instruction_crc(data, size, finish_fold(sum));
}
#endif

Update fastest() {
#if defined(__x86_64__)
  if (has_folding()) return folding_crc;
  if (has_instruction()) return instruction_crc;
#endif
  return portable_crc;
}

}  // namespace

uint32_t crc32c_portable(const void *data, size_t size, uint32_t crc) {
  return ~portable_crc(static_cast<const unsigned char *>(data), size, ~crc);
}

uint32_t crc32c(const void *data, size_t size, uint32_t crc) {
  static const Update update = fastest();
  return ~update(static_cast<const unsigned char *>(data), size, ~crc);
}

}  // namespace tutti::impl::base
