// SPDX-License-Identifier: Apache-2.0
// Functions of ops: what they refuse, limits that golden/functions.json cannot say, and use within regions. Their
// numbers and gradients: tests/conformance/backend_functions_test.cc.
#include <limits>

#include "nn_testing.h"
#include "testing.h"

namespace functions_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;
using graph::Dim;
using graph::Dims;
using Integers = std::vector<int64_t>;
using Values = GraphBuilder::Values;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

struct Mistake {
  std::string function;
  std::vector<std::pair<std::vector<int64_t>, DType>> inputs;  ///< dimensions of a row
  Attributes attributes;
  const char *message;
};

const std::vector<Mistake> &mistakes() {
  static const auto *const list = new std::vector<Mistake>{
      {"clip", {{{3}, DType::f32}}, {{"low", 2.0}, {"high", 1.0}}, "tower/clip: expected limits in order, got 2 and 1"},
      {"clip", {{{3}, DType::u8}}, {{"low", 300.0}, {"high", 400.0}}, "no u8 is from 300 to 400"},
      {"clip", {{{3}, DType::i32}}, {{"low", 0.25}, {"high", 0.75}}, "no i32 is from 0.25 to 0.75"},
      {"clip", {{{3}, DType::f32}}, {{"low", 0.0}}, "attribute 'high' is missing"},
      {"relu6", {{{3}, DType::i32}}, {}, "tower/relu6: input 'x' has dtype i32, expected a floating point dtype"},
      {"prelu", {{{3}, DType::f32}, {{4}, DType::f32}}, {}, "a slope [batch, 4] does not broadcast to [batch, 3]"},
      {"atan2", {{{3}, DType::f32}, {{3}, DType::f64}}, {}, "input 'x' has dtype f64, input 'y' has f32"},
      {"logsumexp", {{{3}, DType::f32}}, {{"axes", Integers{2}}}, "there is no axis 2: the value has rank 2"},
      {"norm", {{{3}, DType::f32}}, {{"axes", Integers{1, -1}}}, "attribute 'axes' names axis 1 twice"},
      {"reduce_any", {{{3}, DType::f32}}, {}, "input 'x' has dtype f32, expected boolean"},
      {"bincount", {{{3}, DType::i32}, {{2}, DType::f32}}, {{"bins", int64_t{4}}}, "weights [batch, 2] do not fit"},
      {"split", {{{5}, DType::f32}}, {{"parts", int64_t{2}}, {"axis", int64_t{1}}}, "has no 2 equal parts"},
      {"split",
       {{{5}, DType::f32}},
       {{"parts", int64_t{2}}, {"axis", int64_t{1}}, {"sizes", Integers{2, 2}}},
       "expected 2 sizes that together are 5, got 2 that together are 4"},
      {"split", {{{5}, DType::f32}}, {{"parts", int64_t{0}}}, "attribute 'parts': expected from 1 to 65536, got 0"},
      {"unstack",
       {{{5}, DType::f32}},
       {{"length", int64_t{4}}, {"axis", int64_t{1}}},
       "axis 1 of [batch, 5] is not of 4"},
      {"stack",
       {{{5}, DType::f32}, {{4}, DType::f32}},
       {},
       "expected values of one shape, got [batch, 5] and [batch, 4]"},
      {"stack", {}, {}, "tower/stack: got 0 inputs, expected at least 1"},
      {"tile", {{{5}, DType::f32}}, {{"multiples", Integers{2}}}, "got 1 multiples for the axes of [batch, 5]"},
      {"roll", {{{5}, DType::f32}}, {{"shifts", Integers{1, 2}}, {"axes", Integers{1}}}, "got 2 shifts for 1 axes"},
      {"roll",
       {{{5}, DType::f32}},
       {{"shifts", Integers{1}}, {"axes", Integers{0}}},
       "expected an axis of known length"},
      {"reverse", {{{5}, DType::f32}}, {{"axes", Integers{}}}, "expected axes, got none"},
      {"band_part", {{{}, DType::f32}}, {}, "expected matrices, got [batch]"},
      {"cumsum", {{{5}, DType::f32}}, {}, "axis 0 of [batch, 5] is not"},
      {"sort", {{{5}, DType::f32}}, {{"axis", int64_t{-3}}}, "there is no axis -3: the value has rank 2"},
      {"gather_nd",
       {{{5}, DType::f32}, {{3}, DType::i32}},
       {},
       "expected indices for 1 to 2 axes of [batch, 5], got 3"},
      {"gather_nd", {{{5}, DType::f32}, {{2}, DType::f32}}, {}, "input 'indices' has dtype f32, expected i32 or i64"},
      {"scatter_add",
       {{{5}, DType::f32}, {{}, DType::i32}, {{4}, DType::f32}},
       {},
       "updates [batch, 4] do not fit: expected [batch, 5]"},
      {"scatter_max",
       {{{5}, DType::f32}, {{}, DType::i32}, {{5}, DType::f32}},
       {},
       "expected indices of known number, got [batch]"},
      {"einsum", {{{5}, DType::f32}}, {{"equation", std::string("bi,i->b")}}, "has 2 operands, got 1"},
      {"einsum",
       {{{5}, DType::f32}},
       {{"equation", std::string("bij->b")}},
       "'bij' does not fit operand 0, which has rank 2"},
      {"einsum", {{{5}, DType::f32}}, {{"equation", std::string("b1->b")}}, "'b1' is no list of letters"},
      {"einsum", {{{5}, DType::f32}}, {{"equation", std::string("bi->bb")}}, "the result has 'b' twice"},
      {"einsum",
       {{{5}, DType::f32}},
       {{"equation", std::string("bi->bk")}},
       "the result has 'k', which no operand has"},
      {"einsum",
       {{{5}, DType::f32}, {{4}, DType::f32}},
       {{"equation", std::string("bi,bi->b")}},
       "'i' is an axis of 5 and one of 4 elements"},
      {"einsum", {{{5}, DType::f32}, {{5}, DType::f32}}, {{"equation", std::string("bb,bi->i")}}, "'b' is an axis of"},
      {"conv1d",
       {{{5}, DType::f32}, {{5}, DType::f32}},
       {},
       "expected sequences [rows, length, channels], got [batch, 5]"},
      {"max_pool1d",
       {{{5, 2}, DType::f32}},
       {{"window", int64_t{2}}, {"pads", Integers{1}}},
       "attribute 'pads' has 1 elements, expected 2"},
      {"conv2d_transpose",
       {{{4, 4, 2}, DType::f32}, {{3, 3, 2}, DType::f32}},
       {{"padding", std::string("valid")}, {"extra", Integers{0, 1}}},
       "expected less extra than the stride 1, got 1"},
      {"conv2d_transpose",
       {{{4, 4, 2}, DType::f32}, {{3, 3, 2}, DType::f32}},
       {{"stride", Integers{2, 2}}, {"extra", Integers{1, 0}}},
       "with same padding there is nothing extra"},
      {"conv2d_transpose",
       {{{4, 4, 2}, DType::f32}, {{3, 3, 2}, DType::f32}},
       {{"stride", Integers{0, 1}}},
       "attribute 'stride': expected from 1 to 1048576, got 0"},
      {"conv1d_transpose",
       {{{4}, DType::f32}, {{3, 2}, DType::f32}},
       {},
       "expected sequences [rows, length, channels]"},
      {"conv3d", {{{4, 4, 2}, DType::f32}, {{3, 3, 2, 2}, DType::f32}}, {}, "expected volumes"},
      {"conv3d",
       {{{4, 4, 4, 2}, DType::f32}, {{3, 3, 2}, DType::f32}},
       {},
       "expected a kernel [depth, height, width, channels / groups, filters], got [batch, 3, 3, 2]"},
      {"conv3d_transpose", {{{4, 4, 2}, DType::f32}, {{3, 3, 2, 2}, DType::f32}}, {}, "expected volumes"},
      {"conv3d_transpose",
       {{{4, 4, 4, 2}, DType::f32}, {{3, 3, 2}, DType::f32}},
       {},
       "expected a kernel [depth, height, width, filters / groups, channels], got [batch, 3, 3, 2]"},
      {"avg_pool3d", {{{4, 4, 2}, DType::f32}}, {{"window", Integers{2, 2, 2}}}, "expected volumes"},
      {"max_pool3d", {{{4, 4, 4, 2}, DType::f32}}, {{"window", Integers{2, 2}}}, "attribute 'window' has 2 elements"},
      {"resize2d",
       {{{4, 4}, DType::f32}},
       {{"size", Integers{2, 2}}},
       "expected images [rows, height, width, channels]"},
  };
  return *list;
}

