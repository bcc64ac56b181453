// SPDX-License-Identifier: Apache-2.0
//
// Elementwise vector kernels against the functions of C, and instructions that are joined against those that are not,
// on every instruction set.
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/simd/simd_elementwise.h"
#include "backend/cpu/simd/simd_testing.h"
#include "testing.h"

namespace elementwise_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT
using tutti::impl::tensor::DType;

std::vector<float> elements_of(ElementOp op, const std::vector<float> &x) {
  ElementProgram program;
  program.columns = static_cast<int64_t>(x.size());
  program.inputs = {{ElementAccess::dense}};
  program.instructions = {{op, 0}};
  program.finish();
  const Scratch scratch(program.scratch_floats());
  std::vector<float> y(x.size());
  const void *inputs[] = {x.data()};
  run_elementwise(program, 0, program.steps(), inputs, y.data(), scratch.memory.get());
  return y;
}

/// Each angle and tangent is exact by itself, and zeros, infinities and what has no angle are as in C.
void angles_are_exact(void **) {
  struct Case {
    ElementOp op;
    double (*exact)(double);
    float limit;
  };
  const Case cases[] = {{ElementOp::tangent, std::tan, 40.0f},
                        {ElementOp::arc_tangent, std::atan, 40.0f},
                        {ElementOp::arc_sine, std::asin, 1.0f},
                        {ElementOp::arc_cosine, std::acos, 1.0f}};
  on_all_targets([&] {
    for (const Case &one : cases) {
      std::vector<float> x = {0.0f, -0.0f, 1.0f, -1.0f, 1e-20f, -1e-3f, 3e4f, -1e30f, INFINITY, -INFINITY, NAN, 1.5f};
      for (float at = -one.limit; at < one.limit; at += one.limit / 4096)
        x.push_back(at);
      const std::vector<float> y = elements_of(one.op, x);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = one.exact(x[i]), got = y[i];
        if (std::isnan(expected) ? std::isnan(got)
                                 : std::fabs(got - expected) <= 1e-6 * std::fabs(expected) &&
                                       std::signbit(got) == std::signbit(expected))
          continue;
        fail_msg("operation %d of %.9g = %.9g, expected %.9g", static_cast<int>(one.op), static_cast<double>(x[i]), got,
                 expected);
      }
    }
  });
}

void angles_of_points_are_exact(void **) {
  on_all_targets([] {
    std::vector<float> sides = {0.0f, -0.0f, 1e-30f, -1e-30f, 1.0f, -1.0f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
    for (const float more : {0.3f, -0.7f, 2.5f, -11.0f})
      sides.push_back(more);
    std::vector<float> y, x;
    for (const float height : sides) {
      for (const float width : sides)
        y.push_back(height), x.push_back(width);
    }
    ElementProgram program;
    program.columns = static_cast<int64_t>(x.size());
    program.inputs = {{ElementAccess::dense}, {ElementAccess::dense}};
    program.instructions = {{ElementOp::arc_tangent2, 0, 1}};
    program.finish();
    const Scratch scratch(program.scratch_floats());
    std::vector<float> angles(x.size());
    const void *inputs[] = {y.data(), x.data()};
    run_elementwise(program, 0, program.steps(), inputs, angles.data(), scratch.memory.get());
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::atan2(static_cast<double>(y[i]), static_cast<double>(x[i])), got = angles[i];
      // Below the least normal number an angle may be 0.
      const bool is_close = std::fabs(got - expected) <= 1e-6 * std::fabs(expected) + 1e-38;
      if (std::isnan(expected) ? std::isnan(got) : is_close && std::signbit(got) == std::signbit(expected)) continue;
      fail_msg("angle of y = %.9g, x = %.9g is %.9g, expected %.9g", static_cast<double>(y[i]),
               static_cast<double>(x[i]), got, expected);
    }
  });
}

