// SPDX-License-Identifier: Apache-2.0
//
// Checksums: CRC-32C (Castagnoli) for files and records, FNV-1a for fingerprints of plans and texts. Neither resists an
// attacker; they find damage and differences. All functions are pure.
#ifndef TUTTI_BASE_HASH_CHECKSUM_H_
#define TUTTI_BASE_HASH_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti::impl::base {

/// CRC-32C of `size` bytes, continuing from `crc` (0 to begin). Uses the processor's instruction where there is one.
uint32_t crc32c(const void *data, size_t size, uint32_t crc = 0);
inline uint32_t crc32c(std::string_view text) { return crc32c(text.data(), text.size()); }
/// The same by tables alone: what crc32c() is tested against.
uint32_t crc32c_portable(const void *data, size_t size, uint32_t crc = 0);

/// The masked form that record files store, so that a checksum of checksums stays well spread.
constexpr uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
constexpr uint32_t unmask_crc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

constexpr uint64_t kFnvStart = 0xcbf29ce484222325u;

/// 64-bit FNV-1a, continuing from `hash`.
constexpr uint64_t fnv1a64(std::string_view text, uint64_t hash = kFnvStart) {
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}
/// The same over the eight bytes of a number, lowest first.
constexpr uint64_t fnv1a64(uint64_t number, uint64_t hash) {
  for (int i = 0; i < 8; ++i)
    hash = (hash ^ ((number >> (8 * i)) & 0xff)) * 0x100000001b3u;
  return hash;
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_HASH_CHECKSUM_H_
