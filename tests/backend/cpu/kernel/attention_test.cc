// SPDX-License-Identifier: Apache-2.0
//
// Attention on processors against plain loops in double, for every instruction set this machine has: sizes around those
// of blocks and vectors; and the same bits however the work is cut.
#include "backend/cpu/kernel/attention.h"

#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/simd/simd_testing.h"
#include "testing.h"

namespace attention_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Case {
  AttentionShape shape;
  Floats q, k, v, dy;
  std::vector<int32_t> lengths;  // none = all keys

  explicit Case(const AttentionShape &s) : shape(s) {
    const int64_t queries = s.rows * s.length * s.query_row(), keys = s.rows * s.key_length * s.key_row();
    q = noise(queries, 1), k = noise(keys, 2), v = noise(keys, 3), dy = noise(queries, 4);
    // Large scores, so that the maximum changes from block to block.
    for (float &value : k)
      value *= 8;
  }
};

struct Results {
  Floats y, statistics, dq, dk, dv;

  bool operator==(const Results &other) const {
    const auto same = [](const Floats &a, const Floats &b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(y, other.y) && same(statistics, other.statistics) && same(dq, other.dq) && same(dk, other.dk) &&
           same(dv, other.dv);
  }
};

/// `part` items at a time, the last ones first; gradients in one pass or in two.
Results compute(const Case &one, int64_t part, bool in_one) {
  const AttentionShape &s = one.shape;
  const float poison = std::numeric_limits<float>::quiet_NaN();
  Results r{Floats(one.q.size(), poison), Floats(static_cast<size_t>(s.rows * s.heads * s.length), poison),
            Floats(one.q.size(), poison), Floats(one.k.size(), poison), Floats(one.k.size(), poison)};
  const int32_t *const lengths = one.lengths.empty() ? nullptr : one.lengths.data();
  const auto in_parts = [part](int64_t items, const auto &body) {
    for (int64_t end = items; end > 0; end -= part)
      body(Range{std::max<int64_t>(end - part, 0), end});
  };
  const Scratch scratch(attention_scratch_floats(s)), gradient_scratch(attention_gradient_scratch_floats(s));
  const AttentionArrays arrays{one.q.data(), one.k.data(), one.v.data(), lengths, r.y.data(), r.statistics.data()};
  in_parts(attention_items(s), [&](Range items) { attention(s, arrays, items, scratch.memory.get()); });
  const AttentionGradientArrays gradients{one.dy.data(),       one.q.data(), one.k.data(), one.v.data(), r.y.data(),
                                          r.statistics.data(), lengths,      r.dq.data(),  r.dk.data(),  r.dv.data()};
  using Pass = AttentionPass;
  for (const Pass pass : in_one ? std::vector{Pass::all} : std::vector{Pass::keys, Pass::queries}) {
    in_parts(attention_gradient_items(s, pass),
             [&](Range items) { attention_gradient(s, gradients, pass, items, gradient_scratch.memory.get()); });
  }
  return r;
}

struct Expected {
  Doubles y, statistics, dq, dk, dv;
};

/// One query of one head: adds what it comes to.
void expect_query(const Case &one, int64_t row, int64_t head, int64_t i, Expected &e) {
  const AttentionShape &s = one.shape;
  const auto at = [&](int64_t position, int64_t c) {
    return static_cast<size_t>(((row * s.length + position) * s.heads + head) * s.channels + c);
  };
  const auto key_at = [&](int64_t position, int64_t c) {
    return static_cast<size_t>(((row * s.key_length + position) * s.key_heads + head / s.group()) * s.channels + c);
  };
  const auto statistic = static_cast<size_t>((row * s.heads + head) * s.length + i);
  int64_t seen = s.key_length;
  if (!one.lengths.empty()) seen = std::clamp<int64_t>(one.lengths[static_cast<size_t>(row)], 0, seen);
  if (s.causal) seen = std::clamp<int64_t>(i + s.key_length - s.length + 1, 0, seen);
  Doubles p(static_cast<size_t>(seen));
  double maximum = -1e300, sum = 0, average = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (int64_t c = 0; c < s.channels; ++c)
      score += double{one.q[at(i, c)]} * double{one.k[key_at(j, c)]};
    p[static_cast<size_t>(j)] = score * double{s.scale};
    maximum = std::max(maximum, p[static_cast<size_t>(j)]);
  }
  for (double &value : p) {
    value = std::exp(value - maximum);
    sum += value;
  }
  e.statistics[statistic] = seen == 0 ? std::numeric_limits<double>::infinity() : maximum + std::log(sum);
  for (int64_t j = 0; j < seen; ++j) {
    p[static_cast<size_t>(j)] /= sum;
    for (int64_t c = 0; c < s.channels; ++c)
      e.y[at(i, c)] += p[static_cast<size_t>(j)] * double{one.v[key_at(j, c)]};
  }
  for (int64_t c = 0; c < s.channels; ++c)
    average += double{one.dy[at(i, c)]} * e.y[at(i, c)];
  for (int64_t j = 0; j < seen; ++j) {
    double dp = 0;
    for (int64_t c = 0; c < s.channels; ++c)
      dp += double{one.dy[at(i, c)]} * double{one.v[key_at(j, c)]};
    const double weight = p[static_cast<size_t>(j)], ds = double{s.scale} * weight * (dp - average);
    for (int64_t c = 0; c < s.channels; ++c) {
      e.dv[key_at(j, c)] += weight * double{one.dy[at(i, c)]};
      e.dk[key_at(j, c)] += ds * double{one.q[at(i, c)]};
      e.dq[at(i, c)] += ds * double{one.k[key_at(j, c)]};
    }
  }
}

