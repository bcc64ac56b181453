// SPDX-License-Identifier: Apache-2.0
#include "base/random/philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

#include "base/random/long_random_stream.h"
#include "base/random/normal_coefficients.h"
#include "base/random/uniform_int.h"

namespace tutti::impl::base {

namespace {

double polynomial(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (size_t i = coefficients.size(); i-- > 0;)
    sum = sum * x + coefficients[i];
  return sum;
}

// The finaliser of SplitMix64: every bit of the input reaches every bit of the output.
constexpr uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double normal_quantile(double p) {
  using namespace normal_coefficients;
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreTop, r) / polynomial(kCentreBottom, r);
  }
  const double r = std::sqrt(-std::log(std::min(p, 1 - p)));
  const double magnitude = r <= 5 ? polynomial(kMiddleTop, r - 1.6) / polynomial(kMiddleBottom, r - 1.6)
                                  : polynomial(kTailTop, r - 5) / polynomial(kTailBottom, r - 5);
  return q < 0 ? -magnitude : magnitude;
}

std::array<double, 2> normal_pair(uint32_t a, uint32_t b) {
  // The first uniform lies in (0, 1], so the logarithm is finite.
  const double radius = std::sqrt(-2 * std::log((a + 1.0) * 0x1.0p-32));
  const double angle = 2 * std::numbers::pi * (b * 0x1.0p-32);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double truncated_normal(uint32_t word, double bound) {
  const double below = 0.5 * std::erfc(bound / std::numbers::sqrt2);
  const double uniform = (word + 0.5) * 0x1.0p-32;
  return std::clamp(normal_quantile(below + uniform * (1 - 2 * below)), -bound, bound);
}

int64_t RandomStream::below(int64_t bound) { return uniform_int(*this, bound); }

std::vector<int64_t> random_permutation(RandomKey key, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(std::max<int64_t>(0, n)));
  std::iota(order.begin(), order.end(), int64_t{0});
  LongRandomStream stream(key);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(stream.below(static_cast<int64_t>(i)))]);
  }
  return order;
}

KeyedPermutation::KeyedPermutation(RandomKey key, int64_t n) : size_(std::max<int64_t>(1, n)) {
  // Not below 256 places: tiny networks know too few permutations.
  const int bits = std::max(8, static_cast<int>(std::bit_width(static_cast<uint64_t>(size_ - 1))));
  half_bits_ = (bits + 1) / 2;
  RandomStream stream(key);
  for (uint64_t &round_key : round_keys_)
    round_key = stream.next64();
}

uint64_t KeyedPermutation::mix(int round, uint64_t half) const {
  return scramble(half ^ round_keys_[static_cast<size_t>(round)]) & ((uint64_t{1} << half_bits_) - 1);
}

uint64_t KeyedPermutation::encrypt(uint64_t x) const {
  uint64_t left = x >> half_bits_, right = x & ((uint64_t{1} << half_bits_) - 1);
  for (int round = 0; round < kRounds; ++round) {
    left ^= mix(round, right);
    std::swap(left, right);
  }
  return left << half_bits_ | right;
}

uint64_t KeyedPermutation::decrypt(uint64_t x) const {
  uint64_t left = x >> half_bits_, right = x & ((uint64_t{1} << half_bits_) - 1);
  for (int round = kRounds; round-- > 0;) {
    std::swap(left, right);
    left ^= mix(round, right);
  }
  return left << half_bits_ | right;
}

int64_t KeyedPermutation::operator()(int64_t i) const {
  uint64_t x = encrypt(static_cast<uint64_t>(i));
  while (x >= static_cast<uint64_t>(size_))
    x = encrypt(x);
  return static_cast<int64_t>(x);
}

int64_t KeyedPermutation::inverse(int64_t j) const {
  uint64_t x = decrypt(static_cast<uint64_t>(j));
  while (x >= static_cast<uint64_t>(size_))
    x = decrypt(x);
  return static_cast<int64_t>(x);
}

}  // namespace tutti::impl::base
