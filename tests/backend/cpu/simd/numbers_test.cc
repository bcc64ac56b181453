// SPDX-License-Identifier: Apache-2.0
//
// Casts, remainders, powers, logarithms of probabilities and normal random numbers of vector kernels against those made
// one by one, on every instruction set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/simd/simd_cast.h"
#include "backend/cpu/simd/simd_elementwise.h"
#include "backend/cpu/simd/simd_loss.h"
#include "backend/cpu/simd/simd_random.h"
#include "backend/cpu/simd/simd_testing.h"
#include "base/random/philox.h"
#include "tensor/half.h"
#include "testing.h"

namespace numbers_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT
using namespace tutti::impl;                // NOLINT
using tensor::DType;

/// Floats of every exponent and sign with several fractions: halfway points of 16 bits, limits of integers, NaN.
std::vector<float> floats() {
  std::vector<float> all = {0.0f,     -0.0f,        0.5f,      -0.99f,     255.0f,    255.5f,      256.0f,
                            -1.0f,    2147483520.f, 0x1.0p31f, -0x1.0p31f, 0x1.0p63f, -0x1.0p63f,  65519.0f,
                            65520.0f, INFINITY,     -INFINITY, NAN,        -NAN,      16777217.0f, 3.0e9f};
  for (uint32_t exponent = 1; exponent < 256; ++exponent) {
    for (const uint32_t fraction :
         {0u, 1u, 0x1000u, 0x1001u, 0x3000u, 0x8000u, 0x8001u, 0x18000u, 0x7fffffu, 0x123456u}) {
      for (const uint32_t sign : {0u, 0x80000000u})
        all.push_back(std::bit_cast<float>(sign | exponent << 23 | fraction));
    }
  }
  for (int i = -500; i < 500; ++i)
    all.push_back(static_cast<float>(i) * 0.37f);
  return all;
}

