// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), HMAC-SHA-256 (RFC 2104) and random bytes of the kernel, for the few words by which workers
// prove to each other that they belong to one job. Written here because the library itself depends on no cryptographic
// library: one that it would be linked to, for some hundred bytes at the start of a job, is one more that every program
// which embeds it has to carry in the right version (OpenSSL comes with an optional plug-in, by way of libcurl). Not
// for bulk data.
//
//   const Digest proof = hmac_sha256(secret, message);
//   if (!equal_in_constant_time(as_text(proof), received)) ...
//
// Threads: pure functions.
#ifndef TUTTI_BASE_HASH_SHA256_H_
#define TUTTI_BASE_HASH_SHA256_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::base {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view message);
Digest hmac_sha256(std::string_view key, std::string_view message);

/// The bytes of a digest.
inline std::string_view as_text(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}
/// In a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// So many bytes that nobody can foretell (getrandom(2)). INTERNAL where the kernel gives none.
Result<std::string> random_bytes(size_t count);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_HASH_SHA256_H_
