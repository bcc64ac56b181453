// SPDX-License-Identifier: Apache-2.0
#include "base/hash/sha256.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace tutti::impl::base {

namespace {

constexpr size_t kBlockBytes = 64;

// FIPS 180-4, 4.2.2: the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// The names are those of FIPS 180-4, 6.2.
class Hash {
 public:
  void take(const uint8_t *block) {
    std::array<uint32_t, 64> w{};
    for (size_t t = 0; t < 16; ++t) {
      w[t] = uint32_t{block[4 * t]} << 24 | uint32_t{block[4 * t + 1]} << 16 | uint32_t{block[4 * t + 2]} << 8 |
             uint32_t{block[4 * t + 3]};
    }
    for (size_t t = 16; t < 64; ++t) {
      const uint32_t sigma0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
      const uint32_t sigma1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = sigma1 + w[t - 7] + sigma0 + w[t - 16];
    }
    auto [a, b, c, d, e, f, g, h] = words_;
    for (size_t t = 0; t < 64; ++t) {
      const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRoundConstants[t] + w[t];
      const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < words_.size(); ++i)
      words_[i] += added[i];
  }

  Digest digest() const {
    Digest bytes{};
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(words_[i / 4] >> (24 - 8 * (i % 4)));
    return bytes;
  }

 private:
  std::array<uint32_t, 8> words_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

}  // namespace

Digest sha256(std::string_view message) {
  Hash hash;
  const auto *const bytes = reinterpret_cast<const uint8_t *>(message.data());
  const size_t whole = message.size() / kBlockBytes * kBlockBytes, rest = message.size() - whole;
  for (size_t at = 0; at < whole; at += kBlockBytes)
    hash.take(bytes + at);
  // 5.1.1: a one, zeros, and the number of bits in the last eight bytes.
  std::array<uint8_t, 2 * kBlockBytes> end{};
  if (rest > 0) std::memcpy(end.data(), bytes + whole, rest);
  end[rest] = 0x80;
  const size_t length = rest < kBlockBytes - 8 ? kBlockBytes : 2 * kBlockBytes;
  for (size_t i = 0; i < 8; ++i)
    end[length - 1 - i] = static_cast<uint8_t>((uint64_t{message.size()} * 8) >> (8 * i));
  for (size_t at = 0; at < length; at += kBlockBytes)
    hash.take(end.data() + at);
  return hash.digest();
}

Digest hmac_sha256(std::string_view key, std::string_view message) {
  std::array<char, kBlockBytes> block{};
  const Digest hashed = sha256(key);
  const std::string_view used = key.size() > kBlockBytes ? as_text(hashed) : key;
  std::copy(used.begin(), used.end(), block.begin());
  std::string inner(kBlockBytes, '\0'), outer(kBlockBytes, '\0');
  for (size_t i = 0; i < kBlockBytes; ++i) {
    inner[i] = static_cast<char>(block[i] ^ 0x36);
    outer[i] = static_cast<char>(block[i] ^ 0x5c);
  }
  inner += message;
  outer += as_text(sha256(inner));
  return sha256(outer);
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

Result<std::string> random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t got = getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno != EINTR) return internal_error("cannot get random bytes from the kernel: ", strerror(errno));
    if (got > 0) done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace tutti::impl::base
