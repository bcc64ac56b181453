// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/hash/checksum.h"
#include "checkpoint/checkpoint_testing.h"
#include "testing.h"

namespace safetensors_test {

using namespace tutti::impl;
using namespace tutti::impl::checkpoint;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

struct Named {
  std::string name;
  Tensor tensor;
};

base::Result<FileSummary> write(const std::string &path, const std::vector<Named> &tensors,
                                const base::CancelToken *cancel = nullptr) {
  std::vector<SafetensorsItem> items;
  for (const Named &named : tensors)
    items.push_back({named.name, named.tensor.dtype(), named.tensor.shape()});
  const auto source = [&](size_t i) -> base::Result<Tensor> { return tensors[i].tensor; };
  return write_safetensors(path, items, source, {{"format", "tutti"}}, cancel);
}

std::string file_text(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  return base::concat(std::string_view(reinterpret_cast<const char *>(&length), 8), header, data);
}

base::Status read_text(const TemporaryDirectory &directory, const std::string &text) {
  const std::string path = directory.path() + "/hostile";
  TUTTI_TRY(base::write_file_atomically(path, text));
  return read_safetensors(path, std::nullopt).status();
}

void test_bytes_follow_the_format(void **) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/a.safetensors";
  const Tensor b = assert_ok_value(Tensor::from_values<uint8_t>({3}, {1, 2, 3}));
  const Tensor a = assert_ok_value(Tensor::from_values<float>({1, 2}, {1.0f, -2.0f}));
  const FileSummary summary = assert_ok_value(write(path, {{"b", b}, {"a", a}}));
  const std::string text = assert_ok_value(base::read_file(path));
  std::string header =
      "{\"__metadata__\":{\"format\":\"tutti\"},\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::string data("\0\0\x80\x3f\0\0\0\xc0\x01\x02\x03", 11);
  assert_string_equal(text.substr(8).c_str(), file_text(header, data).substr(8).c_str());
  assert_true(text == file_text(header, data));
  assert_int_equal(summary.size_bytes, text.size());
  assert_int_equal(summary.crc32c, base::crc32c(text));
}

void test_round_trip_of_every_type(void **) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/all.safetensors";
  std::vector<Named> tensors;
  for (int32_t number = 1; number < static_cast<int32_t>(DType::bytes); ++number) {
    const auto dtype = static_cast<DType>(number);
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 5}}) {
      Tensor tensor = assert_ok_value(Tensor::zeros(dtype, shape));
      auto *bytes = static_cast<unsigned char *>(tensor.mutable_data());
      for (int64_t i = 0; i < tensor.size_bytes(); ++i) {
        bytes[i] = dtype == DType::boolean ? i % 2 : static_cast<unsigned char>(i * 37 + number);
      }
      tensors.push_back({base::concat(tensor::name(dtype), shape), tensor});
    }
  }
  const FileSummary summary = assert_ok_value(write(path, tensors));
  const SafetensorsContent content = assert_ok_value(read_safetensors(path, summary));
  assert_true(content.summary == summary);
  assert_string_equal(content.header.metadata.at("format").c_str(), "tutti");
  assert_int_equal(content.tensors.size(), tensors.size());
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    size_t found = 0;
    for (const Named &named : tensors) {
      if (named.name == content.header.entries[i].name) {
        ++found;
        assert_true(tensor::identical(named.tensor, content.tensors[i]));
      }
    }
    assert_int_equal(found, 1);
  }
}

void test_order_of_items_does_not_change_the_bytes(void **) {
  TemporaryDirectory directory;
  const Tensor a = assert_ok_value(Tensor::from_values<float>({2}, {1, 2}));
  const Tensor b = assert_ok_value(Tensor::from_values<double>({2}, {3, 4}));
  const FileSummary one = assert_ok_value(write(directory.path() + "/1", {{"a", a}, {"b", b}}));
  const FileSummary two = assert_ok_value(write(directory.path() + "/2", {{"b", b}, {"a", a}}));
  assert_true(one == two);
}

