// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <array>
#include <cstring>

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

#if defined(__x86_64__)
bool has_instruction() { return __builtin_cpu_supports("sse4.2"); }

// Three strands hide the latency of the instruction. A strand's state is moved past the bytes of the next one by
// tables: shifting by n zero bytes is linear in the state.
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
#else
bool has_instruction() { return false; }
uint32_t instruction_crc(const unsigned char *, size_t, uint32_t state) { return state; }
#endif

}  // namespace

uint32_t crc32c_portable(const void *data, size_t size, uint32_t crc) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  uint32_t state = ~crc;
  for (; size >= 8; bytes += 8, size -= 8) {
    const uint64_t word = load64(bytes) ^ state;
    state = 0;
    for (size_t k = 0; k < 8; ++k)
      state ^= kTables[7 - k][word >> (8 * k) & 0xff];
  }
  return ~portable_bytes(bytes, size, state);
}

uint32_t crc32c(const void *data, size_t size, uint32_t crc) {
  static const bool use_instruction = has_instruction();
  if (!use_instruction) return crc32c_portable(data, size, crc);
  return ~instruction_crc(static_cast<const unsigned char *>(data), size, ~crc);
}

}  // namespace tutti::impl::base
