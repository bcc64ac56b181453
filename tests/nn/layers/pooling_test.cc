// SPDX-License-Identifier: Apache-2.0
// Pooling: shapes, the default stride, padding that does not count, and numbers worked out by hand.
#include "nn_testing.h"
#include "testing.h"

namespace pooling_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

const Numbers kX = {1, 2, 3, 4, 5, 6, 7, 8, 9};  // [3, 3] of one channel

Numbers pool(const std::string &layer, const Attributes &attributes, const char *shape) {
  Bench bench;
  const ValueId y = bench.expand(layer, {bench.input("x", kX, {3, 3, 1})}, attributes);
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(y).c_str(), shape);
  return assert_ok_value(bench.evaluate(y));
}

void test_max_pool(void **) {
  const Attributes size = {{"size", int64_t{2}}};
  assert_numbers(pool("layer_max_pool2d", size, "[batch, 1, 1, 1]"), {5});
  assert_numbers(pool("layer_max_pool2d", {{"size", int64_t{2}}, {"stride", int64_t{1}}}, "[batch, 2, 2, 1]"),
                 {5, 6, 8, 9});
  assert_numbers(pool("layer_max_pool2d", {{"size", int64_t{2}}, {"padding", std::string("same")}}, "[batch, 2, 2, 1]"),
                 {5, 6, 8, 9});
}

void test_average_pool(void **) {
  assert_numbers(pool("layer_average_pool2d", {{"size", int64_t{2}}, {"stride", int64_t{1}}}, "[batch, 2, 2, 1]"),
                 {3, 4, 6, 7});
  // Padding is behind the last row and column and is not counted.
  assert_numbers(
      pool("layer_average_pool2d", {{"size", int64_t{2}}, {"padding", std::string("same")}}, "[batch, 2, 2, 1]"),
      {3, 4.5, 7.5, 9});
}

void test_global_pools(void **) {
  Bench bench;
  const ValueId x = bench.input("x", {1, -1, 2, -2, 3, -3, 6, -6, 0, 8, 0, 4, 0, 2, 0, 2}, {2, 2, 2});
  const ValueId average = bench.expand("layer_global_average_pool2d", {x});
  const ValueId maximum = bench.expand("layer_global_max_pool2d", {x});
  assert_string_equal(bench.shape(average).c_str(), "[batch, 2]");
  assert_string_equal(bench.shape(maximum).c_str(), "[batch, 2]");
  assert_numbers(assert_ok_value(bench.evaluate(average)), {3, -3, 0, 4});
  assert_numbers(assert_ok_value(bench.evaluate(maximum)), {6, -1, 0, 8});
}

void test_errors(void **) {
  Bench bench;
  bench.expand("layer_max_pool2d", {bench.input("x", {}, {3})}, {{"size", int64_t{2}}});
  assert_contains(bench.error().c_str(), "[batch, 3]");
  Bench large;
  large.expand("layer_max_pool2d", {large.input("x", {}, {3, 3, 1})}, {{"size", int64_t{4}}});
  assert_contains(large.error().c_str(), "[batch, 3, 3, 1]");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_max_pool),
    cmocka_unit_test(test_average_pool),
    cmocka_unit_test(test_global_pools),
    cmocka_unit_test(test_errors),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace pooling_test
