// SPDX-License-Identifier: Apache-2.0
#include "tensor/ragged.h"

#include "testing.h"

namespace ragged_test {

using namespace tutti::impl;
using namespace tutti::impl::tensor;

namespace {

Tensor splits_of(std::initializer_list<int64_t> values) {
  return assert_ok_value(Tensor::from_values<int64_t>({static_cast<int64_t>(values.size())}, values));
}

Tensor floats_of(const Shape &shape, std::initializer_list<float> values) {
  return assert_ok_value(Tensor::from_values<float>(shape, values));
}

void rows_of_different_lengths(void **) {
  const RaggedTensor ragged =
      assert_ok_value(RaggedTensor::make(floats_of({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), splits_of({0, 1, 1, 4})));
  assert_int_equal(ragged.rows(), 3);
  assert_int_equal(ragged.row_length(1), 0);
  assert_int_equal(ragged.longest_row(), 3);
  assert_string_equal(ragged.describe().c_str(), "ragged f32 [3, (0..3), 2]");
  const Tensor last = assert_ok_value(ragged.row(2));
  assert_true(last.shape() == Shape({3, 2}));
  assert_true(last.data_as<float>()[0] == 3);
  assert_error_contains(ragged.row(3), "row 3 does not lie in");
  const RaggedTensor part = assert_ok_value(ragged.slice_rows(1, 3));
  assert_string_equal(part.row_splits().to_string().c_str(), "i64 [3] {0, 0, 3}");
  assert_ptr_equal(part.values().data(), last.data());
  assert_error_contains(ragged.slice_rows(2, 4), "do not lie");
}

void the_invariant_is_checked(void **) {
  const Tensor values = floats_of({4}, {1, 2, 3, 4});
  assert_error_contains(RaggedTensor::make(values, splits_of({1, 4})), "expected 0 first, got 1");
  assert_error_contains(RaggedTensor::make(values, splits_of({0, 3, 2, 4})),
                        "entry 2 is 2, less than the one before, 3");
  assert_error_contains(RaggedTensor::make(values, splits_of({0, 3})), "expected 4 (the rows of values) last, got 3");
  assert_error_contains(RaggedTensor::make(values, splits_of({0, 5})), "last, got 5");
  assert_error_contains(RaggedTensor::make(values, splits_of({})), "expected 0 first, got none");
  assert_error_contains(RaggedTensor::make(values, values), "expected a tensor of i64");
  assert_error_contains(RaggedTensor::make(Tensor(), splits_of({0})), "rank 1 or more");
  const Tensor square = assert_ok_value(Tensor::from_values<int64_t>({1, 2}, {0, 4}));
  assert_error_contains(RaggedTensor::make(values, square), "expected rank 1");
}

void rows_are_joined(void **) {
  const Tensor rows[] = {floats_of({2}, {1, 2}), floats_of({0}, {}), floats_of({1}, {3})};
  const RaggedTensor ragged = assert_ok_value(RaggedTensor::from_rows(rows));
  assert_string_equal(ragged.values().to_string().c_str(), "f32 [3] {1, 2, 3}");
  assert_string_equal(ragged.row_splits().to_string().c_str(), "i64 [4] {0, 2, 2, 3}");
  const Tensor odd[] = {floats_of({2}, {1, 2}), floats_of({1, 1}, {3})};
  assert_error_contains(RaggedTensor::from_rows(odd), "ragged row 1: f32 [1, 1] does not fit the first, f32 [2]");
  assert_error_contains(RaggedTensor::from_rows(std::span<const Tensor>()), "expected rows, got none");
}

void padding_to_dense(void **) {
  const RaggedTensor ragged =
      assert_ok_value(RaggedTensor::make(floats_of({4}, {1, 2, 3, 4}), splits_of({0, 1, 1, 4})));
  assert_string_equal(assert_ok_value(ragged.to_dense(-1, nullptr)).to_string().c_str(),
                      "f32 [3, 3] {1, 0, 0, 0, 0, 0, 2, 3, 4}");
  const Tensor nine = floats_of({}, {9});
  assert_string_equal(assert_ok_value(ragged.to_dense(2, &nine)).to_string().c_str(), "f32 [3, 2] {1, 9, 9, 9, 2, 3}");
  assert_int_equal(assert_ok_value(ragged.to_dense(0, &nine)).elements(), 0);
  const Tensor wrong = floats_of({1}, {9});
  assert_error_contains(ragged.to_dense(2, &wrong), "padding: expected f32 [], got f32 [1]");
  assert_error_contains(ragged.to_dense(INT64_MAX, nullptr), "too many elements");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(rows_of_different_lengths),
    cmocka_unit_test(the_invariant_is_checked),
    cmocka_unit_test(rows_are_joined),
    cmocka_unit_test(padding_to_dense),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace ragged_test
