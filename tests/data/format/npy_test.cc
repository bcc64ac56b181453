// SPDX-License-Identifier: Apache-2.0
//
// Arrays and archives against what NumPy wrote (golden/make_golden.py), and against damage.
#include "data/format/npy.h"

#include <cstring>

#include "base/random/philox.h"
#include "data/file/file_system.h"
#include "sample_files.h"

namespace npy_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Ref;
using tensor::Buffer;
using tensor::DType;
using tensor::Tensor;

namespace {

using Strings = std::vector<std::string>;

const std::string kGolden = GOLDEN_FOLDER "/";

Tensor read(const std::string &name) { return assert_ok_value(data::read_npy(kGolden + name + ".npy")); }

template <typename T>
Tensor counted(const tensor::Shape &shape, T factor = 1) {
  std::vector<T> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(i) * factor;
  return assert_ok_value(Tensor::from_values<T>(shape, std::span<const T>(values)));
}

Ref<Buffer> in_memory(std::string_view bytes) {
  Ref<Buffer> buffer = assert_ok_value(Buffer::allocate(static_cast<int64_t>(bytes.size()) + 1));
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

base::Result<Tensor> decode(std::string_view bytes) {
  return data::decode_npy(in_memory(bytes), 0, static_cast<int64_t>(bytes.size()), "a.npy");
}

std::string with_header(std::string header, const std::string &elements = "", char version = 1) {
  header += "\n";
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return bytes + header + elements;
}

void arrays_of_numpy_are_read(void **) {
  assert_true(tensor::identical(read("f32"), counted<float>({4, 3}, 0.5f)));
  assert_true(tensor::identical(read("big_endian"), counted<int32_t>({4, 3})));
  assert_true(tensor::identical(read("fortran"), counted<int64_t>({2, 3, 2})));
  assert_true(tensor::identical(read("version2"), counted<uint64_t>({12})));
  assert_true(tensor::identical(read("version3"), counted<int16_t>({12})));
  assert_true(tensor::identical(read("scalar"), Tensor::scalar(2.5).value()));
  assert_true(tensor::identical(read("empty"), Tensor::zeros(DType::u16, {0, 3}).value()));
  const Tensor truths = read("bool"), half = read("f16");
  for (int i = 0; i < 12; ++i) {
    assert_true(truths.data_as<bool>()[i] == (i % 3 == 0));
    assert_true(static_cast<float>(half.data_as<tensor::Half>()[i]) == static_cast<float>(i));
  }
  assert_true(tensor::identical(read("text"), tensor::make_bytes_tensor({3}, {"one", "", "three"}).value()));
  assert_true(tensor::identical(
      read("unicode"), tensor::make_bytes_tensor({3}, {"one", "zwei", "drei\xc3\xa4\xf0\x9f\x98\x80"}).value()));
  assert_true(read("f32").read_only());  // the file itself, not a copy
  assert_false(read("fortran").read_only());
}

void archives_of_numpy_are_read(void **) {
  for (const char *name : {"both.npz", "both_compressed.npz"}) {
    const auto contents = assert_ok_value(assert_ok_value(data::open_file(kGolden + name))->contents());
    const auto arrays = assert_ok_value(data::decode_npz(contents, {}, name, INT64_MAX));
    assert_int_equal(arrays.size(), 2);
    assert_string_equal(arrays[0].first.c_str(), "x");
    assert_true(tensor::identical(arrays[0].second, counted<float>({4, 3})));
    assert_true(tensor::identical(arrays[1].second, Tensor::from_values<int32_t>({4}, {3, 1, 4, 1}).value()));
    assert_int_equal(assert_ok_value(data::decode_npz(contents, {"y"}, name, INT64_MAX)).size(), 1);
    assert_error_contains(data::decode_npz(contents, {"z"}, name, INT64_MAX), "has no array 'z'");
  }
}

// A header of 128 bytes, as NumPy writes it, and 12 numbers.
void compressed_arrays_are_limited(void **) {
  const auto read = [](const char *name, int64_t most) {
    return begin_with("npz", {{"path", kGolden + name}, {"arrays", Strings{"x"}}, {"maximum_array_bytes", most}})
        .build();
  };
  assert_ok(read("both_compressed.npz", 176));
  assert_error_contains(read("both_compressed.npz", 175),
                        "array 'x' says 176 bytes after decompression, more than maximum_array_bytes = 175");
  assert_int_equal(read("both_compressed.npz", 175).status().code(), base::Code::data_loss);
  assert_ok(read("both.npz", 1));
}

void they_are_sources(void **) {
  const auto npz = assert_ok_value(
      begin_with("npz", {{"path", kGolden + "both.npz"}, {"labels", Strings{"y"}}}).shuffle(4).batch(4).build());
  assert_string_equal(npz->spec().to_string().c_str(), "(x: f32[batch, 3], y: i32[batch] label)");
  const auto npy = assert_ok_value(
      begin_with("npy", {{"arrays", Strings{"x=" + kGolden + "f32.npy", "name=" + kGolden + "f32.npy"}}}).build());
  assert_int_equal(npy->cardinality().value(), 4);
  const auto build = [](const char *source, graph::Attributes attributes) {
    return begin_with(source, attributes).build();
  };
  assert_error_contains(build("npy", {{"arrays", Strings{"x"}}}), "expected NAME=PATH");
  assert_error_contains(build("npy", {{"arrays", Strings{"x=none.npy"}}}), "none.npy");
  assert_error_contains(build("npy", {{"arrays", Strings{"x=" + kGolden + "f32.npy", "y=" + kGolden + "f16.npy"}}}),
                        "has 4 rows but component 'y' has 12");
  assert_error_contains(build("npz", {{"path", kGolden + "both.npz"}, {"labels", Strings{"w"}}}),
                        "there is no array 'w' to be a label");
  assert_error_contains(build("npz", {{"path", kGolden + "f32.npy"}}), "corrupt zip archive");
}

void headers_are_checked(void **) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  assert_true(tensor::identical(assert_ok_value(decode(with_header(good, std::string(8, '\0')))),
                                Tensor::zeros(DType::f32, {2}).value()));
  assert_ok(decode(with_header("{\"shape\":(2L,),\"fortran_order\":True,\"descr\":\"|i1\"}", "xx", 2)));
  struct {
    std::string bytes;
    const char *text;
  } const cases[] = {
      {"", "it does not begin with the magic bytes"},
      {std::string("\x93NUMPY\4\0\0\0", 10), "expected version 1, 2 or 3, got 4"},
      {std::string("\x93NUMPY\1\0\7\0{}", 12), "expected 7 bytes of header"},
      {std::string("\x93NUMPY\2\0\7\0", 10), "expected 7 bytes of header"},
      {with_header(good, std::string(7, '\0')), "expected 2 elements of 4 bytes after the header, got 7 bytes"},
      {with_header(good, std::string(9, '\0')), "expected 2 elements of 4 bytes after the header, got 9 bytes"},
      {with_header("{'descr': '<f4', 'fortran_order': False}"), "expected descr, fortran_order and shape"},
      {with_header("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}"), "expected True or False"},
      {with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "expected a shape"},
      {with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "expected a shape"},
      {with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4)}"),
       "corrupt npy file 'a.npy'"},
      {with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,)}", "xxxx"), "got 4 bytes"},
      {with_header("{'descr': '<f4', 'x': 1}"), "a key of an array's header"},
      {with_header("{'descr': '<f4"), "the end of a text"},
      {with_header("{'descr': ''}"), "expected descr"},
      {with_header("{'descr': 'f', 'fortran_order': False, 'shape': ()}"), "the element type 'f'"},
      // Four bytes for each: more than there are numbers for, one of them 4 modulo 2^64.
      {with_header("{'descr': '<U2377900603251621885', 'fortran_order': False, 'shape': (3,)}"),
       "the element type '<U2"},
      {with_header("{'descr': '<U4611686018427387905', 'fortran_order': False, 'shape': (1,)}",
                   std::string("a\0\0\0", 4)),
       "the element type '<U4"},
      {with_header("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\1\2"),
       "element 1 is 2, expected 0 or 1"},
      {with_header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", std::string("\0\xd8\0\0", 4)),
       "the character 55296"},
  };
  for (const auto &one : cases) {
    const auto result = decode(one.bytes);
    assert_error_contains(result, one.text);
    assert_int_equal(static_cast<int>(result.code()), static_cast<int>(base::Code::data_loss));
  }
  for (const char *type : {"'<c8'", "'|O'", "'<M8[ns]'", "[('a', '<i4')]", "'|S0'", "'|V4'"}) {
    const auto result =
        decode(with_header(base::concat("{'descr': ", type, ", 'fortran_order': False, 'shape': (0,)}")));
    assert_false(result.ok());
  }
}

