// SPDX-License-Identifier: Apache-2.0
//
// Products of split floats: on an emulated matrix unit with AVX-512, and on the processor's own where it has one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "backend/cpu/simd/amx.h"
#include "backend/cpu/simd/simd_split_gemm.h"
#include "backend/cpu/simd/split_gemm_emulated.h"
#include "simd_testing.h"
#include "testing.h"

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT

/// What is tested: the kernels with either unit.
struct Unit {
  const char *name;
  bool is_there;
  int64_t (*scratch_floats)(const GemmShape &);
  std::function<void(const GemmShape &, const float *, const float *, float *, const GemmEpilogue &, float *)> multiply;
  int64_t (*update_scratch_floats)(const GemmShape &);
  std::function<void(const GemmShape &, const float *, const float *, const UpdateRule &, const UpdateArrays &,
                     float *)>
      update;
  int64_t (*rows)(const SplitShape &, const float *, const float *, float *, const GemmEpilogue &, float *);
};

std::vector<Unit> units() {
  // As the library does where a factor cannot be split.
  const auto multiply = [](const GemmShape &s, const float *a, const float *b, float *c, const GemmEpilogue &after,
                           float *scratch) {
    const int64_t done = emulated_split_rows(s, a, b, c, after, scratch);
    if (done == s.m) return;
    GemmShape rest = s;
    rest.m -= done;
    GemmEpilogue below = after;
    if (below.mask != nullptr) below.mask += done * s.c_row;
    const Scratch own(gemm_scratch_floats(rest));
    gemm(rest, a + done * s.a_row, b, c + done * s.c_row, below, own.memory.get());
  };
  const auto update = [](const GemmShape &s, const float *a, const float *b, const UpdateRule &rule,
                         const UpdateArrays &arrays, float *scratch) {
    if (emulated_split_gemm_update(s, a, b, rule, arrays, scratch)) return;
    const Scratch own(gemm_scratch_floats(s));
    gemm_update(s, a, b, rule, arrays, own.memory.get());
  };
  return {{"emulated", has_emulated_split(), [](const GemmShape &s) { return emulated_split_scratch_floats(s); },
           multiply, emulated_split_update_scratch_floats, update, emulated_split_rows},
          {"the processor's", has_amx(), split_gemm_scratch_floats, split_gemm, split_gemm_update_scratch_floats,
           split_gemm_update, split_rows}};
}

void on_all_units(const std::function<void(const Unit &)> &body) {
  for (const Unit &unit : units()) {
    if (unit.is_there) body(unit);
  }
}

GemmShape shape_of(int64_t m, int64_t n, int64_t k, bool a_turned, bool b_turned) {
  return {m, n, k, a_turned ? 1 : k, a_turned ? m : 1, b_turned ? 1 : n, b_turned ? k : 1, n, false};
}

float at(const std::vector<float> &values, int64_t i) { return values[static_cast<size_t>(i)]; }

/// Sums in f64, and what magnitudes they are made of.
struct Exact {
  double sum = 0, magnitude = 0;

  static Exact of(const GemmShape &s, const std::vector<float> &a, const std::vector<float> &b, int64_t i, int64_t j) {
    Exact exact;
    for (int64_t p = 0; p < s.k; ++p) {
      const double product = static_cast<double>(at(a, i * s.a_row + p * s.a_column)) *
                             static_cast<double>(at(b, p * s.b_row + j * s.b_column));
      exact.sum += product;
      exact.magnitude += std::fabs(product);
    }
    return exact;
  }
};

/// An error of a few units of the sum of magnitudes: what adding in f32 makes, far less than rounding a factor would.
constexpr double kUnit = 6e-8;

void check_product(const Unit &unit, const GemmShape &s, bool with_epilogue) {
  constexpr float kBefore = 7.0f;
  const std::vector<float> a = noise(s.m * s.k, 1), b = noise(s.k * s.n, 2), bias = noise(s.n, 3),
                           mask = noise(s.m * s.n, 4);
  const Scratch scratch(unit.scratch_floats(s));
  std::vector<float> c(static_cast<size_t>(s.m * s.n), kBefore);
  GemmEpilogue after;
  if (with_epilogue) after = {bias.data(), true, mask.data()};
  unit.multiply(s, a.data(), b.data(), c.data(), after, scratch.memory.get());
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      const Exact exact = Exact::of(s, a, b, i, j);
      double expected = exact.sum + (s.accumulate ? static_cast<double>(kBefore) : 0.0);
      if (with_epilogue) {
        expected = std::max(0.0, expected + static_cast<double>(at(bias, j)));
        if (!(at(mask, i * s.n + j) > 0)) expected = 0;
      }
      const double got = static_cast<double>(at(c, i * s.n + j));
      if (std::fabs(got - expected) > 4 * kUnit * (exact.magnitude + 1 + static_cast<double>(kBefore)))
        fail_msg("%ldx%ldx%ld: element %ld, %ld is %.9g, expected %.9g", static_cast<long>(s.m), static_cast<long>(s.n),
                 static_cast<long>(s.k), static_cast<long>(i), static_cast<long>(j), got, expected);
    }
  }
}

