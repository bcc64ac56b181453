// SPDX-License-Identifier: Apache-2.0
#include "base/random/philox.h"
#include "base/random/long_random_stream.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "testing.h"

namespace philox_test {

using namespace tutti::impl::base;

namespace {

// The vectors for philox4x32, 10 rounds, from the kat_vectors file that comes with Random123.
void known_answers(void **) {
  struct Answer {
    PhiloxWords counter;
    std::array<uint32_t, 2> key;
    PhiloxWords words;
  };
  const Answer answers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Answer &answer : answers)
    assert_true(philox4x32(answer.counter, answer.key) == answer.words);
  assert_true(philox4x32(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) == answers[2].words);
}

void keys_differ_in_every_part(void **) {
  const RandomKey key = RandomKey::of(1, 2, 3);
  assert_true(key == RandomKey::of(1, 2, 3));
  assert_false(key == RandomKey::of(2, 2, 3));
  assert_false(key == RandomKey::of(1, 3, 3));
  assert_false(key == RandomKey::of(1, 2, 4));
  assert_false(key.words(0, 1) == key.words(1, 0));
}

void uniforms_stay_below_one(void **) {
  assert_true(uniform_float(0) == 0.0f);
  assert_true(uniform_float(UINT32_MAX) < 1.0f);
  assert_true(uniform_double(UINT32_MAX, UINT32_MAX) < 1.0);
  assert_true(uniform_double(0, 0x80000000u) == 0.5);
}

struct Moments {
  double mean = 0, variance = 0, least = 1e9, most = -1e9;
};

template <typename Draw>
Moments moments_of(int count, Draw draw) {
  std::vector<double> values(static_cast<size_t>(count));
  Moments moments;
  for (double &value : values) {
    value = draw();
    moments.mean += value / count;
    moments.least = std::min(moments.least, value);
    moments.most = std::max(moments.most, value);
  }
  for (const double value : values)
    moments.variance += (value - moments.mean) * (value - moments.mean) / count;
  return moments;
}

void distributions_have_their_moments(void **) {
  RandomStream stream(RandomKey::of(42, 0, 0));
  constexpr int kCount = 200000;
  const Moments uniform = moments_of(kCount, [&] { return uniform_float(stream.next()); });
  assert_true(std::abs(uniform.mean - 0.5) < 0.003);
  assert_true(std::abs(uniform.variance - 1.0 / 12) < 0.001);
  const Moments normal =
      moments_of(kCount, [&] { return normal_pair(stream.next(), stream.next())[stream.position() % 4 / 2]; });
  assert_true(std::abs(normal.mean) < 0.01);
  assert_true(std::abs(normal.variance - 1) < 0.02);
  // Within two standard deviations the variance is 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.7737.
  const Moments truncated = moments_of(kCount, [&] { return truncated_normal(stream.next()); });
  assert_true(std::abs(truncated.mean) < 0.01);
  assert_true(std::abs(truncated.variance - 0.7737) < 0.01);
  assert_true(truncated.least >= -2 && truncated.most <= 2);
  assert_true(truncated_normal(0) >= -2 && truncated_normal(UINT32_MAX) <= 2);
  assert_true(std::isfinite(normal_pair(0, 0)[0]) && std::isfinite(normal_pair(UINT32_MAX, UINT32_MAX)[1]));
}

void the_quantile_inverts_the_distribution(void **) {
  for (double p = 1e-12; p < 1; p = p < 0.01 ? p * 3 : p + 0.0137) {
    const double back = 0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0));
    assert_true(std::abs(back - p) <= 2e-14 * std::max(p, 0.01) + 1e-12 * p);
  }
  assert_true(std::abs(normal_quantile(0.975) - 1.959963984540054) < 1e-14);
  assert_true(normal_quantile(0.5) == 0);
}

void streams_resume_at_any_position(void **) {
  const RandomKey key = RandomKey::of(9, 9, 9);
  RandomStream whole(key);
  std::vector<uint32_t> words(50);
  for (uint32_t &word : words)
    word = whole.next();
  for (uint64_t at = 0; at < words.size(); ++at) {
    RandomStream resumed(key, at);
    assert_int_equal(resumed.next(), words[at]);
  }
  assert_int_equal(whole.position(), 50);
}