void test_what_cannot_be_written(void **) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/x";
  const Tensor a = assert_ok_value(Tensor::from_values<float>({2}, {1, 2}));
  assert_error_contains(write(path, {{"a", a}, {"a", a}}), "two tensors are called 'a'");
  assert_error_contains(write(path, {{"", a}}), "cannot be stored");
  assert_error_contains(write(path, {{"__metadata__", a}}), "cannot be stored");
  assert_error_contains(write(path, {{"\xff", a}}), "cannot be stored");
  assert_error_contains(write_safetensors(path, {{"s", DType::bytes, Shape{1}}}, {}, {}, nullptr), "dtype bytes");
  const auto wrong = [&](size_t) -> base::Result<Tensor> { return a; };
  assert_error_contains(write_safetensors(path, {{"s", DType::f32, Shape{3}}}, wrong, {}, nullptr), "expected f32 [3]");
  const auto failing = [](size_t) -> base::Result<Tensor> { return base::internal_error("no such thing"); };
  assert_error_contains(write_safetensors(path, {{"s", DType::f32, Shape{3}}}, failing, {}, nullptr), "no such thing");
  const auto token = base::CancelToken::create();
  token->cancel();
  assert_error_contains(write(path, {{"a", a}}, token.get()), "CANCELLED");
  assert_int_equal(assert_ok_value(base::list_directory(directory.path())).size(), 0);
}

void test_hostile_headers(void **) {
  TemporaryDirectory directory;
  const std::string four(4, 'x'), eight(8, 'x');
  assert_error_contains(read_text(directory, ""), "has no header");
  assert_error_contains(read_text(directory, "1234567"), "has no header");
  assert_error_contains(read_text(directory, std::string(8, '\xff')), "expected at most 0");
  assert_error_contains(read_text(directory, file_text("", four)), "does not begin");
  assert_error_contains(read_text(directory, file_text(" {}", "")), "does not begin");
  assert_error_contains(read_text(directory, file_text("{\"a\":", "")), "not JSON");
  assert_error_contains(read_text(directory, file_text("{}", four)), "end at byte 0 of the data, which has 4");
  const auto entry = [](std::string_view dtype, std::string_view dims, std::string_view offsets) {
    return base::concat("{\"dtype\":\"", dtype, "\",\"shape\":[", dims, "],\"data_offsets\":[", offsets, "]}");
  };
  const auto one = [&](std::string_view dtype, std::string_view dims, std::string_view offsets) {
    return file_text(base::concat("{\"a\":", entry(dtype, dims, offsets), "}"), four);
  };
  assert_ok(read_text(directory, one("F32", "1", "0,4")));
  assert_error_contains(read_text(directory, one("F33", "1", "0,4")), "'F33' is not known");
  assert_error_contains(read_text(directory, one("F32", "2", "0,4")), "needs 8 bytes");
  assert_error_contains(read_text(directory, one("F32", "-1", "0,4")), "'a'");
  assert_error_contains(read_text(directory, one("F32", "9223372036854775807,4", "0,4")), "'a'");
  assert_error_contains(read_text(directory, one("F32", "4611686018427387905,4", "0,4")), "'a'");
  assert_error_contains(read_text(directory, one("F32", "1,1,1,1,1,1,1,1,1", "0,4")), "'a'");
  assert_error_contains(read_text(directory, one("F32", "1", "4,8")), "not inside");
  assert_error_contains(read_text(directory, one("F32", "1", "-4,0")), "not inside");
  assert_error_contains(read_text(directory, one("F32", "1", "4,0")), "not inside");
  assert_error_contains(read_text(directory, one("F32", "1", "0")), "expected two");
  assert_error_contains(read_text(directory, one("F32", "1", "0,18446744073709551615")), "JSON");
  assert_error_contains(read_text(directory, one("F32", "1.5", "0,4")), "shape");
  assert_error_contains(read_text(directory, file_text("{\"a\":{\"dtype\":\"U8\"}}", "")), "'a'");
  assert_error_contains(read_text(directory, file_text("{\"a\":[]}", "")), "'a'");
  assert_error_contains(read_text(directory, file_text("{\"__metadata__\":{\"k\":1}}", "")), "__metadata__");
  const auto two = [&](std::string_view first, std::string_view second) {
    return file_text(base::concat("{\"a\":", entry("U8", "4", first), ",\"b\":", entry("U8", "4", second), "}"), eight);
  };
  assert_ok(read_text(directory, two("4,8", "0,4")));
  assert_error_contains(read_text(directory, two("0,4", "0,4")), "overlap");
  assert_error_contains(read_text(directory, two("0,4", "2,6")), "overlap");
  const std::string hole = base::concat("{\"a\":", entry("U8", "4", "4,8"), "}");
  assert_error_contains(read_text(directory, file_text(hole, eight)), "hole");
  const std::string twice = base::concat("{\"a\":", entry("U8", "4", "0,4"), ",\"a\":", entry("U8", "4", "4,8"), "}");
  assert_error_contains(read_text(directory, file_text(twice, eight)), "JSON");
  const std::string deep = base::concat("{\"a\":", std::string(5000, '['), std::string(5000, ']'), "}");
  assert_error_contains(read_text(directory, file_text(deep, "")), "JSON");
}