void products_agree(void **) {
  on_all_units([](const Unit &unit) {
    for (int64_t m : {1, 16, 17, 33, 50, 64, 65, 100}) {
      for (int64_t n : {1, 16, 31, 48}) {
        for (int64_t k : {1, 31, 32, 65, 100}) {
          check_product(unit, shape_of(m, n, k, false, false), true);
          check_product(unit, shape_of(m, n, k, true, false), false);
          check_product(unit, shape_of(m, n, k, false, true), true);
          check_product(unit, shape_of(m, n, k, true, true), false);
          GemmShape adds = shape_of(m, n, k, false, false);
          adds.accumulate = true;
          check_product(unit, adds, true);
        }
      }
    }
  });
}

/// Sums that are cut into blocks, and rows that are.
void large_products_agree(void **) {
  on_all_units([](const Unit &unit) {
    check_product(unit, shape_of(40, 20, 1100, false, false), true);
    check_product(unit, shape_of(200, 20, 1100, true, true), true);
    check_product(unit, shape_of(700, 36, 130, false, false), false);
    check_product(unit, shape_of(700, 36, 130, false, true), true);
    check_product(unit, shape_of(36, 700, 130, false, true), true);
    check_product(unit, shape_of(600, 300, 40, true, false), true);
    GemmShape adds = shape_of(50, 300, 700, false, true);
    adds.accumulate = true;
    check_product(unit, adds, true);
  });
}

/// Sums of one product: all 24 digits of both factors count.
void one_product_is_exact(void **) {
  on_all_units([](const Unit &unit) {
    const GemmShape s = shape_of(48, 48, 64, false, false);
    const std::vector<float> values = noise(s.m + s.n, 9);
    std::vector<float> a(static_cast<size_t>(s.m * s.k)), b = noise(s.k * s.n, 2), c(static_cast<size_t>(s.m * s.n));
    for (int64_t i = 0; i < s.m; ++i)
      a[static_cast<size_t>(i * s.k + i)] = std::ldexp(at(values, i), static_cast<int>(i) - 24);
    const Scratch scratch(unit.scratch_floats(s));
    unit.multiply(s, a.data(), b.data(), c.data(), {}, scratch.memory.get());
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        const double expected = Exact::of(s, a, b, i, j).sum, got = static_cast<double>(at(c, i * s.n + j));
        if (!(std::fabs(got - expected) <= 6 * kUnit * std::fabs(expected)))
          fail_msg("element %ld, %ld is %.9g, expected %.9g", static_cast<long>(i), static_cast<long>(j), got,
                   expected);
      }
    }
  });
}

/// Of many columns the sums of few rows have room between stretches, those of all have not.
void rows_do_not_depend_on_their_number(void **) {
  on_all_units([](const Unit &unit) {
    for (GemmShape s : {shape_of(150, 40, 1100, false, false), shape_of(150, 40, 1100, false, true),
                        shape_of(150, 600, 230, false, false)}) {
      const std::vector<float> a = noise(s.m * s.k, 1), b = noise(s.k * s.n, 2);
      std::vector<float> all(static_cast<size_t>(s.m * s.n));
      const Scratch scratch(unit.scratch_floats(s));
      unit.multiply(s, a.data(), b.data(), all.data(), {}, scratch.memory.get());
      for (const int64_t rows : {1, 17, 33, 64, 70, 128}) {
        s.m = rows;
        std::vector<float> some(static_cast<size_t>(rows * s.n));
        const Scratch own(unit.scratch_floats(s));
        unit.multiply(s, a.data(), b.data(), some.data(), {}, own.memory.get());
        assert_memory_equal(some.data(), all.data(), some.size() * sizeof(float));
      }
    }
  });
}