// Mutations must be refused or read, within their own size; a sanitizer looks on.
void mutated_files_do_no_harm(void **) {
  base::RandomStream random(base::RandomKey::of(1, 2, 3));
  for (const char *name : {"fortran.npy", "unicode.npy", "both.npz", "both_compressed.npz"}) {
    const std::string good = assert_ok_value(base::read_file(kGolden + name));
    for (int round = 0; round < 3000; ++round) {
      std::string bytes = good;
      for (int64_t change = random.below(3); change >= 0; --change)
        bytes[static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())))] =
            static_cast<char>(random.below(256));
      if (random.below(8) == 0) bytes.resize(static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size()))));
      (void)decode(bytes);
      const Ref<Buffer> buffer = in_memory(bytes);
      (void)data::decode_npz(assert_ok_value(Buffer::slice(buffer, 0, static_cast<int64_t>(bytes.size()))), {}, "m",
                             INT64_MAX);
    }
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(arrays_of_numpy_are_read),      cmocka_unit_test(archives_of_numpy_are_read),
    cmocka_unit_test(compressed_arrays_are_limited), cmocka_unit_test(they_are_sources),
    cmocka_unit_test(headers_are_checked),           cmocka_unit_test(mutated_files_do_no_harm),
};
TEST_MAIN(tests)

}  // namespace npy_test