void long_streams_are_the_same_words(void **) {
  const RandomKey key = RandomKey::of(3, 1, 4);
  RandomStream words(key);
  LongRandomStream long_words(key);
  for (int i = 0; i < 1000; ++i)
    assert_int_equal(long_words.next(), words.next());
  for (int i = 0; i < 1000; ++i) {
    const int64_t bound = (int64_t{1} << (i % 50)) + i;
    assert_int_equal(long_words.below(bound), words.below(bound));
  }
  for (int i = 0; i < 300; ++i) {
    LongRandomStream moved(key);
    moved.seek(long_words.position());
    assert_int_equal(moved.position(), long_words.position());
    assert_int_equal(moved.next64(), long_words.next64());
    (void)long_words.next();
  }
  LongRandomStream fresh(key), sought(key);
  assert_int_equal(fresh.position(), 0);
  (void)sought.next64();
  sought.seek(0);
  assert_int_equal(sought.next(), fresh.next());
  assert_int_equal(fresh.position(), 1);
}

void below_is_even(void **) {
  RandomStream stream(RandomKey::of(5, 5, 5));
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i)
    ++counts[static_cast<size_t>(stream.below(7))];
  for (const int count : counts)
    assert_in_range(count, 9600, 10400);
  const int64_t large = (int64_t{1} << 40) + 3;
  for (int i = 0; i < 1000; ++i) {
    const int64_t pick = stream.below(large);
    assert_true(pick >= 0 && pick < large);
  }
  assert_int_equal(stream.below(1), 0);
}

void permutations_are_complete(void **) {
  for (const int64_t n : {0, 1, 2, 3, 10, 255, 256, 257, 1000, 4099}) {
    std::vector<int64_t> order = random_permutation(RandomKey::of(1, 1, static_cast<uint64_t>(n)), n);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i)
      assert_int_equal(order[static_cast<size_t>(i)], i);
    if (n == 0) continue;
    const KeyedPermutation keyed(RandomKey::of(2, 2, static_cast<uint64_t>(n)), n);
    std::vector<bool> hit(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t to = keyed(i);
      assert_true(to >= 0 && to < n);
      assert_false(hit[static_cast<size_t>(to)]);
      hit[static_cast<size_t>(to)] = true;
      assert_int_equal(keyed.inverse(to), i);
    }
  }
  const KeyedPermutation huge(RandomKey::of(3, 3, 3), int64_t{1} << 62);
  assert_int_equal(huge.inverse(huge(12345678901234)), 12345678901234);
}

// Over many keys each position goes everywhere about equally often, and the parity of the permutation is not fixed.
void keyed_permutations_are_spread(void **) {
  constexpr int64_t n = 6;
  constexpr int kKeys = 12000;
  std::vector<int> counts(n * n);
  int even = 0;
  for (uint64_t k = 0; k < kKeys; ++k) {
    const KeyedPermutation order(RandomKey::of(7, k, 0), n);
    int inversions = 0;
    for (int64_t i = 0; i < n; ++i) {
      ++counts[static_cast<size_t>(i * n + order(i))];
      for (int64_t j = 0; j < i; ++j)
        inversions += order(j) > order(i);
    }
    even += inversions % 2 == 0;
  }
  for (const int count : counts)
    assert_in_range(count, kKeys / n - 200, kKeys / n + 200);
  assert_in_range(even, kKeys / 2 - 300, kKeys / 2 + 300);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(known_answers),
    cmocka_unit_test(keys_differ_in_every_part),
    cmocka_unit_test(uniforms_stay_below_one),
    cmocka_unit_test(distributions_have_their_moments),
    cmocka_unit_test(the_quantile_inverts_the_distribution),
    cmocka_unit_test(streams_resume_at_any_position),
    cmocka_unit_test(long_streams_are_the_same_words),
    cmocka_unit_test(below_is_even),
    cmocka_unit_test(permutations_are_complete),
    cmocka_unit_test(keyed_permutations_are_spread),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace philox_test
