// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <cmath>
#include <cstring>
#include <string>

#include "testing.h"

namespace dtype_test {

using namespace tutti::impl::tensor;

namespace {

void numbers_never_change(void **) {
  const char *names[] = {"f32",  "f64", "i32", "i64", "u8",  "boolean", "f16",
                         "bf16", "i8",  "i16", "u16", "u32", "u64",     "bytes"};
  const size_t sizes[] = {4, 8, 4, 8, 1, 1, 2, 2, 1, 2, 2, 4, 8, 8};
  for (int32_t number = 1; number <= 14; ++number) {
    const DType dtype = assert_ok_value(dtype_from_number(number));
    assert_string_equal(std::string(name(dtype)).c_str(), names[number - 1]);
    assert_int_equal(size_bytes(dtype), sizes[number - 1]);
    assert_true(assert_ok_value(parse_dtype(names[number - 1])) == dtype);
    const bool visited = visit_dtype(dtype, [&]<typename T>(T) {
      assert_int_equal(sizeof(T), size_bytes(dtype));
      assert_true(dtype_of<T> == dtype);
    });
    assert_true(visited == (dtype != DType::bytes));
  }
  for (const int32_t number : {0, 15, -1, INT32_MAX, INT32_MIN}) {
    assert_false(is_valid(static_cast<DType>(number)));
    assert_int_equal(size_bytes(static_cast<DType>(number)), 0);
    assert_error_contains(dtype_from_number(number), "expected a dtype");
  }
}

void names_and_categories(void **) {
  assert_true(assert_ok_value(parse_dtype("float32")) == DType::f32);
  assert_true(assert_ok_value(parse_dtype("bfloat16")) == DType::bf16);
  assert_true(assert_ok_value(parse_dtype("bool")) == DType::boolean);
  assert_error_contains(parse_dtype("f31"), "unknown dtype 'f31', did you mean 'f32'?");
  assert_error_contains(parse_dtype(""), "unknown dtype");
  assert_true(is_floating(DType::bf16) && !is_floating(DType::i32));
  assert_true(is_integer(DType::u8) && is_integer(DType::i64) && !is_integer(DType::boolean));
  assert_true(category(DType::bytes) == DTypeCategory::bytes);
}

void halves_by_hand(void **) {
  assert_int_equal(float_to_half_bits(1.0f), 0x3c00);
  assert_int_equal(float_to_half_bits(-2.0f), 0xc000);
  assert_int_equal(float_to_half_bits(65504.0f), 0x7bff);
  assert_int_equal(float_to_half_bits(65519.99f), 0x7bff);
  assert_int_equal(float_to_half_bits(65520.0f), 0x7c00);
  assert_int_equal(float_to_half_bits(1e30f), 0x7c00);
  assert_int_equal(float_to_half_bits(0x1p-24f), 0x0001);
  assert_int_equal(float_to_half_bits(0x1p-25f), 0x0000);         // tie to even
  assert_int_equal(float_to_half_bits(0x1.000002p-25f), 0x0001);  // just above it
  assert_int_equal(float_to_half_bits(0x1.8p-24f), 0x0002);       // tie to even
  assert_int_equal(float_to_half_bits(-0.0f), 0x8000);
  assert_int_equal(float_to_half_bits(1 + 0x1p-11f), 0x3c00);      // tie to even
  assert_int_equal(float_to_half_bits(1 + 0x1.8p-10f), 0x3c02);    // tie to even
  assert_int_equal(float_to_half_bits(0x1.ffep-15f), 0x03ff + 1);  // rounds up to the smallest normal
  assert_true(std::isnan(half_bits_to_float(float_to_half_bits(NAN))));
  assert_int_equal(float_to_bfloat16_bits(1.0f), 0x3f80);
  assert_int_equal(float_to_bfloat16_bits(0x1.01p0f), 0x3f80);  // tie to even
  assert_int_equal(float_to_bfloat16_bits(0x1.03p0f), 0x3f82);  // tie to even
  assert_int_equal(float_to_bfloat16_bits(3.4e38f), 0x7f80);
  assert_true(std::isnan(bfloat16_bits_to_float(float_to_bfloat16_bits(NAN))));
  assert_true(std::isnan(bfloat16_bits_to_float(float_to_bfloat16_bits(std::bit_cast<float>(0x7f800001)))));
}

void all_halves_come_back(void **) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = half_bits_to_float(half), brain = bfloat16_bits_to_float(half);
    if (!std::isnan(wide)) assert_int_equal(float_to_half_bits(wide), half);
    if (!std::isnan(brain)) assert_int_equal(float_to_bfloat16_bits(brain), half);
#if defined(__FLT16_MANT_DIG__)
    _Float16 native;
    std::memcpy(&native, &half, sizeof(native));
    assert_true(std::isnan(wide) ? native != native : static_cast<float>(native) == wide);
#endif
  }
}

// Rounding against the compiler's own conversion, on floats spread over all exponents.
void rounding_agrees_with_the_compiler(void **) {
#if defined(__FLT16_MANT_DIG__)
  for (uint64_t i = 0; i < (uint64_t{1} << 32); i += 4099) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(i));
    if (std::isnan(value)) continue;
    const auto native = static_cast<_Float16>(value);
    uint16_t bits;
    std::memcpy(&bits, &native, sizeof(bits));
    assert_int_equal(float_to_half_bits(value), bits);
  }
#else
  test_skip();
#endif
}

const CMUnitTest tests[] = {
    cmocka_unit_test(numbers_never_change),
    cmocka_unit_test(names_and_categories),
    cmocka_unit_test(halves_by_hand),
    cmocka_unit_test(all_halves_come_back),
    cmocka_unit_test(rounding_agrees_with_the_compiler),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace dtype_test