void test_every_flipped_bit_and_every_cut_is_found(void **) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/a";
  const Tensor a = assert_ok_value(Tensor::from_values<float>({2}, {1, 2}));
  const FileSummary summary = assert_ok_value(write(path, {{"a", a}}));
  const std::string text = assert_ok_value(base::read_file(path));
  for (size_t byte = 0; byte < text.size(); ++byte) {
    std::string damaged = text;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (byte % 8)));
    assert_ok(base::write_file_atomically(path, damaged));
    assert_int_equal(read_safetensors(path, summary).code(), base::Code::data_loss);
    assert_ok(base::write_file_atomically(path, text.substr(0, byte)));
    assert_error_contains(read_safetensors(path, summary), "the file has");
    (void)read_safetensors(path, std::nullopt).ok();
  }
}

// A file written by the format's reference implementation (Python).
void test_reads_files_of_others(void **) {
  const char *testdata = getenv("TUTTI_TESTDATA");
  if (testdata == nullptr) test_skip();
  const std::string path = base::concat(testdata, "/checkpoint/by_reference_writer.safetensors");
  const SafetensorsContent content = assert_ok_value(read_safetensors(path, std::nullopt));
  assert_int_equal(content.tensors.size(), 5);
  assert_string_equal(content.header.metadata.at("k").c_str(), "v");
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    const std::string &name = content.header.entries[i].name;
    const Tensor &tensor = content.tensors[i];
    if (name == "b") assert_true(tensor::identical(tensor, *Tensor::from_values<int64_t>({3}, {0, 1, 2})));
    if (name == "u") assert_true(tensor::identical(tensor, *Tensor::from_values<bool>({2}, {true, false})));
    if (name == "\u00e9") assert_int_equal(assert_ok_value(tensor.scalar_value<uint8_t>()), 7);
    if (name == "z") assert_true(tensor.dtype() == DType::f32 && tensor.shape() == Shape({0, 3}));
    if (name == "a") assert_true(tensor.dtype() == DType::f16 && tensor.shape() == Shape({2, 2}));
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes_follow_the_format),
      cmocka_unit_test(test_round_trip_of_every_type),
      cmocka_unit_test(test_reads_files_of_others),
      cmocka_unit_test(test_order_of_items_does_not_change_the_bytes),
      cmocka_unit_test(test_what_cannot_be_written),
      cmocka_unit_test(test_hostile_headers),
      cmocka_unit_test(test_every_flipped_bit_and_every_cut_is_found),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace safetensors_test
