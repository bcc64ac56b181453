// SPDX-License-Identifier: Apache-2.0
//
// Cheapest assignments against trying every assignment, on chains, rings, stars and networks at random.
#include "backend/cpu/lower/cost_network.h"

#include <array>
#include <random>
#include <vector>

#include "testing.h"

namespace cost_network_test {

namespace {

using tutti::impl::backend::cpu::CostNetwork;

/// A network beside the terms it was made of.
struct Terms {
  struct One {
    int32_t a, b;
    std::array<std::array<double, 2>, 2> cost;
  };
  int32_t variables = 0;
  std::vector<One> list;

  CostNetwork network() const {
    CostNetwork made;
    for (int32_t i = 0; i < variables; ++i)
      assert_int_equal(made.add_variable(), i);
    for (const One &one : list)
      one.b < 0 ? made.add_cost(one.a, one.cost[0][0], one.cost[1][0]) : made.add_cost(one.a, one.b, one.cost);
    return made;
  }

  double cost(const std::vector<char> &values) const {
    double sum = 0;
    for (const One &one : list) {
      const auto a = static_cast<size_t>(values[static_cast<size_t>(one.a)]);
      const size_t b = one.b < 0 ? 0 : static_cast<size_t>(values[static_cast<size_t>(one.b)]);
      sum += one.cost[a][b];
    }
    return sum;
  }

  double least() const {
    double best = 1e300;
    for (size_t bits = 0; bits < size_t{1} << variables; ++bits) {
      std::vector<char> values;
      for (int32_t i = 0; i < variables; ++i)
        values.push_back(static_cast<char>((bits >> i) & 1));
      best = std::min(best, cost(values));
    }
    return best;
  }
};

std::mt19937 &random() {
  static std::mt19937 generator(7);
  return generator;
}

/// Whole numbers, so that sums are exact in any order.
double number() { return static_cast<double>(random()() % 1000); }

void add(Terms &terms, int32_t a, int32_t b) {
  terms.list.push_back({a, b, {{{number(), number()}, {number(), number()}}}});
}

void check(const Terms &terms) {
  const std::vector<char> best = terms.network().minimize();
  assert_int_equal(best.size(), terms.variables);
  assert_true(terms.cost(best) == terms.least());
  assert_true(best == terms.network().minimize());
}

void chains_and_rings(void **) {
  for (int32_t n : {1, 2, 3, 7, 12}) {
    Terms terms;
    terms.variables = n;
    for (int32_t i = 0; i < n; ++i)
      add(terms, i, -1);
    for (int32_t i = 0; i + 1 < n; ++i)
      add(terms, i + 1, i);
    check(terms);
    add(terms, 0, n - 1);
    check(terms);
  }
}

void stars_and_anything(void **) {
  Terms star;
  star.variables = 13;
  for (int32_t i = 1; i < 13; ++i) {
    add(star, i % 2 == 0 ? 0 : i, i % 2 == 0 ? i : 0);
    add(star, i, -1);
  }
  check(star);
  for (int round = 0; round < 40; ++round) {
    Terms terms;
    terms.variables = 2 + static_cast<int32_t>(random()() % 9);
    const auto n = static_cast<uint32_t>(terms.variables);
    for (uint32_t i = 0; i < 2 * n; ++i)
      add(terms, static_cast<int32_t>(random()() % n), static_cast<int32_t>(random()() % (n + 1)) - 1);
    check(terms);
  }
}

void equal_costs_stay_no(void **) {
  CostNetwork network;
  for (int i = 0; i < 3; ++i)
    network.add_variable();
  network.add_cost(0, 1, {{{0, 1}, {1, 0}}});
  const std::vector<char> expected = {0, 0, 0};
  assert_true(network.minimize() == expected);
}

/// Everybody is everybody's neighbour: not exact any more, but an answer, and the same each time.
void too_many_neighbours_are_decided(void **) {
  Terms terms;
  terms.variables = 20;
  for (int32_t a = 0; a < 20; ++a) {
    for (int32_t b = 0; b < a; ++b)
      terms.list.push_back({a, b, {{{0, 1}, {1, 0}}}});
    terms.list.push_back({a, -1, {{{2, 0}, {1, 0}}}});
  }
  const std::vector<char> best = terms.network().minimize();
  assert_true(terms.cost(best) == 20);  // all yes
  assert_true(best == terms.network().minimize());
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(chains_and_rings),
      cmocka_unit_test(stars_and_anything),
      cmocka_unit_test(equal_costs_stay_no),
      cmocka_unit_test(too_many_neighbours_are_decided),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace cost_network_test