template <typename I>
I whole(float x) {
  if (std::isnan(x)) return 0;
  const auto wide = static_cast<long double>(x);
  if (wide <= static_cast<long double>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  if (wide >= static_cast<long double>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
  return static_cast<I>(wide);
}

/// All numbers at once, and from every place on as vectors may meet them.
template <typename To, typename From, typename One>
void check_cast(DType from, DType to, const std::vector<From> &x, const One &one) {
  for (const size_t first : {size_t{0}, size_t{1}, size_t{5}, x.size() - 3}) {
    const size_t count = x.size() - first;
    std::vector<To> y(count + 1, To{77});
    cast_numbers(from, to, x.data() + first, y.data(), static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) {
      const To expected = one(x[first + i]);
      if (std::memcmp(&y[i], &expected, sizeof(To)) != 0)
        fail_msg("%s to %s: %.9g gives %.9g, expected %.9g", std::string(tensor::name(from)).c_str(),
                 std::string(tensor::name(to)).c_str(), static_cast<double>(x[first + i]), static_cast<double>(y[i]),
                 static_cast<double>(expected));
    }
    assert_true(y[count] == To{77});
  }
}

void casts_are_exact(void **) {
  const std::vector<float> x = floats();
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i)
    bits[i] = static_cast<uint16_t>(i);
  std::vector<int64_t> wide;
  for (int i = 0; i < 64; ++i) {
    for (const int64_t more : {-1, 0, 1})
      wide.insert(wide.end(), {(int64_t{1} << i) / 3 + more, -(int64_t{1} << (i % 63)) + more});
  }
  for (int64_t i = 0; i < 500; ++i)
    wide.push_back(i * 4294967 - 1000000000);
  const std::vector<int32_t> narrow(wide.begin(), wide.end());
  const std::vector<uint8_t> bytes(bits.begin(), bits.begin() + 256);
  on_all_targets([&] {
    check_cast<uint16_t>(DType::f32, DType::bf16, x, tensor::float_to_bfloat16_bits);
    check_cast<uint16_t>(DType::f32, DType::f16, x, tensor::float_to_half_bits);
    check_cast<int64_t>(DType::f32, DType::i64, x, whole<int64_t>);
    check_cast<int32_t>(DType::f32, DType::i32, x, whole<int32_t>);
    check_cast<uint8_t>(DType::f32, DType::u8, x, whole<uint8_t>);
    check_cast<float>(DType::bf16, DType::f32, bits, tensor::bfloat16_bits_to_float);
    check_cast<float>(DType::f16, DType::f32, bits, tensor::half_bits_to_float);
    check_cast<float>(DType::i64, DType::f32, wide, [](int64_t v) { return static_cast<float>(v); });
    check_cast<float>(DType::i32, DType::f32, narrow, [](int32_t v) { return static_cast<float>(v); });
    check_cast<float>(DType::u8, DType::f32, bytes, [](uint8_t v) { return static_cast<float>(v); });
  });
}

void remainders_are_exact(void **) {
  std::vector<float> a, b;
  const std::vector<float> some = floats();
  for (size_t i = 0; i < some.size(); ++i) {
    for (const float divisor :
         {2.0f, -2.0f, 0.7f, -0.3f, 3e7f, 0.0f, INFINITY, -INFINITY, NAN, 1e-35f, some[(7 * i) % some.size()]})
      a.push_back(some[i]), b.push_back(divisor);
  }
  for (int i = 0; i < 4096; ++i)  // near whole quotients, without others beside them
    a.push_back(std::nextafter(static_cast<float>(i) * 0.1f, i % 3 == 0 ? 1e9f : -1e9f)),
        b.push_back(i % 2 ? 0.1f : -0.1f);
  ElementProgram program;
  program.columns = static_cast<int64_t>(a.size());
  program.inputs = {{ElementAccess::dense}, {ElementAccess::dense}};
  program.instructions = {{ElementOp::mod, 0, 1}};
  program.finish();
  on_all_targets([&] {
    const Scratch scratch(program.scratch_floats());
    std::vector<float> y(a.size());
    const void *inputs[] = {a.data(), b.data()};
    run_elementwise(program, 0, program.steps(), inputs, y.data(), scratch.memory.get());
    for (size_t i = 0; i < a.size(); ++i) {
      const double rest = std::fmod(static_cast<double>(a[i]), static_cast<double>(b[i]));
      const auto expected = static_cast<float>(rest != 0 && (rest < 0) != (b[i] < 0) ? rest + b[i] : rest);
      const bool same =
          std::isnan(expected) ? std::isnan(y[i]) : y[i] == expected && std::signbit(y[i]) == std::signbit(expected);
      if (!same) fail_msg("%.9g mod %.9g = %.9g, expected %.9g", a[i], b[i], y[i], expected);
    }
  });
}

void powers_agree(void **) {
  std::vector<float> a, b;
  for (const float one : floats()) {
    const float x = std::isnan(one) ? NAN : one;  // without those that signal, of which C makes no 1
    for (const float y : {0.0f, 1.0f, 2.0f, -3.0f, 0.5f, 1.7f, -30.0f, 101.0f, INFINITY, -INFINITY, NAN, 1e-4f, 3e9f})
      a.push_back(x), b.push_back(y);
  }
  for (int i = 1; i < 8192; ++i)
    a.push_back(static_cast<float>(i) * 0.001f), b.push_back(static_cast<float>(i % 97) * 0.25f - 12.0f);
  ElementProgram program;
  program.columns = static_cast<int64_t>(a.size());
  program.inputs = {{ElementAccess::dense}, {ElementAccess::dense}};
  program.instructions = {{ElementOp::pow, 0, 1}};
  program.finish();
  on_all_targets([&] {
    const Scratch scratch(program.scratch_floats());
    std::vector<float> y(a.size());
    const void *inputs[] = {a.data(), b.data()};
    run_elementwise(program, 0, program.steps(), inputs, y.data(), scratch.memory.get());
    for (size_t i = 0; i < a.size(); ++i) {
      const auto expected = static_cast<float>(std::pow(static_cast<double>(a[i]), static_cast<double>(b[i])));
      const float bound = 1.2e-7f * std::fabs(expected) + 2e-45f;
      const bool same = std::isnan(expected)   ? std::isnan(y[i])
                        : std::isinf(expected) ? y[i] == expected
                                               : std::fabs(y[i] - expected) <= bound;
      if (!same || (!std::isnan(expected) && std::signbit(y[i]) != std::signbit(expected)))
        fail_msg("%.9g to the power of %.9g = %.9g, expected %.9g", a[i], b[i], y[i], expected);
    }
  });
}

void normals_agree(void **) {
  constexpr int64_t kWidth = 200003;
  on_all_targets([&] {
    for (const bool is_truncated : {false, true}) {
      RandomArray array{0x123456789abcdef, 77, 1, 2, kWidth, 3, 5};
      std::vector<float> values(2 * kWidth + 1, 99.0f);
      random_normal(array, is_truncated, 0.0, 1.0, values.data());
      for (int64_t i = 0; i < 2 * kWidth; ++i) {
        const auto row = static_cast<uint64_t>(i / kWidth), element = static_cast<uint64_t>(i % kWidth);
        const auto words = base::RandomKey{array.key}.words(77 + row, 3 + 5 * row + element / 4);
        const size_t which = element % 4, pair = which & ~size_t{1};
        const double expected = is_truncated ? base::truncated_normal(words[which])
                                             : base::normal_pair(words[pair], words[pair + 1])[which % 2];
        const double got = values[static_cast<size_t>(i)];
        if (!(std::fabs(got - expected) <= 1e-6 * std::fmax(1.0, std::fabs(expected))))
          fail_msg("number %lld is %.9g, expected %.9g", static_cast<long long>(i), got, expected);
      }
      assert_true(values.back() == 99.0f);
    }
  });
}

/// Logits of rows: near each other, far apart, large, the lowest number, and with what is no number at all.
std::vector<float> logits(int64_t rows, int64_t classes) {
  std::vector<float> x;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < classes; ++i) {
      const float part = std::sin(static_cast<float>(7 * row + 3 * i + 1));
      const float kinds[] = {part,
                             60 * part,
                             1e6f + part,
                             1e30f * part,
                             std::numeric_limits<float>::lowest(),
                             i == 0 ? part : -INFINITY,
                             -INFINITY,
                             i == classes / 2 ? NAN : part,
                             i == classes / 2 ? INFINITY : part};
      x.push_back(kinds[row % 9]);
    }
  }
  return x;
}