void test_mistakes(void **) {
  for (const Mistake &mistake : mistakes()) {
    Bench bench;
    bench.builder.push_scope("tower");
    std::vector<ValueId> inputs;
    for (const auto &[dims, dtype] : mistake.inputs)
      inputs.push_back(bench.input("input" + std::to_string(inputs.size()), {}, dims, dtype));
    bench.expand(mistake.function, inputs, mistake.attributes);
    if (bench.error().find(mistake.message) == std::string::npos)
      fail_msg("%s: expected \"%s\" in: %s", mistake.function.c_str(), mistake.message, bench.error().c_str());
    assert_contains(bench.error().c_str(), ("tower/" + mistake.function).c_str());
  }
}

void test_limits_without_end(void **) {
  for (const auto &[low, high, expected] : std::vector<std::tuple<double, double, Numbers>>{
           {-kInfinity, 1, {-2, 0, 1}}, {-1, kInfinity, {-1, 0, 3}}, {-kInfinity, kInfinity, {-2, 0, 3}}}) {
    Bench bench;
    const ValueId x = bench.input("x", {-2, 0, 3}, {});
    assert_numbers(assert_ok_value(bench.evaluate(bench.expand("clip", {x}, {{"low", low}, {"high", high}}))),
                   expected);
  }
  // Limits that no i8 reaches are none.
  Bench bench;
  const ValueId x = bench.builder.cast(bench.input("x", {-100, 5, 100}, {}), DType::i8);
  const ValueId y = bench.expand("clip", {x}, {{"low", -1e6}, {"high", 20.5}});
  assert_numbers(assert_ok_value(bench.evaluate(bench.builder.cast(y, DType::f32))), {-100, 5, 20});
}