/// Of every operand that streams by, wherever its reader begins.
void readers_make_the_same(void **) {
  on_all_units([](const Unit &unit) {
    for (const GemmShape &s : {shape_of(33, 200, 230, false, false), shape_of(200, 20, 230, false, true),
                               shape_of(200, 40, 1100, true, false), shape_of(20, 150, 100, false, true)}) {
      const std::vector<float> a = noise(s.m * s.k, 1), b = noise(s.k * s.n, 2), bias = noise(s.n, 3);
      const Scratch scratch(unit.scratch_floats(s));
      SplitShape split(s);
      std::vector<float> first;
      for (split.reader = 0; split.reader < 6; ++split.reader) {
        std::vector<float> c(static_cast<size_t>(s.m * s.n));
        assert_int_equal(unit.rows(split, a.data(), b.data(), c.data(), {bias.data(), true}, scratch.memory.get()),
                         s.m);
        if (split.reader == 0) first = c;
        assert_memory_equal(c.data(), first.data(), c.size() * sizeof(float));
      }
    }
  });
}

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN(),
                kLargest = std::numeric_limits<float>::max();

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Rows that the special value is in are as they always were, the others nearly.
void check_special(const Unit &unit, const GemmShape &s, float special, bool in_a, int64_t place) {
  std::vector<float> a = noise(s.m * s.k, 1), b = noise(s.k * s.n, 2), mask = noise(s.m * s.n, 4);
  (in_a ? a : b)[static_cast<size_t>(place)] = special;
  std::vector<float> got = noise(s.m * s.n, 3), expected = got;
  const GemmEpilogue after{.mask = mask.data()};
  const Scratch scratch(std::max(unit.scratch_floats(s), gemm_scratch_floats(s)));
  unit.multiply(s, a.data(), b.data(), got.data(), after, scratch.memory.get());
  gemm(s, a.data(), b.data(), expected.data(), after, scratch.memory.get());
  for (int64_t i = 0; i < s.m * s.n; ++i) {
    const float one = at(got, i), other = at(expected, i);
    const bool has_special = !in_a || i / s.n == place / s.k;
    const bool same = std::memcmp(&one, &other, sizeof(one)) == 0;
    if (!same && (has_special || !(std::fabs(one - other) <= 1e-5f)))
      fail_msg("%g: element %ld is %g, not %g as in a product of vectors", static_cast<double>(special),
               static_cast<long>(i), static_cast<double>(one), static_cast<double>(other));
  }
}

/// What cannot be split makes the product that it always made, wherever it stands.
void special_values_stay(void **) {
  on_all_units([](const Unit &unit) {
    GemmShape s = shape_of(70, 40, 100, false, false);
    for (const float special : {kInfinity, -kInfinity, kNan, -kNan, kLargest, -kLargest}) {
      for (const bool in_a : {true, false}) {
        for (const int64_t place : {int64_t{0}, s.k * 40 - 1}) {
          for (const bool accumulate : {false, true}) {
            s.accumulate = accumulate;
            check_special(unit, s, special, in_a, place);
          }
        }
      }
    }
  });
}

/// A variable and two slots.
struct Variable {
  std::vector<float> weight, slots[2];

  explicit Variable(int64_t n) : weight(noise(n, 5)), slots{noise(n, 6), noise(n, 7)} {
    for (float &value : slots[1])
      value = std::fabs(value);
  }
  UpdateArrays arrays() {
    return {weight.data(), {slots[0].data(), slots[1].data()}, weight.data(), {slots[0].data(), slots[1].data()}};
  }
  bool operator==(const Variable &other) const {
    return same_bits(weight, other.weight) && same_bits(slots[0], other.slots[0]) &&
           same_bits(slots[1], other.slots[1]);
  }
};

const UpdateRule kRules[] = {SgdRule{0.1f, 0.01f}, MomentumRule{0.1f, 0.9f, 0.01f, true},
                             AdamRule::at(0.01, 0.9, 0.999, 1e-8, 0.1, 3)};

/// In one and one after the other: the same bits, as the sums are. `gap` is between rows of the variable and of A.
void check_update(const Unit &unit, const UpdateRule &rule, GemmShape s, int64_t gap) {
  const std::vector<float> b = noise(s.k * s.n, 2);
  s.c_row = s.n + gap;
  (s.a_row == 1 ? s.a_column : s.a_row) += gap;
  const std::vector<float> a = noise((s.m + gap) * (s.k + gap), 1);
  const int64_t elements = s.m * s.c_row;
  std::vector<float> gradient(static_cast<size_t>(elements));
  Variable together(elements), apart(elements);
  const Scratch scratch(std::max(unit.scratch_floats(s), unit.update_scratch_floats(s)));
  unit.multiply(s, a.data(), b.data(), gradient.data(), {}, scratch.memory.get());
  for (int64_t row = 0; row < s.m; ++row) {
    const int64_t first = row * s.c_row;
    UpdateArrays arrays = apart.arrays();
    arrays = {arrays.weight + first,
              {arrays.slots[0] + first, arrays.slots[1] + first},
              arrays.weight_out + first,
              {arrays.slots_out[0] + first, arrays.slots_out[1] + first}};
    update(rule, s.n, gradient.data() + first, arrays);
  }
  unit.update(s, a.data(), b.data(), rule, together.arrays(), scratch.memory.get());
  if (!(together == apart))
    fail_msg("%ldx%ldx%ld is not the product and the update", static_cast<long>(s.m), static_cast<long>(s.n),
             static_cast<long>(s.k));
}

