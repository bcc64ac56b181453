// SPDX-License-Identifier: Apache-2.0
#include "monitor/histogram.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "monitor/event_decoder.h"
#include "tensor/half.h"
#include "testing.h"

namespace tutti::testing::histogram_test {

using impl::monitor::Histogram;
using impl::tensor::Tensor;

/// The message, read.
struct Decoded {
  double minimum, maximum, count, sum, squares;
  std::vector<double> limits, buckets;
};

static std::vector<double> doubles(const std::string &bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

static Decoded decode(const Histogram &histogram) {
  const Fields fields = decode_message(histogram.message());
  const auto number = [&](int32_t field) { return double_of(field_of(fields, field)); };
  return {number(1),
          number(2),
          number(3),
          number(4),
          number(5),
          doubles(field_of(fields, 6)),
          doubles(field_of(fields, 7))};
}

/// How many of the elements are in [left, right).
static double between(const std::vector<double> &elements, double left, double right) {
  double count = 0;
  for (const double element : elements)
    count += element >= left && element < right;
  return count;
}

static void check(const std::vector<double> &elements) {
  Histogram histogram;
  double sum = 0, squares = 0;
  for (const double element : elements) {
    histogram.add(element);
    sum += element;
    squares += element * element;
  }
  const Decoded got = decode(histogram);
  assert_true(got.count == static_cast<double>(elements.size()));
  assert_true(got.sum == sum && got.squares == squares);
  assert_int_equal(got.limits.size(), got.buckets.size());
  double left = std::numeric_limits<double>::lowest(), total = 0;
  for (size_t i = 0; i < got.limits.size(); ++i) {
    assert_true(got.buckets[i] == between(elements, left, got.limits[i]) ||
                got.limits[i] == std::numeric_limits<double>::max());
    assert_true(i == 0 || got.limits[i] > got.limits[i - 1]);
    // No bucket with elements is wider than a tenth of what it holds, or than 1e-12.
    if (got.buckets[i] > 0 && std::abs(left) < 1e19 && std::abs(got.limits[i]) < 1e19)
      assert_true(got.limits[i] - left <= 0.1001 * std::max(std::abs(left), std::abs(got.limits[i])) + 1.1e-12);
    total += got.buckets[i];
    left = got.limits[i];
  }
  assert_true(total == got.count);
}

static void test_buckets(void **) {
  check({});
  check({0});
  check({-0.0, 0, 0, 1});
  check({1, 1.1, 1.21, -1, -1.1, 1e-12, -1e-12, 1e-13, -1e-13, 1e-300, 5, 5, 5});
  check({1e25, -1e25, 1e300, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max()});
  std::vector<double> many;
  for (int i = 0; i < 10'000; ++i)
    many.push_back(std::sin(i) * std::pow(10, i % 30 - 15));
  check(many);
}

static void test_what_is_not_finite(void **) {
  Histogram histogram;
  for (const double element : {1.0, std::nan(""), 3.0, std::numeric_limits<double>::infinity()})
    histogram.add(element);
  const Decoded got = decode(histogram);
  assert_true(got.count == 2 && got.sum == 4 && got.minimum == 1 && got.maximum == 3);
  assert_int_equal(histogram.not_finite(), 2);
  assert_true(std::isnan(histogram.sum_of_squares()));
}

template <typename T>
static void check_tensor(const std::vector<T> &elements, double sum) {
  Histogram histogram;
  const Tensor tensor = assert_ok_value(
      Tensor::from_values<T>(impl::tensor::Shape{static_cast<int64_t>(elements.size())}, std::span<const T>(elements)));
  assert_ok(histogram.add(tensor));
  const Decoded got = decode(histogram);
  assert_true(got.count == static_cast<double>(elements.size()) && got.sum == sum);
}

static void test_dtypes(void **) {
  check_tensor<float>({0.5F, -2}, -1.5);
  check_tensor<double>({1e-3, 2}, 2.001);
  check_tensor<int32_t>({-3, 5, 5}, 7);
  check_tensor<int64_t>({int64_t{1} << 40}, static_cast<double>(int64_t{1} << 40));
  check_tensor<uint8_t>({255, 1}, 256);
  check_tensor<int8_t>({-128}, -128);
  check_tensor<impl::tensor::Half>({impl::tensor::Half(0.25F), impl::tensor::Half(-4.0F)}, -3.75);
  check_tensor<impl::tensor::BFloat16>({impl::tensor::BFloat16(1.5F)}, 1.5);
}

static const CMUnitTest tests[] = {
    cmocka_unit_test(test_buckets),
    cmocka_unit_test(test_what_is_not_finite),
    cmocka_unit_test(test_dtypes),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::histogram_test
