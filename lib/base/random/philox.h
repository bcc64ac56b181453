// SPDX-License-Identifier: Apache-2.0
//
// Random numbers by counting: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// SC'11). A block of four words is a pure function of a 128-bit counter and a 64-bit key, so a number depends only on
// what it is for, never on which thread or replica asks first.
//
// The scheme every backend follows, bit for bit, for random ops:
//   key     = RandomKey::of(seed, stable id of the op, batch counter)
//   words   = key.words(row in the global batch, element of the row / 4), word number element % 4
//   uniform = uniform_float(word)
// Normals take two words: elements 2i and 2i+1 are the pair normal_pair(word 2i, word 2i+1).
//
//   RandomStream stream(RandomKey::of(seed, 7, epoch));     // one after the other, position can be saved
//   int64_t pick = stream.below(buffer_size);
//
// Threads: all functions are pure but those of RandomStream, which belongs to one thread.
#ifndef TUTTI_BASE_RANDOM_PHILOX_H_
#define TUTTI_BASE_RANDOM_PHILOX_H_

#include <array>
#include <cstdint>
#include <vector>

namespace tutti::impl::base {

using PhiloxWords = std::array<uint32_t, 4>;

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr uint32_t kPhiloxWeyl[2] = {0x9E3779B9, 0xBB67AE85};  // added to the key after each round

/// The ten-round block function.
constexpr PhiloxWords philox4x32(PhiloxWords counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultipliers[0]} * counter[0];
    const uint64_t product1 = uint64_t{kPhiloxMultipliers[1]} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kPhiloxWeyl[0];
    key[1] += kPhiloxWeyl[1];
  }
  return counter;
}

/// The block for 64-bit halves: counter words are (low lo, low hi, high lo, high hi).
constexpr PhiloxWords philox4x32(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  return philox4x32({static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                     static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)},
                    {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
}

/// A key derived from everything the numbers are for.
struct RandomKey {
  uint64_t value = 0;

  /// The key of stream `stream` at `counter` under a seed.
  static constexpr RandomKey of(uint64_t seed, uint64_t stream, uint64_t counter) {
    return RandomKey{seed}.fold(stream, counter);
  }
  /// A new key for (this key, a, b).
  constexpr RandomKey fold(uint64_t a, uint64_t b) const {
    const PhiloxWords words = philox4x32(value, a, b);
    return RandomKey{words[0] | uint64_t{words[1]} << 32};
  }
  /// Four words for (this key, row, block).
  constexpr PhiloxWords words(uint64_t row, uint64_t block) const { return philox4x32(value, row, block); }
  friend constexpr bool operator==(RandomKey a, RandomKey b) { return a.value == b.value; }
};

/// [0, 1) from the upper 24 bits of a word.
constexpr float uniform_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24f; }
/// [0, 1) from 53 bits of two words.
constexpr double uniform_double(uint32_t low, uint32_t high) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1.0p-53;
}
/// Two independent standard normals (Box-Muller), computed in double.
std::array<double, 2> normal_pair(uint32_t a, uint32_t b);
/// A standard normal conditioned on lying within `bound` (> 0) of zero, by inversion: one word, no rejection.
double truncated_normal(uint32_t word, double bound = 2.0);
/// The quantile function of the standard normal (Wichura's AS 241, about 1e-16); p in (0, 1).
double normal_quantile(double p);

/// Words in sequence under one key. Saved and restored as its position alone.
class RandomStream {
 public:
  explicit RandomStream(RandomKey key, uint64_t position = 0) : key_(key), position_(position) {}

  uint32_t next() {
    const uint64_t number = position_ / 4;
    if (number != block_number_) [[unlikely]] {
      block_ = key_.words(0, number);
      block_number_ = number;
    }
    return block_[position_++ % 4];
  }
  uint64_t next64() {
    const uint64_t low = next();
    return low | uint64_t{next()} << 32;
  }
  /// Each of 0 .. bound-1 with the same probability, by Lemire's method; bound > 0.
  int64_t below(int64_t bound);
  /// Words taken so far.
  uint64_t position() const { return position_; }

 private:
  RandomKey key_;
  uint64_t position_;
  PhiloxWords block_{};
  uint64_t block_number_ = UINT64_MAX;
};

/// All of 0 .. n-1 in random order (Fisher-Yates).
std::vector<int64_t> random_permutation(RandomKey key, int64_t n);

/// A random order of 0 .. n-1 without storing it: a Feistel network on the next even power of two, walked until the
/// result is below n (Black and Rogaway, "Ciphers with arbitrary finite domains"). About two block rounds a call.
class KeyedPermutation {
 public:
  /// n in 1 .. 2^62.
  KeyedPermutation(RandomKey key, int64_t n);
  int64_t size() const { return size_; }
  /// Where position `i` (0 <= i < size) goes; a bijection.
  int64_t operator()(int64_t i) const;
  /// Which position goes to `j`.
  int64_t inverse(int64_t j) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t encrypt(uint64_t x) const;
  uint64_t decrypt(uint64_t x) const;
  uint64_t mix(int round, uint64_t half) const;

  int64_t size_;
  int half_bits_;
  std::array<uint64_t, kRounds> round_keys_;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_RANDOM_PHILOX_H_
