// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <vector>

#include "testing.h"

namespace shape_test {

using namespace tutti::impl;
using namespace tutti::impl::tensor;

namespace {

base::Result<Shape> make(const std::vector<int64_t> &extents) { return Shape::make(extents); }

void extents_and_products(void **) {
  const Shape shape{2, 3, 4};
  assert_int_equal(shape.rank(), 3);
  assert_int_equal(shape[1], 3);
  assert_int_equal(shape.elements(), 24);
  assert_int_equal(shape.elements_from(1), 12);
  assert_int_equal(shape.elements_from(3), 1);
  assert_int_equal(shape.rows(), 2);
  assert_string_equal(shape.to_string().c_str(), "[2, 3, 4]");
  assert_true(shape.with_rows(7) == Shape({7, 3, 4}));
  assert_true(shape.row_shape() == Shape({3, 4}));
  assert_true(assert_ok_value(shape.prepend(5)) == Shape({5, 2, 3, 4}));
  assert_int_equal(assert_ok_value(shape.normalize_axis(-1)), 2);
  assert_error_contains(shape.normalize_axis(3), "axis 3 is out of range for shape [2, 3, 4]");
  assert_error_contains(shape.normalize_axis(-4), "axis -4");
}

void scalars_and_empty_ones(void **) {
  const Shape scalar;
  assert_int_equal(scalar.elements(), 1);
  assert_int_equal(scalar.rows(), 1);
  assert_string_equal(scalar.to_string().c_str(), "[]");
  assert_true(scalar.row_shape() == scalar);
  assert_error_contains(scalar.normalize_axis(0), "shape []");
  assert_int_equal(Shape({0, 5}).elements(), 0);
  assert_false(Shape({0}) == Shape());
  assert_false(Shape({1, 2}) == Shape({2, 1}));
}

void making_checks(void **) {
  assert_true(assert_ok_value(make({3, 0, 2})) == Shape({3, 0, 2}));
  assert_true(assert_ok_value(make({})) == Shape());
  assert_error_contains(make({2, -1}), "shape [2, -1]: extent -1 is negative");
  assert_error_contains(make(std::vector<int64_t>(9, 1)), "rank 9: the largest rank is 8");
  assert_ok(make(std::vector<int64_t>(8, 1)));
  assert_error_contains(make({int64_t{1} << 32, int64_t{1} << 32}), "too many elements");
  assert_error_contains(make({int64_t{1} << 40, int64_t{1} << 40, 0}), "too many elements");
  assert_ok(make({Shape::kMaxElements}));
  assert_error_contains(make({Shape::kMaxElements + 1}), "too many elements");
  assert_error_contains(Shape({1, 1, 1, 1, 1, 1, 1, 1}).prepend(1), "rank 9");
  assert_int_equal(assert_ok_value(checked_product(3, 4, "x")), 12);
  assert_error_contains(checked_product(INT64_MAX, 2, "arena"), "arena: 9223372036854775807 x 2 is too large");
  assert_error_contains(checked_product(-1, 2, "arena"), "too large");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(extents_and_products),
    cmocka_unit_test(scalars_and_empty_ones),
    cmocka_unit_test(making_checks),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace shape_test