/// Whatever rows are left to vectors: there is scratch for them.
void scratch_is_enough_for_what_is_left(void **) {
  GemmShape s = shape_of(1000, 32, 1000, false, true);
  s.accumulate = true;
  const int64_t floats = split_gemm_scratch_floats(s);
  for (int64_t rows = 1; rows <= s.m; ++rows) {
    GemmShape rest = s;
    rest.m = rows;
    assert_true(gemm_scratch_floats(rest) <= floats);
  }
}

void updates_agree(void **) {
  on_all_units([](const Unit &unit) {
    for (const UpdateRule &rule : kRules) {
      for (int64_t m : {1, 33, 64, 150}) {
        for (int64_t n : {2, 31, 48}) {
          for (int64_t k : {1, 64, 100, 256}) {
            check_update(unit, rule, shape_of(m, n, k, true, false), 0);
            check_update(unit, rule, shape_of(m, n, k, true, false), 7);
            check_update(unit, rule, shape_of(m, n, k, false, false), 5);
          }
        }
      }
    }
  });
}

/// A gradient of special values changes the variable as it always did, each element once.
void special_gradients_update_once(void **) {
  on_all_units([](const Unit &unit) {
    const GemmShape s = shape_of(70, 40, 64, true, false);
    for (const UpdateRule &rule : kRules) {
      for (const bool in_a : {true, false}) {
        std::vector<float> a = noise(s.m * s.k, 1), b = noise(s.k * s.n, 2);
        (in_a ? a : b).back() = kInfinity;
        Variable got(s.m * s.n), expected(s.m * s.n);
        const Scratch scratch(std::max(unit.update_scratch_floats(s), gemm_scratch_floats(s)));
        unit.update(s, a.data(), b.data(), rule, got.arrays(), scratch.memory.get());
        gemm_update(s, a.data(), b.data(), rule, expected.arrays(), scratch.memory.get());
        assert_true(got == expected);
      }
    }
  });
}

void only_what_is_large_suits(void **) {
  assert_int_equal(split_gemm_suits(shape_of(64, 64, 64, false, false)), has_amx());
  assert_int_equal(split_gemm_update_suits(shape_of(64, 64, 64, true, false)), has_amx());
  assert_false(split_gemm_suits(shape_of(8, 512, 512, false, false)));
  assert_false(split_gemm_suits(shape_of(512, 8, 512, false, false)));
  assert_false(split_gemm_suits(shape_of(512, 512, 8, false, false)));
  assert_false(split_gemm_update_suits(shape_of(64, 64, kGemmUpdateDepth + 1, true, false)));
  GemmShape adds = shape_of(64, 512, 1024, false, false);
  adds.accumulate = true;
  assert_false(split_gemm_suits(adds));
  GemmShape scattered = shape_of(64, 64, 64, false, false);
  scattered.a_column = 2;
  assert_false(split_gemm_suits(scattered));
}

}  // namespace

int main() {
  for (const Unit &unit : units())
    print_message("%s matrix unit: %s\n", unit.name, unit.is_there ? "tested" : "not there");
  if (!has_emulated_split()) {
    print_message("skipped: the kernels are made for AVX-512, which this processor has not\n");
    return 77;
  }
  const CMUnitTest tests[] = {
      cmocka_unit_test(products_agree),
      cmocka_unit_test(large_products_agree),
      cmocka_unit_test(one_product_is_exact),
      cmocka_unit_test(rows_do_not_depend_on_their_number),
      cmocka_unit_test(readers_make_the_same),
      cmocka_unit_test(special_values_stay),
      cmocka_unit_test(scratch_is_enough_for_what_is_left),
      cmocka_unit_test(updates_agree),
      cmocka_unit_test(special_gradients_update_once),
      cmocka_unit_test(only_what_is_large_suits),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
