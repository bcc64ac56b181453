// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include <cmath>

#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace tensor_test {

using namespace tutti::impl;
using namespace tutti::impl::tensor;

namespace {

Tensor counting(const Shape &shape) {
  Tensor tensor = assert_ok_value(Tensor::allocate(DType::f32, shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.mutable_data_as<float>()[i] = static_cast<float>(i);
  return tensor;
}

void no_tensor_is_empty(void **) {
  const Tensor none;
  assert_true(none.empty());
  assert_false(static_cast<bool>(none));
  assert_null(none.data());
  assert_string_equal(none.describe().c_str(), "no tensor");
  assert_error_contains(none.values<float>(), "got no tensor");
  assert_error_contains(none.reshape({1}), "cannot reshape no tensor");
  assert_false(none.clone().ok());
}

void values_come_back(void **) {
  const Tensor tensor = assert_ok_value(Tensor::from_values<float>({2, 2}, {1, 2, 3, 4}));
  assert_int_equal(tensor.elements(), 4);
  assert_int_equal(tensor.size_bytes(), 16);
  assert_true(assert_ok_value(tensor.values<float>())[3] == 4);
  assert_string_equal(tensor.to_string().c_str(), "f32 [2, 2] {1, 2, 3, 4}");
  assert_string_equal(tensor.to_string(2).c_str(), "f32 [2, 2] {1, 2, ...}");
  assert_error_contains(tensor.values<double>(), "expected a tensor of f64, got f32 [2, 2]");
  assert_error_contains(Tensor::from_values<float>({3}, {1, 2}), "f32 [3] needs 12 bytes, got 8");
  const Tensor scalar = assert_ok_value(Tensor::scalar<int64_t>(7));
  assert_int_equal(assert_ok_value(scalar.scalar_value<int64_t>()), 7);
  assert_error_contains(tensor.scalar_value<float>(), "one element");
  assert_string_equal(assert_ok_value(Tensor::from_values<bool>({2}, {true, false})).to_string().c_str(),
                      "boolean [2] {true, false}");
  assert_string_equal(assert_ok_value(Tensor::from_values<int8_t>({1}, {-5})).to_string().c_str(), "i8 [1] {-5}");
  assert_string_equal(assert_ok_value(Tensor::from_values<Half>({1}, {Half(1.5f)})).to_string().c_str(),
                      "f16 [1] {1.5}");
}

void every_dtype_allocates(void **) {
  for (int32_t number = 1; number < 14; ++number) {
    const Tensor tensor = assert_ok_value(Tensor::zeros(static_cast<DType>(number), {3, 5}));
    const auto *bytes = tensor.data_as<unsigned char>();
    for (int64_t i = 0; i < tensor.size_bytes(); ++i)
      assert_int_equal(bytes[i], 0);
    assert_true(identical(tensor, assert_ok_value(tensor.clone())));
  }
  assert_error_contains(Tensor::zeros(DType::bytes, {3}), "from its contents");
  assert_error_contains(Tensor::zeros(static_cast<DType>(99), {3}), "got number 99");
  assert_true(Tensor::zeros(DType::f64, {Shape::kMaxElements}).code() == base::Code::resource_exhausted);
  assert_int_equal(assert_ok_value(Tensor::zeros(DType::f32, {0, 4})).elements(), 0);
}

void rows_are_views(void **) {
  const Tensor tensor = counting({4, 3});
  const Tensor middle = assert_ok_value(tensor.slice_rows(1, 3));
  assert_ptr_equal(middle.data(), tensor.data_as<float>() + 3);
  assert_true(middle.buffer() == tensor.buffer());
  middle.mutable_data_as<float>()[0] = 99;
  assert_true(tensor.data_as<float>()[3] == 99);
  const Tensor row = assert_ok_value(middle.row(1));
  assert_true(row.shape() == Shape({3}));
  assert_true(row.data_as<float>()[0] == 6);
  assert_int_equal(assert_ok_value(tensor.slice_rows(4, 4)).elements(), 0);
  assert_error_contains(tensor.slice_rows(2, 5), "rows [2, 5) do not lie in f32 [4, 3]");
  assert_error_contains(tensor.slice_rows(-1, 2), "do not lie");
  assert_error_contains(tensor.slice_rows(3, 2), "do not lie");
  assert_error_contains(tensor.row(4), "row 4 does not lie in");
  assert_error_contains(assert_ok_value(Tensor::scalar<float>(1)).slice_rows(0, 1), "with rows");
}

void reshaping_and_copying(void **) {
  const Tensor tensor = counting({2, 6});
  const Tensor view = assert_ok_value(tensor.reshape({3, 4}));
  assert_ptr_equal(view.data(), tensor.data());
  assert_error_contains(tensor.reshape({5}), "cannot reshape f32 [2, 6] to [5]");
  const Tensor copy = assert_ok_value(view.clone());
  assert_true(copy.data() != view.data());
  assert_true(identical(copy, view));
  copy.mutable_data_as<float>()[5] = -1;
  assert_false(identical(copy, view));
  assert_ok(copy.copy_from(view));
  assert_true(identical(copy, view));
  assert_error_contains(copy.copy_from(tensor), "cannot copy f32 [2, 6] into f32 [3, 4]");
}

void buffers_are_checked(void **) {
  const Ref<Buffer> buffer = assert_ok_value(Buffer::allocate(64));
  const Tensor tensor = assert_ok_value(Tensor::from_buffer(DType::i32, {4}, buffer, 48));
  assert_ptr_equal(tensor.data(), static_cast<char *>(buffer->data()) + 48);
  assert_error_contains(Tensor::from_buffer(DType::i32, {5}, buffer, 48), "needs 20 bytes at 48, the buffer has 64");
  assert_error_contains(Tensor::from_buffer(DType::i32, {1}, buffer, 65), "needs 4 bytes at 65");
  assert_error_contains(Tensor::from_buffer(DType::i32, {1}, buffer, -4), "needs 4 bytes at -4");
  assert_error_contains(Tensor::from_buffer(DType::i32, {1}, buffer, 2), "not aligned to 4");
  assert_error_contains(Tensor::from_buffer(DType::i32, {1}, nullptr), "expected a buffer, got none");
  assert_true(Tensor::from_buffer(DType::f64, {Shape::kMaxElements}, buffer).code() == base::Code::out_of_range);
}

void read_only_memory_stays(void **) {
  float memory[2] = {1, 2};
  const Tensor tensor = assert_ok_value(
      Tensor::from_buffer(DType::f32, {2}, Buffer::borrow(memory, sizeof(memory), nullptr, Buffer::Access::read_only)));
  assert_true(tensor.read_only());
  assert_error_contains(tensor.mutable_values<float>(), "f32 [2] is read-only");
  assert_error_contains(tensor.copy_from(tensor), "is read-only");
  assert_true(assert_ok_value(tensor.values<float>())[1] == 2);
  const Tensor copy = assert_ok_value(tensor.clone());
  assert_ok(copy.mutable_values<float>());
}

void identity_goes_by_bits(void **) {
  const auto make = [](float value) { return assert_ok_value(Tensor::scalar<float>(value)); };
  assert_true(identical(make(NAN), make(NAN)));
  assert_false(identical(make(0.0f), make(-0.0f)));
  assert_false(identical(make(1), assert_ok_value(make(1).reshape({1}))));
  assert_false(identical(make(0), assert_ok_value(Tensor::scalar<int32_t>(0))));
  assert_true(identical(Tensor(), Tensor()));
  assert_false(identical(Tensor(), make(0)));
}

void closeness(void **) {
  const auto f32 = [](std::initializer_list<float> values) {
    return assert_ok_value(Tensor::from_values<float>({2}, values));
  };
  assert_ok(compare_close(f32({1, 100}), f32({1, 100.5f}), 0.01, 0));
  assert_error_contains(compare_close(f32({1, 100}), f32({1, 102}), 0.01, 0),
                        "element 1 of f32 [2] differs: 100 and 102");
  assert_ok(compare_close(f32({NAN, INFINITY}), f32({NAN, INFINITY}), 0, 0));
  assert_false(compare_close(f32({INFINITY, 0}), f32({-INFINITY, 0}), 1, 1).ok());
  assert_false(compare_close(f32({NAN, 0}), f32({0, 0}), 1, 1).ok());
  const auto i64 = [](int64_t value) { return assert_ok_value(Tensor::scalar<int64_t>(value)); };
  assert_false(compare_close(i64(INT64_MAX), i64(INT64_MAX - 1), 0, 0).ok());
  assert_ok(compare_close(i64(INT64_MAX), i64(INT64_MAX - 1), 0, 1));
  assert_false(compare_close(i64(INT64_MIN), i64(INT64_MAX), 0, 1e18).ok());
  assert_error_contains(compare_close(i64(1), f32({1, 1}), 0, 0), "differ in kind: i64 [] and f32 [2]");
  const Tensor texts = assert_ok_value(make_bytes_tensor({1}, {"a"}));
  assert_ok(compare_close(texts, texts, 0, 0));
  assert_false(compare_close(texts, assert_ok_value(make_bytes_tensor({1}, {"b"})), 0, 0).ok());
}

const CMUnitTest tests[] = {
    cmocka_unit_test(no_tensor_is_empty),
    cmocka_unit_test(values_come_back),
    cmocka_unit_test(every_dtype_allocates),
    cmocka_unit_test(rows_are_views),
    cmocka_unit_test(reshaping_and_copying),
    cmocka_unit_test(buffers_are_checked),
    cmocka_unit_test(read_only_memory_stays),
    cmocka_unit_test(identity_goes_by_bits),
    cmocka_unit_test(closeness),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace tensor_test
