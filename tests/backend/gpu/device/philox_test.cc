// SPDX-License-Identifier: Apache-2.0
//
// What kernels compute beside other code: random numbers as base/random/philox.h and backend/random_elements.h have
// them, and quotients without a division.
#include "backend/gpu/device/philox-inl.h"

#include <bit>

#include "backend/gpu/device/divider.h"
#include "backend/random_elements.h"
#include "base/random/philox.h"
#include "testing.h"

using namespace tutti::impl;
using namespace tutti::impl::backend;

namespace {

constexpr int kTries = 20000;

void words_and_keys_are_the_same(void **) {
  base::RandomStream draws(base::RandomKey::of(1, 2, 3));
  for (int i = 0; i < kTries; ++i) {
    const uint64_t key = draws.next64(), high = draws.next64(), low = draws.next64() >> (draws.next() % 64);
    const base::PhiloxWords expected = base::philox4x32(key, high, low);
    const gpu::PhiloxBlock words = gpu::philox_block(key, high, low);
    for (size_t k = 0; k < 4; ++k)
      assert_int_equal(words.words[k], expected[k]);
    const base::RandomKey run = base::RandomKey::of(key, high, low);
    assert_true(gpu::random_key(key, high, low, 0) == run.value);
    assert_true(gpu::random_key(key, high, low, i + 1) == run.fold(static_cast<uint64_t>(i) + 1, 0).value);
  }
}

void uniforms_are_the_same(void **) {
  struct Range {
    double low, high;
  };
  const Range ranges[] = {{0, 1}, {-0.3, 0.7},     {1, 1 + 0x1.0p-20},   {-1e30, 1e30}, {0.1, 0.1},
                          {5, 3}, {-1e-40, 1e-40}, {16777215, 16777217}, {-1.0 / 3, 0}, {1e-3, 1e-3 + 1e-9}};
  base::RandomStream draws(base::RandomKey::of(4, 5, 6));
  for (const Range &range : ranges) {
    const gpu::UniformRange made = gpu::UniformRange::of(range.low, range.high);
    for (int i = 0; i < kTries; ++i) {
      const uint32_t word = i == 0 ? 0 : i == 1 ? UINT32_MAX : draws.next();
      const float expected = uniform_in(range.low, range.high, word), got = gpu::uniform_in(made, word);
      assert_int_equal(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected));
    }
  }
}

void assert_near(double got, double expected) {
  if (std::fabs(got - expected) <= 1e-14 * (1 + std::fabs(expected))) return;
  fail_msg("%.17g, expected %.17g", got, expected);
}

void normals_are_the_same(void **) {
  const double below = 0.5 * std::erfc(std::sqrt(2.0));
  base::RandomStream draws(base::RandomKey::of(7, 8, 9));
  for (int i = 0; i < kTries; ++i) {
    const uint32_t a = i == 0 ? 0 : i == 1 ? UINT32_MAX : draws.next(), b = i < 2 ? a : draws.next();
    const auto pair = base::normal_pair(a, b);
    double first = 0, second = 0;
    gpu::normal_pair(a, b, &first, &second);
    assert_near(first, pair[0]);
    assert_near(second, pair[1]);
    assert_near(gpu::truncated_normal(a, below), base::truncated_normal(a));
  }
}

void quotients_are_right(void **) {
  base::RandomStream draws(base::RandomKey::of(10, 11, 12));
  const auto check = [](uint32_t n, const gpu::Divider &by) {
    if (gpu::divide(n, by) == n / static_cast<uint64_t>(by.divisor)) return;
    fail_msg("%u / %lld is not %u", n, static_cast<long long>(by.divisor), gpu::divide(n, by));
  };
  for (int i = 0; i < kTries; ++i) {
    const int64_t divisor = i < 4096 ? i + 1 : 1 + (draws.next() % gpu::Divider::kMost >> (draws.next() % 30));
    const gpu::Divider by = gpu::Divider::of(divisor);
    for (int k = 0; k < 20; ++k) {
      const uint32_t n = static_cast<uint32_t>(draws.next() % gpu::Divider::kMost >> (draws.next() % 30));
      const uint32_t multiple = n / static_cast<uint32_t>(divisor) * static_cast<uint32_t>(divisor);
      check(n, by);
      check(multiple, by);
      if (multiple > 0) check(multiple - 1, by);
    }
    check(static_cast<uint32_t>(gpu::Divider::kMost), by);
  }
  const gpu::Divider most = gpu::Divider::of(gpu::Divider::kMost);
  check(static_cast<uint32_t>(gpu::Divider::kMost), most);
  check(static_cast<uint32_t>(gpu::Divider::kMost) - 1, most);
  assert_true(gpu::divide(uint64_t{1} << 40, gpu::Divider::of(int64_t{1} << 33)) == 128);
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(words_and_keys_are_the_same),
    cmocka_unit_test(uniforms_are_the_same),
    cmocka_unit_test(normals_are_the_same),
    cmocka_unit_test(quotients_are_right),
};

}  // namespace

TEST_MAIN(kTests)
