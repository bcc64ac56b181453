// SPDX-License-Identifier: Apache-2.0
#include "tensor/pieces.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/half.h"
#include "tensor/packed_pieces.h"
#include "testing.h"

namespace pieces_test {

using namespace tutti::impl;
using namespace tutti::impl::tensor;

namespace {

template <typename T>
Tensor of(const Shape &shape, std::initializer_list<T> values) {
  return assert_ok_value(Tensor::from_values<T>(shape, values));
}

void assert_same(const Tensor &got, const Tensor &expected) {
  if (!identical(got, expected)) fail_msg("got %s", got.describe().c_str());
}

// Pieces of two and one row, and of a replica that had none.
std::vector<Tensor> rows() { return {of<float>({2, 2}, {1, 2, 3, 4}), Tensor(), of<float>({1, 2}, {6, 8})}; }

void test_concatenate(void **) {
  assert_same(assert_ok_value(concatenate(rows(), 0)), of<float>({3, 2}, {1, 2, 3, 4, 6, 8}));
  const Tensor columns[] = {of<int32_t>({2, 1}, {1, 2}), of<int32_t>({2, 3}, {3, 4, 5, 6, 7, 8})};
  assert_same(assert_ok_value(concatenate(columns, 1)), of<int32_t>({2, 4}, {1, 3, 4, 5, 2, 6, 7, 8}));
  const Tensor flags[] = {of<bool>({1}, {true}), of<bool>({2}, {false, true})};
  assert_same(assert_ok_value(concatenate(flags, 0)), of<bool>({3}, {true, false, true}));
}

void test_reduce_over_an_axis(void **) {
  assert_same(assert_ok_value(reduce(rows(), Reduction::sum, 0)), of<float>({2}, {10, 14}));
  // Each row counts once: not the mean of the replicas' means.
  assert_same(assert_ok_value(reduce(rows(), Reduction::mean, 0)), of<float>({2}, {float(10.0 / 3), float(14.0 / 3)}));
  const Tensor columns[] = {of<double>({2, 1}, {1, 2}), of<double>({2, 3}, {3, 4, 5, 6, 7, 8})};
  assert_same(assert_ok_value(reduce(columns, Reduction::sum, 1)), of<double>({2}, {13, 23}));
  assert_same(assert_ok_value(reduce(columns, Reduction::mean, 1)), of<double>({2}, {3.25, 5.75}));
}

void test_reduce_across_pieces(void **) {
  const Tensor pieces[] = {of<float>({2}, {1, 2}), of<float>({2}, {5, 9})};
  assert_same(assert_ok_value(reduce(pieces, Reduction::sum, std::nullopt)), of<float>({2}, {6, 11}));
  assert_same(assert_ok_value(reduce(pieces, Reduction::mean, std::nullopt)), of<float>({2}, {3, 5.5}));
}

void test_sums_of_other_types(void **) {
  const int64_t large = (int64_t{1} << 53) + 1;  // which f64 does not know
  const Tensor integers[] = {of<int64_t>({1}, {large}), of<int64_t>({1}, {2})};
  assert_same(assert_ok_value(reduce(integers, Reduction::sum, 0)), of<int64_t>({}, {large + 2}));
  const Tensor small[] = {of<uint8_t>({2}, {1, 2}), of<uint8_t>({1}, {4})};
  assert_same(assert_ok_value(reduce(small, Reduction::mean, 0)), of<double>({}, {7.0 / 3}));
  // In f64: the sum of f16 numbers would stay at 2048.
  std::vector<Half> ones(4096, Half(1.0f));
  const Tensor many[] = {assert_ok_value(Tensor::from_values<Half>({4096}, std::span<const Half>(ones)))};
  assert_same(assert_ok_value(reduce(many, Reduction::sum, 0)), of<Half>({}, {Half(4096.0f)}));
  assert_same(assert_ok_value(reduce(many, Reduction::mean, 0)), of<Half>({}, {Half(1.0f)}));
}

void test_pieces_that_do_not_fit(void **) {
  const std::vector<Tensor> pieces = rows();
  assert_error_contains(concatenate(pieces, 2), "axis 2 is none of");
  assert_error_contains(concatenate(pieces, 1), "replica 2 has f32 [1, 2], another one f32 [2, 2]");
  assert_error_contains(reduce(pieces, Reduction::sum, std::nullopt), "replica 2 has f32 [1, 2]");
  const Tensor types[] = {of<float>({1}, {1}), of<double>({1}, {1})};
  assert_error_contains(concatenate(types, 0), "replica 1 has f64");
  assert_error_contains(concatenate(std::vector<Tensor>(2), 0), "no replica had rows");
  const Tensor flags[] = {of<bool>({1}, {true})};
  assert_error_contains(reduce(flags, Reduction::sum, 0), "bool");
}

void test_packed(void **) {
  std::vector<Tensor> pieces = rows();
  pieces.push_back(of<int64_t>({}, {7}));
  pieces.push_back(of<float>({0, 3}, {}));
  const std::vector<std::byte> bytes = pieces_to_bytes(pieces);
  std::vector<Tensor> read;
  assert_ok(pieces_from_bytes(bytes, read));
  assert_int_equal(read.size(), pieces.size());
  for (size_t i = 0; i < read.size(); ++i)
    assert_same(read[i], pieces[i]);
  // Cut off, or with any byte changed: an error or other numbers, and nothing read behind the end.
  for (size_t size = 0; size < bytes.size(); ++size) {
    read.clear();
    (void)pieces_from_bytes(std::span(bytes).first(size), read).ok();
    std::vector<std::byte> damaged = bytes;
    damaged[size] ^= std::byte{0xff};
    read.clear();
    (void)pieces_from_bytes(damaged, read).ok();
  }
  assert_error_contains(pieces_from_bytes(std::span(bytes).first(12), read), "cut off");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_concatenate),
    cmocka_unit_test(test_reduce_over_an_axis),
    cmocka_unit_test(test_reduce_across_pieces),
    cmocka_unit_test(test_sums_of_other_types),
    cmocka_unit_test(test_pieces_that_do_not_fit),
    cmocka_unit_test(test_packed),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace pieces_test
