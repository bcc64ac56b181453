// SPDX-License-Identifier: Apache-2.0
#include "tensor/bytes_tensor.h"

#include "testing.h"

namespace bytes_tensor_test {

using namespace tutti::impl;
using namespace tutti::impl::tensor;

namespace {

void texts_come_back(void **) {
  const Tensor tensor = assert_ok_value(make_bytes_tensor({3}, {"left", "", std::string_view("a\0b", 3)}));
  assert_true(tensor.dtype() == DType::bytes);
  assert_true(bytes_at(tensor, 0) == "left");
  assert_true(bytes_at(tensor, 1).empty());
  assert_true(bytes_at(tensor, 2) == std::string_view("a\0b", 3));
  assert_int_equal(bytes_total(tensor), 7);
  assert_int_equal(assert_ok_value(bytes_values(tensor)).size(), 3);
  assert_string_equal(tensor.to_string().c_str(), "bytes [3] {'left', '', 'a\\x00b'}");
  assert_error_contains(make_bytes_tensor({3}, {"a"}), "bytes tensor [3] needs 3 texts, got 1");
  assert_int_equal(assert_ok_value(make_bytes_tensor({0}, std::vector<std::string>())).elements(), 0);
}

void views_share_and_clones_shrink(void **) {
  const Tensor tensor = assert_ok_value(make_bytes_tensor({3, 2}, {"a", "bb", "ccc", "dddd", "e", "f"}));
  const Tensor rows = assert_ok_value(tensor.slice_rows(1, 3));
  assert_true(rows.buffer() == tensor.buffer());
  assert_true(bytes_at(rows, 0) == "ccc");
  assert_int_equal(bytes_total(rows), 9);
  const Tensor row = assert_ok_value(rows.row(1));
  assert_true(bytes_at(row, 1) == "f");
  const Tensor flat = assert_ok_value(tensor.reshape({6}));
  assert_true(bytes_at(flat, 3) == "dddd");
  const Tensor copy = assert_ok_value(rows.clone());
  assert_true(identical(copy, rows));
  assert_true(copy.buffer()->size_bytes() < tensor.buffer()->size_bytes());
  assert_false(identical(copy, assert_ok_value(tensor.slice_rows(0, 2))));
}

void offsets_are_checked(void **) {
  const int64_t good[] = {0, 2, 2, 5};
  const Tensor tensor = assert_ok_value(make_bytes_tensor({3}, std::span<const int64_t>(good), "abcde"));
  assert_true(bytes_at(tensor, 0) == "ab" && bytes_at(tensor, 1).empty() && bytes_at(tensor, 2) == "cde");
  const int64_t falling[] = {0, 3, 2, 5}, outside[] = {0, 2, 2, 6}, negative[] = {-1, 2, 2, 5};
  assert_error_contains(make_bytes_tensor({3}, std::span<const int64_t>(falling), "abcde"),
                        "offset 2 is 2, expected 3 to 5");
  assert_error_contains(make_bytes_tensor({3}, std::span<const int64_t>(outside), "abcde"), "offset 3 is 6");
  assert_error_contains(make_bytes_tensor({3}, std::span<const int64_t>(negative), "abcde"), "offset 0 is -1");
  assert_error_contains(make_bytes_tensor({3}, std::span<const int64_t>(), "abcde"), "expected offsets, got none");
  assert_error_contains(make_bytes_tensor({2}, std::span<const int64_t>(good), "abcde"), "needs 2 texts, got 3");
}

void foreign_buffers_are_checked(void **) {
  const Ref<Buffer> buffer = assert_ok_value(Buffer::allocate(24));
  auto *offsets = static_cast<int64_t *>(buffer->data());
  offsets[0] = 16;
  offsets[1] = 24;
  offsets[2] = 24;
  assert_ok(Tensor::from_buffer(DType::bytes, {1}, buffer));
  assert_error_contains(Tensor::from_buffer(DType::bytes, {3}, buffer), "needs 32 bytes");
  offsets[1] = 25;
  assert_error_contains(Tensor::from_buffer(DType::bytes, {1}, buffer), "offset 1 is 25");
  offsets[1] = 8;
  assert_error_contains(Tensor::from_buffer(DType::bytes, {1}, buffer), "offset 1 is 8, expected 16");
}

void others_are_refused(void **) {
  const Tensor floats = assert_ok_value(Tensor::zeros(DType::f32, {1}));
  assert_error_contains(bytes_values(floats), "expected a tensor of bytes, got f32 [1]");
  const Tensor texts = assert_ok_value(make_bytes_tensor({1}, {"x"}));
  assert_error_contains(texts.values<int64_t>(), "expected a tensor of i64, got bytes [1]");
  assert_error_contains(texts.copy_from(texts), "dtype bytes");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(texts_come_back),     cmocka_unit_test(views_share_and_clones_shrink),
    cmocka_unit_test(offsets_are_checked), cmocka_unit_test(foreign_buffers_are_checked),
    cmocka_unit_test(others_are_refused),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace bytes_tensor_test