Expected expect(const Case &one) {
  const AttentionShape &s = one.shape;
  Expected e{Doubles(one.q.size()), Doubles(static_cast<size_t>(s.rows * s.heads * s.length)), Doubles(one.q.size()),
             Doubles(one.k.size()), Doubles(one.k.size())};
  for (int64_t row = 0; row < s.rows; ++row) {
    for (int64_t head = 0; head < s.heads; ++head) {
      for (int64_t i = 0; i < s.length; ++i)
        expect_query(one, row, head, i, e);
    }
  }
  return e;
}

void check_products(const Case &one, const Results &results, const Expected &expected) {
  for (size_t i = 0; i < expected.statistics.size(); ++i) {
    if (expected.statistics[i] == double{results.statistics[i]}) continue;  // infinities
    assert_true(std::fabs(expected.statistics[i] - double{results.statistics[i]}) < 1e-4);
  }
  expect_close(results.y, expected.y, 1e-4, "y");
  expect_close(results.dq, expected.dq, 1e-3, "dq");
  expect_close(results.dk, expected.dk, 1e-3, "dk");
  expect_close(results.dv, expected.dv, 1e-3, "dv");
  assert_true(results == compute(one, 3, true));
  assert_true(results == compute(one, 1, false));
  assert_true(results == compute(one, 1000, false));
}

/// On vectors, and where there is one on a matrix unit, of every instruction set.
void check(Case one) {
  const Expected expected = expect(one);
  on_all_targets([&] {
    one.shape.splits = false;
    const Results on_vectors = compute(one, 1, true);
    check_products(one, on_vectors, expected);
    one.shape.splits = true;
    const Results on_matrix_unit = compute(one, 1, true);
    if (on_matrix_unit != on_vectors) check_products(one, on_matrix_unit, expected);
  });
}

AttentionShape shape(int64_t rows, int64_t length, int64_t heads, int64_t channels, int64_t key_length,
                     int64_t key_heads, bool causal) {
  return {rows, length, heads, channels, key_length, key_heads, causal, 0.4f};
}

void blocks_agree_with_plain_loops(void **) {
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 127, 129, 260}) {
      for (const int64_t key_length : {30, 256, 520})
        check(Case(shape(1, length, 2, 20, key_length, 2, causal)));
    }
    check(Case(shape(2, 150, 6, 8, 140, 2, causal)));  // heads that share keys
    check(Case(shape(1, 130, 1, 64, 257, 1, causal)));
    check(Case(shape(1, 300, 2, 96, 300, 1, causal)));
    check(Case(shape(1, 40, 1, 300, 33, 1, causal)));  // more channels than a product keeps
    check(Case(shape(3, 5, 2, 1, 5, 1, causal)));
  }
}

void rows_have_as_many_keys_as_they_say(void **) {
  for (const bool causal : {false, true}) {
    Case one(shape(6, 140, 2, 12, 270, 1, causal));
    one.lengths = {270, 128, 129, 1, 0, 100000};
    check(one);
    one.lengths = {-1, std::numeric_limits<int32_t>::min(), 17, 255, 256, 257};
    check(one);
  }
}

void no_keys_give_zeros(void **) {
  on_all_targets([] {
    const Case one(shape(2, 3, 2, 4, 0, 1, false));
    const Results results = compute(one, 1, true);
    for (const float value : results.y)
      assert_true(value == 0);
    for (const float value : results.dq)
      assert_true(value == 0);
    for (const float value : results.statistics)
      assert_true(value == std::numeric_limits<float>::infinity());
  });
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(blocks_agree_with_plain_loops),
      cmocka_unit_test(rows_have_as_many_keys_as_they_say),
      cmocka_unit_test(no_keys_give_zeros),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace attention_test
