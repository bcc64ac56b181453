// SPDX-License-Identifier: Apache-2.0
//
// base/random/philox.h and uniform_in() of backend/random_elements.h for devices: the same words and the same uniforms
// bit for bit, normals by the same formulas in double (tests/backend/gpu/device/philox_test.cc compares them). Included
// by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_PHILOX_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_PHILOX_INL_H_

#include <tutti_gpu.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tutti::impl::backend::gpu {

struct PhiloxBlock {
  uint32_t words[4];
};

/// base::philox4x32 for 64-bit halves.
__device__ inline PhiloxBlock philox_block(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c0;
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// base::RandomKey::fold.
__device__ inline uint64_t fold_key(uint64_t key, uint64_t a, uint64_t b) {
  const PhiloxBlock block = philox_block(key, a, b);
  return block.words[0] | uint64_t{block.words[1]} << 32;
}

/// RandomRows::key.
__device__ inline uint64_t random_key(uint64_t seed, uint64_t stream, uint64_t counter, int64_t iteration) {
  const uint64_t key = fold_key(seed, stream, counter);
  return iteration == 0 ? key : fold_key(key, static_cast<uint64_t>(iteration), 0);
}

/// [low, high) as uniform_in() takes it. high - low is upper_part + lower_part, times 2^24: each has so few bits that
/// its product with 24 more is exact.
struct UniformRange {
  double low, upper_part, lower_part;
  float high, below_high;
  int32_t is_empty;  ///< low >= high

  /// On the host.
  static UniformRange of(double low, double high) {
    const double range = (high - low) * 0x1.0p-24;
    uint64_t bits;
    std::memcpy(&bits, &range, sizeof(bits));
    bits &= ~((uint64_t{1} << 24) - 1);
    double upper;
    std::memcpy(&upper, &bits, sizeof(upper));
    const float end = static_cast<float>(high);
    return {low, upper, range - upper, end, std::nextafter(end, static_cast<float>(low)), low >= high ? 1 : 0};
  }
};

/// uniform_in(). Both products are exact, so it does not matter which of them is fused with the addition; their sum is
/// rounded once, as the product of uniform and range is.
__device__ inline float uniform_in(const UniformRange &range, uint32_t word) {
  const double k = static_cast<double>(word >> 8);
  const float value = static_cast<float>(range.low + (k * range.upper_part + k * range.lower_part));
  return value < range.high || range.is_empty ? value : range.below_high;
}

/// base::normal_pair.
__device__ inline void normal_pair(uint32_t a, uint32_t b, double *first, double *second) {
  const double radius = std::sqrt(-2 * std::log((a + 1.0) * 0x1.0p-32));
  const double angle = 2 * 3.141592653589793238462643383279502884 * (b * 0x1.0p-32);
  *first = radius * std::cos(angle);
  *second = radius * std::sin(angle);
}

/// Eight coefficients in rising powers.
__device__ inline double polynomial(const double *coefficients, double x) {
  double sum = 0;
  for (int i = 7; i >= 0; --i)
    sum = sum * x + coefficients[i];
  return sum;
}

/// base::normal_quantile between 0.075 and 0.925.
__device__ inline double quantile_in_centre(double q) {
  constexpr double kTop[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                             1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                             3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double kBottom[] = {1.0,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
  const double r = 0.180625 - q * q;
  return q * polynomial(kTop, r) / polynomial(kBottom, r);
}

/// Beyond, but not in the last 1e-11: where a normal within two deviations lies.
__device__ inline double quantile_beside(double q, double p) {
  constexpr double kTop[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                             3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                             2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kBottom[] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
  const double r = std::sqrt(-std::log(p < 1 - p ? p : 1 - p)) - 1.6;
  const double magnitude = polynomial(kTop, r) / polynomial(kBottom, r);
  return q < 0 ? -magnitude : magnitude;
}

/// base::truncated_normal with its bound of 2; `below` is the probability of a normal under -2.
__device__ inline double truncated_normal(uint32_t word, double below) {
  const double p = below + (word + 0.5) * 0x1.0p-32 * (1 - 2 * below);
  const double q = p - 0.5;
  const double value = std::fabs(q) <= 0.425 ? quantile_in_centre(q) : quantile_beside(q, p);
  return value < -2 ? -2 : (value > 2 ? 2 : value);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_PHILOX_INL_H_