void expect_log_softmax(const float *x, const float *y, int64_t classes) {
  const double top = *std::max_element(x, x + classes);
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i)
    sum += std::exp(static_cast<double>(x[i]) - top);
  for (int64_t i = 0; i < classes; ++i) {
    const double expected = static_cast<double>(x[i]) - top - std::log(sum), got = y[i];
    const double size = std::fmax(1.0, std::fabs(expected));
    if (std::isnan(expected) ? std::isnan(got) : got == expected || std::fabs(got - expected) <= 1e-6 * size) continue;
    fail_msg("class %lld of %lld: log_softmax(%.9g) = %.9g, expected %.9g", static_cast<long long>(i),
             static_cast<long long>(classes), static_cast<double>(x[i]), got, expected);
  }
}

void logarithms_of_probabilities_agree(void **) {
  on_all_targets([] {
    for (const int64_t classes : {1, 2, 3, 4, 5, 8, 10, 16, 17, 33}) {
      for (const int64_t rows : {1, 16, 45}) {
        const std::vector<float> x = logits(rows, classes);
        std::vector<float> y(x.size() + 1, 99.0f);
        log_softmax({rows, classes}, x.data(), y.data());
        for (int64_t row = 0; row < rows; ++row)
          expect_log_softmax(x.data() + row * classes, y.data() + row * classes, classes);
        assert_true(y.back() == 99.0f);
      }
    }
  });
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {cmocka_unit_test(casts_are_exact), cmocka_unit_test(remainders_are_exact),
                              cmocka_unit_test(powers_agree), cmocka_unit_test(normals_agree),
                              cmocka_unit_test(logarithms_of_probabilities_agree)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace numbers_test