/// Elements of 16 bits: sums of squares that they do not hold.
void test_norms_of_small_floats(void **) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Bench bench;
    const ValueId x = bench.builder.cast(bench.input("x", {300, 400}, {2}), dtype);
    const ValueId norm = bench.expand("norm", {x}, {{"axes", Integers{1}}});
    assert_int_equal(static_cast<int>(bench.builder.dtype(norm)), static_cast<int>(dtype));
    assert_numbers_within(assert_ok_value(bench.evaluate(bench.builder.cast(norm, DType::f32))), 0.01, {500});
    const ValueId angle = bench.expand("atan2", {x, x});
    assert_numbers_within(assert_ok_value(bench.evaluate(bench.builder.cast(angle, DType::f32))), 0.01,
                          {0.785398, 0.785398});
  }
}

/// f64 has all its digits.
void test_angles_of_doubles(void **) {
  Bench bench;
  const Numbers numbers = {-1e3, -1.5, -0.9, -0.3, 0, 1e-8, 0.2, 0.6, 1, 30};
  const ValueId x = bench.input("x", numbers, {}, DType::f64);
  const ValueId small = bench.builder.unary("tanh", x);
  const auto compare = [&](ValueId made, double (*expected)(double)) {
    Numbers all;
    for (const double number : numbers)
      all.push_back(expected(number));
    assert_numbers_within(assert_ok_value(bench.evaluate(made)), 1e-14, all);
  };
  compare(bench.expand("atan", {x}), [](double value) { return std::atan(value); });
  compare(bench.expand("asin", {small}), [](double value) { return std::asin(std::tanh(value)); });
  compare(bench.expand("acos", {small}), [](double value) { return std::acos(std::tanh(value)); });
  compare(bench.expand("atan2", {x, small}), [](double value) { return std::atan2(value, std::tanh(value)); });
}

/// Within the body of a loop, where each element is [batch, 4]: a function with several results, one with a gradient of
/// its own, and one with indices.
void test_in_a_region(void **) {
  Bench bench;
  GraphBuilder &b = bench.builder;
  const ValueId x = bench.input("x", {1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  const ValueId first = b.broadcast_to(b.constant(0, DType::f32), {GraphBuilder::batch(), Dim(2)});
  const auto body = [&](GraphBuilder &inner, const Values &at) {
    std::vector<ValueId> further;
    const ValueId left =
        nn::expand(inner, "split", 1, {at[1]}, {{"parts", int64_t{2}}, {"axis", int64_t{1}}}, {}, &further);
    const ValueId turned = nn::expand(inner, "reverse", 1, {further.at(0)}, {{"axes", Integers{1}}}, {});
    const ValueId soft = nn::expand(inner, "softsign", 1, {left}, {}, {});
    return Values{inner.add(at[0], inner.mul(soft, turned))};
  };
  const ValueId sum = b.scan({first}, {x}, body, 1)[0];
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(sum).c_str(), "[batch, 2]");
  assert_numbers(assert_ok_value(bench.evaluate(sum)), {1 / 2.0 * 4 + 5 / 6.0 * 8, 2 / 3.0 * 3 + 6 / 7.0 * 7});
}

/// Functions that compute nothing take texts.
void test_texts_are_moved(void **) {
  Bench bench;
  const ValueId names = bench.builder.label("names", DType::bytes, {GraphBuilder::batch(), Dim(3)});
  bench.expand("split", {names}, {{"parts", int64_t{3}}, {"axis", int64_t{1}}});
  assert_string_equal(bench.error().c_str(), "");
  bench.expand("clip", {names}, {{"low", 0.0}, {"high", 1.0}});
  assert_contains(bench.error().c_str(), "input 'x' (label 'names') is bytes, expected numbers");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_mistakes),
    cmocka_unit_test(test_limits_without_end),
    cmocka_unit_test(test_norms_of_small_floats),
    cmocka_unit_test(test_angles_of_doubles),
    cmocka_unit_test(test_in_a_region),
    cmocka_unit_test(test_texts_are_moved),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace functions_test