/// What joins instructions knows numbers that are the same in every run: without them the bits are the same.
void joined_instructions_give_the_same_bits(void **) {
  // Inputs: x, a slope of each column, 0, 6, 3, 1 / 6, -1.
  const std::vector<std::pair<std::vector<ElementInstruction>, size_t>> programs = {
      {{{ElementOp::maximum, 6, 0}, {ElementOp::minimum, 4, 7}}, 1},
      {{{ElementOp::maximum, 2, 0}, {ElementOp::minimum, 3, 7}}, 1},
      {{{ElementOp::relu, 0}, {ElementOp::minimum, 3, 7}}, 1},
      {{{ElementOp::add, 0, 4}, {ElementOp::relu, 7}, {ElementOp::minimum, 3, 8}, {ElementOp::mul, 9, 5}}, 2},
      {{{ElementOp::add, 0, 4},
        {ElementOp::relu, 7},
        {ElementOp::minimum, 3, 8},
        {ElementOp::mul, 9, 5},
        {ElementOp::mul, 0, 10}},
       2},
      {{{ElementOp::log, 0}, {ElementOp::mul, 7, 5}}, 1},
      {{{ElementOp::greater, 0, 2}, {ElementOp::minimum, 0, 2}, {ElementOp::mul, 1, 8}, {ElementOp::select, 7, 0, 9}},
       1},
      // The limit from above is needed twice.
      {{{ElementOp::relu, 0}, {ElementOp::minimum, 3, 7}, {ElementOp::add, 8, 7}}, 3}};
  on_all_targets([&] {
    std::vector<float> x = noise(4 * 97, 1);
    for (size_t i = 0; i < 12; ++i)
      x[5 * i] =
          std::vector<float>{0.0f, -0.0f, 6.0f, -1.0f, 3.0f, -3.0f, 7.5f, INFINITY, -INFINITY, NAN, 1e-40f, 1.0f}[i];
    const std::vector<float> slopes = noise(97, 2);
    const std::vector<float> numbers = {0.0f, 6.0f, 3.0f, 1.0f / 6, -1.0f};
    for (const auto &[instructions, joined] : programs) {
      std::vector<std::vector<float>> results;
      for (const bool is_known : {false, true}) {
        ElementProgram program;
        program.rows = 4, program.columns = 97;
        program.inputs = {{ElementAccess::dense}, {ElementAccess::column}};
        std::vector<const void *> inputs = {x.data(), slopes.data()};
        for (const float &number : numbers) {
          program.inputs.push_back(
              {ElementAccess::scalar, DType::f32, is_known ? std::optional<float>(number) : std::nullopt});
          inputs.push_back(&number);
        }
        program.instructions = instructions;
        program.finish();
        if (is_known) assert_int_equal(program.instructions.size(), joined);
        const Scratch scratch(program.scratch_floats());
        results.emplace_back(x.size());
        run_elementwise(program, 0, program.steps(), inputs.data(), results.back().data(), scratch.memory.get());
      }
      for (size_t i = 0; i < x.size(); ++i) {
        const bool is_same = std::memcmp(&results[0][i], &results[1][i], sizeof(float)) == 0;
        if (is_same || (std::isnan(results[0][i]) && std::isnan(results[1][i]))) continue;
        fail_msg("of %.9g: %.9g, joined %.9g", static_cast<double>(x[i]), static_cast<double>(results[0][i]),
                 static_cast<double>(results[1][i]));
      }
    }
  });
}

/// Sums and the like of a number per row, on either side, in parts and in place: the very numbers of C.
void numbers_of_rows_are_spread(void **) {
  float (*const exact[])(float, float) = {
      [](float a, float b) { return a + b; }, [](float a, float b) { return a - b; },
      [](float a, float b) { return a * b; }, [](float a, float b) { return a / b; }};
  const std::vector<float> of_rows = {1.5f, -0.0f, INFINITY, -3.25f, 0.0f};
  const auto rows = static_cast<int64_t>(of_rows.size());
  on_all_targets([&] {
    for (const int64_t columns : {1, 7, 255, 256, 257, 1024, 1500, 16384, 20001}) {
      std::vector<float> dense;
      for (int64_t i = 0; i < rows * columns; ++i)
        dense.push_back(i % 11 == 5 ? 0.0f : std::sin(static_cast<float>(i)));
      for (int which = 0; which < 8; ++which) {
        const bool row_is_first = which >= 4;
        ElementProgram program;
        program.rows = rows, program.columns = columns;
        program.inputs = {{ElementAccess::dense}, {ElementAccess::row}};
        program.instructions = {{static_cast<ElementOp>(static_cast<int>(ElementOp::add) + which % 4),
                                 row_is_first ? 1 : 0, row_is_first ? 0 : 1}};
        program.finish();
        const Scratch scratch(program.scratch_floats());
        std::vector<float> y = dense;
        const void *inputs[] = {y.data(), of_rows.data()};
        for (int64_t step = 0; step < program.steps(); ++step)
          run_elementwise(program, step, step + 1, inputs, y.data(), scratch.memory.get());
        for (size_t i = 0; i < y.size(); ++i) {
          const float row = of_rows[i / static_cast<size_t>(columns)];
          const float expected = row_is_first ? exact[which % 4](row, dense[i]) : exact[which % 4](dense[i], row);
          if (std::isnan(expected) ? std::isnan(y[i]) : y[i] == expected) continue;
          fail_msg("operation %d, %lld columns, number %zu: %.9g, expected %.9g", which,
                   static_cast<long long>(columns), i, static_cast<double>(y[i]), static_cast<double>(expected));
        }
      }
    }
  });
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {cmocka_unit_test(angles_are_exact), cmocka_unit_test(angles_of_points_are_exact),
                              cmocka_unit_test(joined_instructions_give_the_same_bits),
                              cmocka_unit_test(numbers_of_rows_are_spread)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace elementwise_test
