// SPDX-License-Identifier: Apache-2.0
#include "base/random/philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

#include "base/random/long_random_stream.h"
#include "base/random/uniform_int.h"

namespace tutti::impl::base {

namespace {

double polynomial(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (size_t i = coefficients.size(); i-- > 0;)
    sum = sum * x + coefficients[i];
  return sum;
}

// The rational approximations of AS 241 (PPND16), in rising powers.
constexpr double kCentreTop[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                 1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                 3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr double kCentreBottom[] = {1.0,
                                    4.2313330701600911252e+1,
                                    6.8718700749205790830e+2,
                                    5.3941960214247511077e+3,
                                    2.1213794301586595867e+4,
                                    3.9307895800092710610e+4,
                                    2.8729085735721942674e+4,
                                    5.2264952788528545610e+3};
constexpr double kMiddleTop[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                 3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kMiddleBottom[] = {1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
constexpr double kTailTop[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                               2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kTailBottom[] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};

// The finaliser of SplitMix64: every bit of the input reaches every bit of the output.
constexpr uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double normal_quantile(double p) {
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
